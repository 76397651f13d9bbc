package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// aProbe is a result of a name whose operation takes so many ns with its driver, which takes 20.
func aProbe(name string, elapsed uint64) *Result {
	r := aResult(4096, elapsed*1e6, 6, 1)
	r.Benchmark, r.Op, r.Facts = name, "hit", nil
	r.Params = []Param{{Name: "trig-batch-iters", Value: 100}}
	for _, run := range r.Runs {
		for i := range run.Samples {
			run.Samples[i].Ops, run.Twin[i].Ops = 1e6, 1e6
			run.Twin[i].Elapsed = 20e6 + uint64(i)*1e3
		}
	}
	return r
}

// aLadder has them in an order that is not that of their costs.
func aLadder() []*Result {
	driver, untwinned := aProbe("trig-syscall-count", 444), aProbe("trig-uprobe-nop", 1076)
	for _, r := range []*Result{driver, untwinned} {
		for _, run := range r.Runs {
			run.Twin = nil
		}
	}
	kernel := aProbe("trig-kernel-count", 24)
	kretprobe := ended(aProbe("trig-kretprobe", 672), Interrupted, "")
	kretprobe.Runs = kretprobe.Runs[:2]
	return []*Result{
		driver, untwinned, aProbe("trig-kprobe", 392), kernel, aProbe("trig-fentry", 169), kretprobe,
		ended(aProbe("trig-kprobe-multi", 0), Skipped, "kprobe.multi: not in this kernel: needs Linux 5.18 with CONFIG_FPROBE=y"),
		aProbe("trig-rawtp", 60),
		ended(aProbe("trig-kretprobe-multi", 0), Skipped, "kprobe.multi: not in this kernel: needs Linux 5.18 with CONFIG_FPROBE=y"),
		ended(aProbe("trig-fmodret", 0), Failed, "attach: EBUSY"),
	}
}

var ladders = map[string]func() *Record{
	"ladder":       func() *Record { return aRecord(aLadder()...) },
	"ladder-exact": func() *Record { rec := aRecord(aLadder()...); rec.Session.Unit = Instructions; return rec },
	"ladder-varied": func() *Record {
		few, many, two := aProbe("trig-kprobe", 392), aProbe("trig-kprobe", 380), aProbe("trig-rawtp", 60)
		many.Params[0].Value = 1000
		two.Params[0].Value = 1000
		for _, r := range []*Result{few, many} {
			r.Producers = 2
		}
		also := aProbe("trig-rawtp", 61)
		also.Producers, also.Params[0].Value = 2, 1000
		return aRecord(few, many, also, two)
	},
	"ladder-kernels": func() *Record {
		var results []*Result
		for host := range 2 {
			for _, r := range []*Result{aProbe("rename-base", 400), aProbe("rename-kprobe", 800-200*uint64(host)), aProbe("rename-rawtp", 500)} {
				r.Host = host
				results = append(results, r)
			}
		}
		ended(results[1], Skipped, "no kprobes")
		rec := aRecord(results...)
		rec.Session.Hosts = append(rec.Session.Hosts, Host{Kernel: "7.3.4", Arch: "x86_64", CPUs: 2})
		return rec
	},
	"ladder-none": func() *Record {
		return aRecord(ended(aProbe("trig-a", 0), Skipped, "no BPF"), ended(aProbe("trig-b", 0), Skipped, "no BPF"))
	},
	"ladder-gross": func() *Record {
		return aRecord(aLadder()[:2]...)
	},
}

func toLadder(b *bytes.Buffer) Writer { return NewLadder(b, TextOptions{}) }

func TestLadder(t *testing.T) {
	for name, rec := range ladders {
		t.Run(name, func(t *testing.T) {
			got := write(t, rec(), toLadder)
			golden(t, "text-"+name+".txt", got)
			for line := range strings.Lines(string(got)) {
				line = strings.TrimSuffix(line, "\n")
				if utf8.RuneCountInString(line) > columns || strings.TrimRight(line, " ") != line || strings.Contains(line, "cpu") {
					t.Errorf("a line is too wide, ends in a space or is one that grep cpu finds: %q", line)
				}
			}
		})
	}
}

// A ladder is for people: what is for scripts is that of any table, and one result is shown as ever.
func TestLadderOfOthers(t *testing.T) {
	rec := aRecord(aLadder()...)
	if got, want := write(t, rec, func(b *bytes.Buffer) Writer { return NewLadder(b, TextOptions{Quiet: true}) }), write(t, rec, toQuiet); !bytes.Equal(got, want) {
		t.Errorf("quiet:\n%s\nwant\n%s", got, want)
	}
	one := aRecord(aProbe("trig-kprobe", 392))
	if got, want := write(t, one, toLadder), write(t, one, toText); !bytes.Equal(got, want) {
		t.Errorf("one result:\n%s\nwant\n%s", got, want)
	}
}

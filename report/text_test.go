package report

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// texts are records, and the golden files of their text.
var texts = map[string]func() *Record{
	"single":     func() *Record { return aRecord(aResult(4096, 19708000, 6, 1)) },
	"two-cpus":   func() *Record { return aRecord(aResult(4096, 19708000, 6, 0, 1)) },
	"three-runs": func() *Record { return aRecord(aResult(4096, 19708000, 3, 1)) },
	"one-run":    func() *Record { return aRecord(aResult(4096, 19708000, 1, 0, 1)) },
	"no-twin": func() *Record {
		rec := aRecord(aResult(4096, 19708000, 6, 1))
		for _, run := range rec.Results[0].Runs {
			run.Twin = nil
		}
		return rec
	},
	"exact": func() *Record { return exact(aRecord(aResult(4096, 19708000, 6, 0))) },
	"emulated": func() *Record {
		rec := aRecord(aResult(4096, 19708000, 6, 0))
		rec.Session.Hosts[0].Accel = "tcg"
		return rec
	},
	"unpinned-counter": func() *Record {
		rec := aRecord(aResult(4096, 19708000, 6, -1, -1))
		rec.Results[0].Pinned = false
		return rec
	},
	"interrupted": func() *Record {
		rec := aRecord(ended(aResult(4096, 19708000, 2, 1), Interrupted, ""))
		rec.Session.Interrupted = true
		return rec
	},
	"interrupted-at-once": func() *Record {
		return aRecord(ended(aResult(4096, 19708000, 0, 1), Interrupted, ""))
	},
	"skipped": func() *Record {
		return aRecord(ended(aResult(4096, 0, 0, 1), Skipped, "no kprobes in this kernel (CONFIG_KPROBES)"))
	},
	"failed": func() *Record {
		return aRecord(ended(aResult(4096, 19708000, 1, 1), Failed, "run 1: cpu 1: 17 lookups of 999424 missed:\nthe map does not hold the keys that it was filled with"))
	},
	"zero-ops": func() *Record {
		rec := aRecord(aResult(4096, 19708000, 6, 0, 1))
		for _, run := range rec.Results[0].Runs {
			for i := range run.Samples {
				run.Samples[i].Ops = 0
			}
		}
		return rec
	},
	"one-cpu-idle": func() *Record {
		rec := aRecord(aResult(4096, 19708000, 6, 0, 1))
		for _, run := range rec.Results[0].Runs {
			for i := range run.Samples {
				run.Samples[i].Ops *= uint64(run.Samples[i].CPU)
			}
		}
		return rec
	},
	"table":           func() *Record { return aSweep(1) },
	"table-two-cpus":  func() *Record { return aSweep(0, 1) },
	"table-four-cpus": func() *Record { return aSweep(0, 1, 2, 3) },
	"table-unpinned": func() *Record {
		rec := aSweep(0)
		for _, r := range rec.Results {
			r.Pinned = false
			r.Runs[0].Samples[0].CPU = 1
		}
		return rec
	},
	"table-wide": func() *Record {
		rec := aSweep(0, 1)
		for i, r := range rec.Results {
			r.Params[1].Value = 65536 << i
			r.Varied = []string{"max_entries", "nr_entries"}
			for _, run := range r.Runs {
				for i := range run.Samples {
					run.Samples[i].Ops *= 3
				}
			}
		}
		return rec
	},
	"table-exact": func() *Record { return exact(aSweep(0)) },
	"table-ends": func() *Record {
		rec := aSweep(1)
		ended(rec.Results[1], Skipped, "map type percpu_hash needs Linux 4.6")
		ended(rec.Results[2], Failed, "create map: 4294967295 entries of 16 bytes need 64 GiB, of which 3.8 GiB are available: lower --max_entries")
		ended(rec.Results[3], Interrupted, "")
		rec.Results[3].Runs = rec.Results[3].Runs[:2]
		return rec
	},
	"table-skipped": func() *Record {
		return aRecord(ended(aResult(4096, 0, 0, 1), Skipped, "no BPF"), ended(aResult(8192, 0, 0, 1), Skipped, "no BPF"))
	},
	"table-kernels": func() *Record {
		var results []*Result
		for i, elapsed := range []uint64{21e6, 19708000, 19e6} {
			r := aResult(4096, elapsed, 6, 0)
			r.Host = i
			results = append(results, r)
		}
		rec := aRecord(results...)
		rec.Session.Hosts = []Host{
			{Kernel: "6.1.0-57-cloud-amd64", Arch: "x86_64", CPUs: 1, Accel: "tcg"},
			{Kernel: "6.12.117+deb13-cloud-amd64", Arch: "x86_64", CPUs: 1, Accel: "tcg"},
			{Kernel: "7.3.4+deb14-cloud-amd64", Arch: "x86_64", CPUs: 1, Accel: "tcg"},
		}
		return exact(rec)
	},
	"table-benchmarks": func() *Record {
		probe, base := aResult(4096, 19708000, 6, 1), aResult(4096, 9e6, 6, 1)
		base.Benchmark, base.Params, base.Facts = "fetcharg-baseline", nil, nil
		probe.Benchmark, probe.Facts = "fetcharg-kprobe", nil
		probe.Params = []Param{{Name: "args", Value: 1}, {Name: "engine", Value: "legacy"}}
		return aRecord(base, probe)
	},
	"table-workers": func() *Record {
		lookup, ring, two := aResult(4096, 19708000, 6, 1), aResult(4096, 9e6, 6, 1), aResult(4096, 20708000, 6, 0, 1)
		ring.Benchmark, two.Benchmark = "rb-libbpf", "rb-custom"
		for _, r := range []*Result{ring, two} {
			r.Params, r.Facts, r.Consumers = []Param{{Name: "rb-batch-cnt", Value: 500}, {Name: "rb-sample-rate", Value: 500}}, nil, 1
		}
		return aRecord(lookup, ring, two)
	},
}

func TestText(t *testing.T) {
	for name, rec := range texts {
		t.Run(name, func(t *testing.T) { golden(t, "text-"+name+".txt", write(t, rec(), toText)) })
	}
}

func TestQuiet(t *testing.T) {
	unpinned := func(rec *Record) *Record {
		for _, r := range rec.Results {
			r.Pinned = false
		}
		return rec
	}
	for name, rec := range map[string]*Record{
		"pinned":         texts["two-cpus"](),
		"unpinned":       unpinned(texts["two-cpus"]()),
		"table":          texts["table-two-cpus"](),
		"table-unpinned": unpinned(texts["table-two-cpus"]()),
		"table-ends":     texts["table-ends"](),
	} {
		t.Run(name, func(t *testing.T) { golden(t, "quiet-"+name+".txt", write(t, rec, toQuiet)) })
	}
	for _, name := range []string{"skipped", "failed", "zero-ops", "interrupted-at-once"} {
		if got := write(t, texts[name](), toQuiet); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestGrepCPU holds that `grep cpu` finds the result of each CPU and nothing else, whatever names there are, but those that
// have it inside a word and are what they are.
func TestGrepCPU(t *testing.T) {
	want := regexp.MustCompile(`^cpu\d\d: lookup .* \(approximated from \d+ samples? of ~\d`)
	for name, make := range texts {
		rec := make()
		rec.Session.Hosts[0].Kernel += "-cpufreq"
		for _, r := range rec.Results {
			r.Benchmark = "percpu-" + r.Benchmark
			r.Params = append(r.Params, Param{Name: "map_cpus", Value: "percpu_hash", Note: "cpu"})
			r.Facts = append(r.Facts, Param{Name: "cpu hits", Value: len(r.Params[0].Name), Unit: "cpu"})
		}
		found := 0
		for line := range strings.Lines(string(write(t, rec, toText))) {
			if !wordCPU.MatchString(line) {
				continue
			}
			found++
			if !want.MatchString(line) {
				t.Errorf("%s: %q", name, line)
			}
		}
		if name == "two-cpus" && found != 2 || name == "single" && found != 1 || strings.HasPrefix(name, "table") && found != 0 {
			t.Errorf("%s: %d lines", name, found)
		}
	}
}

// TestWidth holds that no line is longer than the screen, but those whose form is given.
func TestWidth(t *testing.T) {
	for name, make := range texts {
		for line := range strings.Lines(string(write(t, make(), toText))) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > columns && !regexp.MustCompile("^(cpu|prod|Summary: )").MatchString(line) {
				t.Errorf("%s: %d columns: %q", name, n, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%s: trailing space: %q", name, line)
			}
		}
	}
}

// TestNoTimeInExactMode holds that instructions are never called a time.
func TestNoTimeInExactMode(t *testing.T) {
	unit := regexp.MustCompile(`(^|[^a-zA-Z])(ns|us|ms|s|sec|seconds?)([^a-zA-Z]|$)`)
	if !unit.MatchString("of ~19ms)") || !unit.MatchString("events/sec") {
		t.Fatal("the pattern does not find units of time")
	}
	for name, make := range texts {
		rec := exact(make())
		for _, to := range []string{
			string(write(t, rec, toText)), string(write(t, rec, toQuiet)), string(write(t, rec, toJSON)), string(write(t, rec, toJSONL)),
			string(write(t, rec, toCSV)), string(write(t, rec, toGo)), string(write(t, rec, toMarkdown)),
		} {
			if m := unit.FindString(to); m != "" {
				t.Errorf("%s: %q in:\n%s", name, m, to)
			}
		}
	}
}

func TestNoNaN(t *testing.T) {
	for name, make := range texts {
		text := string(write(t, make(), toText)) + string(write(t, make(), toQuiet))
		for _, to := range tables {
			text += string(write(t, make(), to))
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "+Inf") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// failing refuses every write after the first n.
type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	rec := texts["single"]()
	for name, to := range map[string]func(io.Writer) Writer{
		"text":  func(w io.Writer) Writer { return NewText(w, TextOptions{}) },
		"quiet": func(w io.Writer) Writer { return NewText(w, TextOptions{Quiet: true}) },
		"json":  NewJSON,
		"jsonl": NewJSONL,
		"csv":   NewCSV,
		"go":    NewGo,
		"md":    NewMarkdown,
	} {
		for n := range 5 {
			w := to(&failing{n})
			err := errors.Join(w.Begin(rec), w.Run(rec, 0), w.End(rec))
			if n == 0 && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s: %v", name, err)
			}
			if err != nil && err.Error() == io.ErrClosedPipe.Error() {
				t.Errorf("%s: not wrapped: %v", name, err)
			}
		}
	}
}

func TestEmptyRecord(t *testing.T) {
	if got := write(t, &Record{Schema: Schema, Session: Session{Unit: Nanoseconds}}, toText); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

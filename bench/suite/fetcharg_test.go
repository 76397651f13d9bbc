package suite

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bpfbench/bench/harness"
	"bpfbench/fetcharg"
	"bpfbench/internal/host"
	"bpfbench/internal/testutils"
	"bpfbench/internal/tracefs"
	"bpfbench/report"
)

func TestFetchResolve(t *testing.T) {
	for _, tt := range []struct{ name, settings, want string }{
		{"kprobe", "--args=4", "--args=4: must be from 0 to 3"},
		{"kprobe", "--args=1|--fetchargs=a=$arg1", "one or the other"},
		{"kprobe", "--engine=x", "--engine=x: must be"},
		{"kprobe", "--jit=off", "--jit: is for --engine=bpf alone"},
		{"kprobe", "--dump", "--dump: is for --engine=bpf alone"},
		{"kprobe", "--engine=bpf|--record=x", "--record=x: must be one of ringbuf, none, perf"},
		{"kprobe", "--engine=bpf|--jit=x", "--jit=x: must be one of keep, on, off"},
		{"kprobe", "--nr_loops=0", "--nr_loops=0"},
		{"kprobe", "--fetchargs=a=%nonesuch", "column 3"},
		{"kprobe", "--fetchargs=a=$retval", "retval"},
		{"eprobe", "--fetchargs=a=%di", "di"},
		{"baseline", "--target=x", "--target=x: must be one of strncmp, trigger, leaf"},
	} {
		if _, _, err := config(t, "fetcharg-"+tt.name, strings.Split(tt.settings, "|")...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: error %v, want %q in it", tt.name, tt.settings, err, tt.want)
		}
	}
}

// Every kind of probe that the kernel has fires at every call and records what the driver passed in, with every number of
// arguments, engine and way of recording; the check of a run says so, and would say if it were not so.
func TestFetchargs(t *testing.T) {
	testutils.NeedsBPF(t)
	engines := map[string][]string{"legacy": nil, "bpf": {"--engine=bpf"}, "none": {"--engine=bpf", "--record=none"}, "perf": {"--engine=bpf", "--record=perf"},
		"interpreted": {"--engine=bpf", "--jit=off"}}
	for _, kind := range fetchKinds {
		if kind.name == fetchBaseline {
			continue
		}
		for engine, settings := range engines {
			for n := range 4 {
				if n != 3 && engine != "legacy" && engine != "bpf" || n%3 != 0 && testing.Short() ||
					testing.Short() && kind.name != "kprobe" && (engine == "none" || engine == "perf") {
					continue
				}
				t.Run(fmt.Sprint(kind.name, "/", engine, "/", n), func(t *testing.T) {
					testutils.NoLeaks(t)
					settings := append([]string{fmt.Sprintf("--args=%d", n), "--nr_loops=500"}, settings...)
					res := measure(t, 1, "fetcharg-"+kind.name, settings...)
					switch {
					case res.Status == report.Skipped:
						t.Skip(res.Reason)
					case res.Status != report.OK:
						t.Fatalf("%s: %s", res.Status, res.Reason)
					}
					for _, run := range res.Runs {
						if len(run.Samples) == 0 || len(run.Twin) == 0 {
							t.Errorf("%d samples, %d with the event off", len(run.Samples), len(run.Twin))
						}
					}
				})
			}
		}
	}
}

// fired sets up a fetcharg benchmark and has its probe hit n times.
func fired(t *testing.T, name string, n uint64, settings ...string) *fetchRun {
	t.Helper()
	testutils.Exclusive(t)
	b, cfg, err := config(t, "fetcharg-"+name, append(settings, fmt.Sprintf("--nr_loops=%d", n))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, needs := range b.Requires {
		testutils.Needs(t, needs())
	}
	c := cfg.(*fetchConfig)
	target, err := c.kind.target("")
	testutils.Needs(t, err)
	r := &fetchRun{cfg: c, target: target}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.setup(harness.Env{Producers: 1, Warn: func(w report.Warning) { t.Log(w) }, Fact: func(p report.Param) { t.Log(p.Name, p.Text()) }}); err != nil {
		t.Fatal(err)
	}
	p, err := r.producer(new(harness.Worker))
	if err != nil {
		t.Fatal(err)
	}
	for done := uint64(0); done < n; {
		s, err := p.Batch()
		if err != nil {
			t.Fatal(err)
		}
		done += s.Ops
	}
	return r
}

// An event that did not fire at every call, or that recorded something else, fails the run.
func TestFetchCheck(t *testing.T) {
	testutils.NeedsBPF(t)
	r := fired(t, "uprobe", 100, "--args=3")
	if err := r.check(nil); err != nil {
		t.Errorf("a run that is as it should be: %v", err)
	}
	r.enabled.Add(1)
	if err := r.check(nil); err == nil || !strings.Contains(err.Error(), "fired 100 times in 101 calls") {
		t.Errorf("a call without a hit: %v", err)
	}
	r.enabled.Add(^uint64(0))
	other := *r.target
	other.want = func() ([3][]uint64, error) { return [3][]uint64{{passedA}, {passedB + 1}, {passedC}}, nil }
	r.target = &other
	if err := r.check(nil); err == nil || !strings.Contains(err.Error(), "recorded b=77, want [0x4e]") {
		t.Errorf("a value that is another: %v", err)
	}
}

func TestFetchargsOfTheUser(t *testing.T) {
	testutils.NeedsBPF(t)
	text := strings.TrimSuffix(strings.Replace(leaf.args[2], "c=", "text=", 1), "u32") + "string"
	r := fired(t, "uprobe", 10, "--fetchargs="+text+" comm=$comm")
	if err := r.check(nil); err != nil {
		t.Fatal(err)
	}
	last, err := r.engine.Last()
	if err != nil || last["text"] != `"bench"` || last["comm"] == "" {
		t.Errorf("the event recorded %v, %v", last, err)
	}
}

// More calls than the ring buffer has room for are made in several goes, and no record is lost.
func TestFetchRing(t *testing.T) {
	testutils.NeedsBPF(t)
	r := fired(t, "uprobe", 300000, "--args=3", "--engine=bpf")
	if room := r.engine.Room(); room == 0 || room > 150000 {
		t.Fatalf("the ring buffer has room for %d records: the test is for less than it calls", room)
	}
	if err := r.check(nil); err != nil {
		t.Error(err)
	}
}

// The program is printed with a comment for each fetcharg.
func TestFetchDump(t *testing.T) {
	testutils.NeedsBPF(t)
	_, cfg, err := config(t, "fetcharg-uprobe", "--args=2", "--engine=bpf", "--dump")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if asked, err := cfg.(*fetchConfig).Dump(&out); !asked || err != nil {
		t.Fatalf("asked: %v, %v", asked, err)
	}
	for _, arg := range leaf.args[:2] {
		if !strings.Contains(out.String(), "; "+arg) {
			t.Errorf("no comment on %s in\n%s", arg, &out)
		}
	}
}

// options is an instance of tracefs with options.
type options map[string]bool

func (o options) HasOption(name string) bool { _, has := o[name]; return has }

func (o options) SetOption(name string, on bool) error {
	o[name] = on
	return nil
}

// A kernel that compiles fetchargs itself is told which engine to use; on another, only its interpreter can be chosen.
func TestNativeEngine(t *testing.T) {
	for engine, off := range map[string]bool{engineLegacy: true, engineNative: false} {
		with := options{nativeOption: !off}
		if err := chooseEngine(with, engine); err != nil || with[nativeOption] != off {
			t.Errorf("%s: %s=%v, %v", engine, nativeOption, with[nativeOption], err)
		}
	}
	if err := chooseEngine(options{}, engineLegacy); err != nil {
		t.Error(err)
	}
	if err := chooseEngine(options{}, engineNative); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), nativeOption) {
		t.Errorf("error %v", err)
	}
}

// The kernel's interpreter is not asked for what damages the kernel, and the error says what can be done.
func TestFetchHarmless(t *testing.T) {
	version, err := fetcharg.ParseVersion(host.Facts().Kernel)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		fetchargs string
		refused   bool
	}{
		{"a=$arg1:symstr b=$arg2", version.Before(fetcharg.Version{Major: 7})},
		{"x=$current->in_execve", true},
		{"sock->sk->__sk_common.skc_reuse", true},
		{`x=$current->in_execve pad=\0`, false},
		{"x=$current->in_execve:u8", false},
		{"a=$arg1 b=$arg2", false},
	} {
		args, err := fetcharg.Parse(tt.fetchargs)
		if err != nil {
			t.Fatal(err)
		}
		_, err = newLegacy(fetcharg.Event{Kind: fetcharg.Kprobe, Target: "inet_listen", Group: tracefs.Prefix + "x", Name: "x", Args: args}, "none such")
		if got := err != nil && strings.Contains(err.Error(), "--engine=bpf"); got != tt.refused {
			t.Errorf("%s: error %v", tt.fetchargs, err)
		}
	}
}

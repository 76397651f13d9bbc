package suite

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/cpuset"
	"bpfbench/internal/testutils"
	"bpfbench/report"
)

// config returns the configuration of benchmark name with the settings, each a flag and its value.
func config(t *testing.T, name string, settings ...string) (*harness.Benchmark, harness.Config, error) {
	t.Helper()
	for _, b := range harness.All() {
		if b.Name != name {
			continue
		}
		cfg := b.New()
		fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
		cfg.Flags(fs)
		if err := fs.Parse(settings); err != nil {
			t.Fatal(err)
		}
		return b, cfg, cfg.Resolve()
	}
	t.Fatalf("there is no benchmark %s", name)
	return nil, nil, nil
}

// runs is how many runs tests have: two, so that there is a set-up behind another, but one where time is short.
func runs() int {
	if testing.Short() {
		return 1
	}
	return 2
}

// measure runs a configuration for 25 ms a run. Its producers are bound where there are CPUs for them, so that samples
// are whole.
func measure(t *testing.T, producers int, name string, settings ...string) *report.Result {
	t.Helper()
	testutils.Exclusive(t)
	b, cfg, err := config(t, name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	r := &harness.Runner{Plan: report.Plan{Duration: uint64(25*time.Millisecond) * uint64(runs()), Warmup: uint64(5 * time.Millisecond), Runs: runs(), Seed: rand.Uint64()}}
	_, consumers := b.Workers(cfg)
	rec := &report.Record{Results: []*report.Result{{Benchmark: name, Producers: producers, Consumers: consumers.Default}}}
	job := &harness.Job{Benchmark: b, Config: cfg, Producers: producers, Consumers: consumers.Default}
	if usable, err := cpuset.Usable(); err != nil {
		t.Fatal(err)
	} else if producers <= len(usable) {
		job.ProdCPUs = usable[:producers]
	}
	if err := r.Run(t.Context(), rec, []*harness.Job{job}); err != nil {
		t.Fatal(err)
	}
	return rec.Results[0]
}

// smaller are settings for benchmarks whose defaults take long to set up.
var smaller = map[string][]string{}

// Every benchmark runs twice in one process (in short tests once), and leaves nothing behind.
func TestEveryBenchmark(t *testing.T) {
	for _, b := range harness.All() {
		t.Run(b.Name, func(t *testing.T) {
			if len(b.Requires) > 0 {
				testutils.NeedsBPF(t)
			}
			testutils.NoLeaks(t)
			for range runs() {
				switch res := measure(t, b.Producers.Default, b.Name, smaller[b.Name]...); res.Status {
				case report.Skipped:
					t.Skip(res.Reason)
				case report.OK:
					if len(res.Runs) != runs() {
						t.Errorf("%d runs, want %d", len(res.Runs), runs())
					}
				default:
					t.Fatalf("%s: %s", res.Status, res.Reason)
				}
			}
		})
	}
}

// A description is what help, lists and errors are made of.
func TestDescriptions(t *testing.T) {
	for _, b := range harness.All() {
		if b.Op == "" || !strings.HasSuffix(b.Summary, ".") || !strings.HasSuffix(b.Timing, ".") || b.Producers.Max == 0 {
			t.Errorf("%s: its description is not complete", b.Name)
		}
		_, cfg, err := config(t, b.Name)
		if err != nil {
			t.Errorf("%s: its defaults are refused: %v", b.Name, err)
		}
		if _, ok := cfg.(interface{ FlagValues() map[string][]string }); !ok {
			t.Errorf("%s: a shell completes no values of its flags", b.Name)
		}
	}
}

func TestNoop(t *testing.T) {
	for _, method := range []string{methodBatch, methodCounter} {
		res := measure(t, 2, "noop", "--nr_loops=1000", "--method="+method)
		if res.Status != report.OK {
			t.Fatalf("%s: %s: %s", method, res.Status, res.Reason)
		}
		for _, run := range res.Runs {
			for _, s := range run.Samples {
				if s.Ops%1000 != 0 || s.Elapsed == 0 {
					t.Errorf("%s: sample %+v, want a multiple of 1000 operations", method, s)
				}
			}
		}
	}
	for _, settings := range [][]string{{"--method=x"}, {"--nr_loops=0"}} {
		if _, _, err := config(t, "noop", settings...); err == nil {
			t.Errorf("%v is accepted", settings)
		}
	}
}

// setup makes a configuration ready for one run.
func setup(t *testing.T, ctx context.Context, producers int, name string, settings ...string) (*harness.Instance, error) {
	t.Helper()
	_, cfg, err := config(t, name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Setup(ctx, harness.Env{Producers: producers, Warn: func(w report.Warning) { t.Log(w) }, Fact: func(p report.Param) { t.Log(p.Name, p.Text()) }})
}

// A set-up that is interrupted ends soon, and undoes itself.
func TestSetupInterrupted(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := setup(t, ctx, 1, "bpf-hashmap-lookup", "--nr_entries=1M", "--map_flags=no_prealloc"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

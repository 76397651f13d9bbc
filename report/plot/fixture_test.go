package plot

import (
	"bytes"
	"flag"
	"math"
	"os"
	"testing"

	"bpfbench/report"
)

var update = flag.Bool("update", false, "rewrite the files of testdata")

// sweepRates are what the kernel's own bench printed for 4096, 8192 ... 65536 entries of 65536, and its deviation, in M/s
// (the commit message of its hash map lookup, shared/seeds/hashmap-lookup.txt).
var sweepRates = [][2]float64{
	{50.739, 0.018}, {47.751, 0.015}, {45.153, 0.013}, {43.826, 0.014}, {41.971, 0.012}, {41.034, 0.015}, {39.946, 0.012}, {38.256, 0.014},
	{36.580, 0.018}, {36.252, 0.012}, {35.200, 0.012}, {34.061, 0.009}, {34.374, 0.010}, {33.244, 0.011}, {32.182, 0.013}, {31.497, 0.016},
}

// seedSweep is that sweep as a record: the lookups that were done in the time that the rates of nr_loops stand for.
func seedSweep() *report.Record {
	rec := &report.Record{Schema: report.Schema, Session: report.Session{
		Tool: "seed", Args: []string{"-d2", "-a", "bpf-hashmap-lookup"}, Unit: report.Nanoseconds,
		Plan:  report.Plan{Duration: 2e9, Warmup: 1e9, Runs: 6, Seed: 1},
		Hosts: []report.Host{{Kernel: "6.2.0-rc5+", Arch: "x86_64", CPUModel: "AMD Ryzen 9 3950X 16-Core Processor", CPUs: 32}},
	}}
	for i, rate := range sweepRates {
		entries := 4096 * (i + 1)
		const loops = 1000000
		r := &report.Result{
			Benchmark: "bpf-hashmap-lookup", Op: "lookup", Producers: 1, Pinned: true, Status: report.OK, Varied: []string{"nr_entries"},
			Params: []report.Param{
				{Name: "key_size", Value: 4}, {Name: "max_entries", Value: 65536}, {Name: "nr_entries", Value: entries},
				{Name: "nr_loops", Value: loops}, {Name: "map_flags", Value: "0x40", Note: "zero_seed"},
			},
			Facts: []report.Param{{Name: "full", Value: entries * 100 / 65536, Unit: "%"}},
		}
		for round := range 6 {
			// Six values whose mean is 0 and whose deviation is 1.
			off := []float64{-1, 1, -0.5, 0.5, -1.118, 1.118}[round] * rate[1]
			elapsed := uint64(math.Round(loops * 1e3 / (rate[0] + off)))
			r.Runs = append(r.Runs, &report.Run{Round: round, Samples: []report.Sample{{CPU: 1, Elapsed: elapsed, Ops: uint64(loops / entries * entries)}}})
		}
		rec.Results = append(rec.Results, r)
	}
	return rec
}

// ofRate is a result of six runs that scatter a little around a rate, in operations a second.
func ofRate(benchmark string, rate float64, params ...report.Param) *report.Result {
	r := &report.Result{Benchmark: benchmark, Op: "event", Params: params, Producers: 1, Pinned: true, Status: report.OK}
	for round := range 6 {
		r.Runs = append(r.Runs, &report.Run{Round: round, Samples: []report.Sample{
			{Elapsed: 1e9, Ops: uint64(rate * (1 + 0.004*float64(round*7%5-2)))},
		}})
	}
	return r
}

// seedFetchargs are the three tables of shared/seeds/fetcharg.txt as one record.
func seedFetchargs() *report.Record {
	rec := &report.Record{Schema: report.Schema, Session: report.Session{Unit: report.Nanoseconds, Hosts: []report.Host{
		{Kernel: "6.19.0-rc1", Arch: "x86_64", CPUModel: "Intel(R) Core(TM) i7-8565U CPU @ 1.80GHz", CPUs: 8, Hypervisor: "kvm"},
	}}}
	for _, table := range []struct {
		engine, jit string
		rates       map[string][4]float64
	}{
		{"bpf", "on", map[string][4]float64{"kprobe": {9740841, 8664195, 7944956, 7608274}, "fprobe": {10827749, 9220918, 7992512, 7683757}, "eprobe": {6746389, 6245994, 5319037, 4845406}}},
		{"bpf", "off", map[string][4]float64{"kprobe": {7092949, 5834913, 3848776, 3443408}, "fprobe": {9426302, 6441734, 4350313, 3710814}, "eprobe": {5681716, 4958113, 3940999, 3953434}}},
		{"legacy", "on", map[string][4]float64{"kprobe": {9055348, 8488351, 7219595, 6453928}, "fprobe": {10859326, 9288801, 7492518, 6607046}, "eprobe": {6987128, 5114526, 5055084, 4803759}}},
	} {
		for _, probe := range []string{"kprobe", "fprobe", "eprobe"} {
			for n, rate := range table.rates[probe] {
				rec.Results = append(rec.Results, ofRate("fetcharg-"+probe, rate, report.Param{Name: "args", Value: n},
					report.Param{Name: "engine", Value: table.engine}, report.Param{Name: "jit", Value: table.jit}))
			}
		}
	}
	rec.Results = append(rec.Results, ofRate("fetcharg-baseline", 245433525, report.Param{Name: "target", Value: "strncmp"}))
	return rec
}

// kernels is a geometric sweep of three kernels with two CPUs.
func kernels(unit report.Unit) *report.Record {
	rec := seedSweep()
	rec.Session.Unit = unit
	rec.Session.Hosts = []report.Host{
		{Kernel: "6.1.0-57-cloud-amd64", Arch: "x86_64", CPUModel: "QEMU Virtual CPU", CPUs: 2, Accel: "tcg"},
		{Kernel: "6.12.117+deb13-cloud-amd64", Arch: "x86_64", CPUModel: "QEMU Virtual CPU", CPUs: 2, Accel: "tcg"},
		{Kernel: "7.3.4+deb14-cloud-amd64", Arch: "x86_64", CPUModel: "QEMU Virtual CPU", CPUs: 2, Accel: "tcg"},
	}
	base := rec.Results
	rec.Results = nil
	for host := range rec.Session.Hosts {
		for i := range 5 {
			r := *base[i]
			r.Host, r.Producers = host, 2
			r.Params = append([]report.Param(nil), r.Params...)
			r.Params[2].Value = 4096 << i
			r.Runs = nil
			for _, run := range base[3*i].Runs {
				s := run.Samples[0]
				s.Elapsed += uint64(1e6 * host)
				t := s
				t.Worker, t.CPU, t.Elapsed = 1, 0, t.Elapsed+4e5
				r.Runs = append(r.Runs, &report.Run{Round: run.Round, Samples: []report.Sample{s, t}})
			}
			rec.Results = append(rec.Results, &r)
		}
	}
	return rec
}

// TestSeedSweep holds that testdata has the sweep as the file that bench would write.
func TestSeedSweep(t *testing.T) {
	var b bytes.Buffer
	rec := seedSweep()
	w := report.NewJSONL(&b)
	live := *rec
	live.Results = nil
	for _, r := range rec.Results {
		c := *r
		c.Runs = nil
		live.Results = append(live.Results, &c)
	}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(w.Begin(&live))
	for round := range 6 {
		for i, r := range rec.Results {
			live.Results[i].Runs = append(live.Results[i].Runs, r.Runs[round])
			check(w.Run(&live, i))
		}
	}
	check(w.End(&live))
	const path = "testdata/sweep.jsonl"
	if *update {
		check(os.MkdirAll("testdata", 0o755))
		check(os.WriteFile(path, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	check(err)
	if !bytes.Equal(want, b.Bytes()) {
		t.Errorf("%s is another record (-update rewrites it)", path)
	}
}

// readSweep reads the file.
func readSweep(t *testing.T) *report.Record {
	t.Helper()
	f, err := os.Open("testdata/sweep.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rec, err := report.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

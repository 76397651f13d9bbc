package suite

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"bpfbench/bench/harness"
	"bpfbench/internal/cpuset"
	"bpfbench/internal/testutils"
	"bpfbench/report"
)

func TestRingbufResolve(t *testing.T) {
	page := os.Getpagesize()
	for _, tt := range []struct {
		line     string
		problems []string
	}{
		{line: "pb-lib --rb-batch-cnt=50"}, // not sampled, so its rate does not matter
		{line: "rb-custom --rb-b2b --rb-sampled --rb-use-output"},
		{line: "rb-lib --rb-overwrite --rb-bench-producer --rb-use-output"},
		{line: "rb-lib --rb-sampled --rb-batch-cnt=1"},
		{line: fmt.Sprintf("rb-lib --rb-size=%d", page)},
		{line: "pb-custom --rb-size=1M --rb-record-size=32768"},
		{line: "rb-lib --rb-sampled --rb-size=64K --rb-sample-rate=4095"},
		{"rb-lib --rb-sampled --rb-size=64K --rb-sample-rate=4096", []string{"room for 4095 records", "lower it or raise --rb-size"}},
		{"pb-lib --rb-sampled --rb-size=64K --rb-sample-rate=2730", []string{"room for 2729 records"}},
		{"rb-custom --rb-b2b --rb-sampled --rb-batch-cnt=499", []string{"--rb-batch-cnt=499", "--rb-sample-rate=500"}},
		{"pb-custom --rb-b2b --rb-sampled --rb-batch-cnt=499", []string{"--rb-batch-cnt=499", "--rb-sample-rate=500"}},
		{"rb-lib --rb-bench-producer", []string{"--rb-bench-producer", "add --rb-overwrite"}},
		{"rb-lib --rb-overwrite", []string{"--rb-overwrite", "add --rb-bench-producer"}},
		{"rb-lib --rb-overwrite --rb-bench-producer --rb-b2b --rb-sampled", []string{"--rb-b2b: with", "--rb-sampled: with"}},
		{"rb-custom --rb-overwrite --rb-bench-producer", []string{"take rb-lib"}},
		{"pb-lib --rb-overwrite --rb-bench-producer --rb-use-output",
			[]string{"--rb-use-output: perf buffers", "--rb-overwrite: is for ring", "--rb-bench-producer: is for ring"}},
		{"rb-lib --rb-size=500K", []string{"--rb-size=512000", "the nearest is 262144 and 524288"}},
		{"rb-lib --rb-size=1", []string{fmt.Sprintf("the nearest is %d", page)}},
		{"rb-lib --rb-size=3G", []string{"the nearest is 1073741824"}},
		{fmt.Sprintf("rb-lib --rb-size=%d --rb-record-size=32768", page), []string{"--rb-record-size=32768: does not fit"}},
		{"rb-lib --rb-batch-cnt=0 --rb-sample-rate=0 --rb-record-size=7 --trigger=x",
			[]string{"--rb-batch-cnt=0", "--rb-sample-rate=0", "--rb-record-size=7", "--trigger=x"}},
		{"rb-lib --rb-batch-cnt=4001", []string{"--rb-batch-cnt=4001: must be from 1 to 4000"}},
		{"pb-lib --rb-batch-cnt=2001", []string{"--rb-batch-cnt=2001", "--rb-sampled"}},
	} {
		words := strings.Fields(tt.line)
		_, _, err := config(t, words[0], words[1:]...)
		if tt.problems == nil && err != nil {
			t.Errorf("%s: %v", tt.line, err)
		}
		for _, p := range tt.problems {
			if err == nil || !strings.Contains(err.Error(), p) {
				t.Errorf("%s: error %v, want %q in it", tt.line, err, p)
			}
		}
	}
}

func TestRingbufWorkers(t *testing.T) {
	for line, want := range map[string][4]int{ // producers up to, consumers from, by default, up to
		"rb-lib":             {harness.AnyNumber, 1, 1, 1},
		"pb-custom --rb-b2b": {1, 1, 1, 1},
		"rb-lib --rb-overwrite --rb-bench-producer": {harness.AnyNumber, 0, 0, 0},
	} {
		words := strings.Fields(line)
		b, cfg, err := config(t, words[0], words[1:]...)
		p, c := b.Workers(cfg)
		if got := [4]int{p.Max, c.Min, c.Default, c.Max}; got != want || err != nil {
			t.Errorf("%s: %v (%v), want %v", line, got, err, want)
		}
	}
}

// ringbufLines are all combinations of flags that there can be, by benchmark and number of producers, which the last word says;
// then some of sizes and rates. A short test has those with two producers only, where there can be two.
func ringbufLines() (lines []string) {
	const trigger = " --trigger=test_run" // others take long to attach
	ways := []string{"rb-lib", "rb-custom", "pb-lib", "pb-custom", "rb-custom --rb-use-output", "rb-lib --rb-use-output"}
	for _, way := range append(ways, "rb-lib --rb-overwrite --rb-bench-producer", "rb-lib --rb-overwrite --rb-bench-producer --rb-use-output") {
		for _, kind := range []string{"", " --rb-sampled", " --rb-b2b", " --rb-b2b --rb-sampled"} {
			b2b := strings.Contains(kind, "b2b")
			if kind != "" && strings.Contains(way, "overwrite") {
				continue
			}
			if b2b || !testing.Short() {
				lines = append(lines, way+kind+trigger+" -p1")
			}
			if !b2b {
				lines = append(lines, way+kind+trigger+" -p2")
			}
		}
	}
	if testing.Short() {
		return lines
	}
	for _, way := range ways[:4] {
		for _, kind := range []string{" --rb-sampled --rb-sample-rate=2000", " --rb-size=64K", " --rb-record-size=1000", " --rb-batch-cnt=1"} {
			lines = append(lines, way+kind+trigger+" -p2")
		}
	}
	return lines
}

// What is produced is consumed or dropped, whatever the flags, the reader and the number of producers: a run that is not so
// fails.
func TestRingbufConservation(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, line := range ringbufLines() {
		t.Run(strings.ReplaceAll(line, " ", ""), func(t *testing.T) {
			words := strings.Fields(line)
			last := len(words) - 1
			producers := 1
			if words[last] == "-p2" {
				producers = 2
			}
			res := measure(t, producers, words[0], words[1:last]...)
			switch {
			case res.Status == report.Skipped:
				t.Skip(res.Reason)
			case res.Status != report.OK:
				t.Fatalf("%s: %s", res.Status, res.Reason)
			}
			if want := (report.Param{Name: "triggered_by", Value: "test_run"}); !slices.Contains(res.Facts, want) {
				t.Errorf("facts %v, want %v", res.Facts, want)
			}
			for _, run := range res.Runs {
				if res.Consumers > 0 && (len(run.Gauges) != 1 || run.Gauges[0].Name != "allocs_per_record" || !(run.Gauges[0].Value < 1)) {
					t.Errorf("gauges %v, want less than an allocation a record", run.Gauges)
				}
			}
		})
	}
}

// loaded is a benchmark made ready, without producers and consumers that run by themselves.
func loaded(t *testing.T, name string, settings ...string) *bufferRun {
	t.Helper()
	_, cfg, err := config(t, name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	r := &bufferRun{cfg: cfg.(*bufferConfig), producers: 1}
	load := r.loadPerf
	if r.cfg.ring {
		load = r.loadRing
	}
	if err := load(); err != nil {
		t.Fatal(errors.Join(err, r.close()))
	}
	if err := r.open(); err != nil {
		t.Fatal(errors.Join(err, r.close()))
	}
	return r
}

// finish lets the consumer read what is left, and returns what check says after spoil.
func (r *bufferRun) finish(spoil func()) error {
	if err := r.reader.Wake(); err != nil {
		return err
	}
	if err := r.consume(new(harness.Worker)); err != nil {
		return err
	}
	spoil()
	return r.check(new(report.Run))
}

// Whatever of the counts is wrong, the run fails.
func TestRingbufCheck(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, name := range []string{"rb-custom", "pb-custom"} {
		for _, tt := range []struct {
			spoil func(*bufferRun)
			want  string
		}{
			{func(*bufferRun) {}, ""},
			{func(r *bufferRun) { r.header(0).Ops++ }, "of 10 records, 11 were written and 0 dropped"},
			{func(r *bufferRun) { r.header(0).Counts[0]++ }, "of 10 records, 10 were written and 1 dropped"},
			{func(r *bufferRun) { r.header(1).Calls++ }, "of 10 records, 0 were written and 0 dropped"},
			{func(r *bufferRun) { r.taken.Records-- }, "10 records were written and 9 read"},
			{func(r *bufferRun) { r.taken.Records++ }, "10 records were written and 11 read"},
			{func(r *bufferRun) { r.taken.Lost++ }, "0 records were dropped, and the buffer says 1"},
		} {
			r := loaded(t, name, "--rb-batch-cnt=10", "--trigger=test_run")
			if err := r.pull(0, r.caller(0)); err != nil {
				t.Error(err)
			}
			switch err := r.finish(func() { tt.spoil(r) }); {
			case tt.want == "" && err != nil, tt.want != "" && (err == nil || err.Error() != tt.want):
				t.Errorf("%s: error %v, want %q", name, err, tt.want)
			}
			if err := r.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// What a full buffer has no room for is counted as dropped, and perf buffers say so, too.
func TestRingbufDrops(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, name := range []string{"rb-lib", "rb-custom", "pb-lib", "pb-custom"} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread() // and its thread ends with the test
			usable, err := cpuset.Usable()
			if err == nil {
				err = cpuset.Pin(usable[0])
			}
			if err != nil {
				t.Fatal(err)
			}
			r := loaded(t, name, "--rb-size=64K", "--rb-batch-cnt=1000", "--rb-record-size=1000", "--trigger=test_run")
			defer func() {
				if err := r.close(); err != nil {
					t.Error(err)
				}
			}()
			var dropped uint64 // by the first batch
			for range 2 {
				if err := r.pull(0, r.caller(0)); err != nil {
					t.Fatal(err)
				}
				if dropped > 0 {
					break
				}
				dropped = r.header(0).Counts[0]
				if room := r.cfg.room(); dropped == 0 || dropped > 1000-room {
					t.Errorf("%d records were dropped of 1000, for which there was room for %d", dropped, room)
				}
				taken, err := r.reader.Read()
				if err != nil {
					t.Fatal(err)
				}
				r.taken = taken
			}
			if err := r.finish(func() {}); err != nil {
				t.Error(err)
			}
			if want := map[bool]uint64{false: dropped}[r.cfg.ring]; r.taken.Lost != want {
				t.Errorf("the buffer says that %d records were lost, want %d", r.taken.Lost, want)
			}
		})
	}
}

// The verifier follows the largest batch to its end.
func TestRingbufLargestBatch(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	lines := []string{"rb-custom --rb-sampled", "rb-custom --rb-use-output --rb-sampled", "pb-custom --rb-sampled"}
	if testing.Short() {
		lines = lines[:1] // of the most branches
	}
	for _, line := range lines {
		words := append(strings.Fields(line), "--rb-size=1M", "--trigger=test_run", fmt.Sprintf("--rb-batch-cnt=%d", maxBatch))
		r := loaded(t, words[0], words[1:]...)
		if err := r.pull(0, r.caller(0)); err != nil {
			t.Error(err)
		}
		if err := r.finish(func() {}); err != nil || r.taken.Records != maxBatch {
			t.Errorf("%s: %d records were read, want %d (%v)", line, r.taken.Records, maxBatch, err)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
}

// With CPU 1 offline, CPU 2 has its own perf buffer, or there is no measurement.
func TestOfflineCPUBuffers(t *testing.T) {
	offline(t, "1")
	testutils.NeedsBPF(t)
	runtime.LockOSThread() // and its thread ends with the test
	if err := cpuset.Pin(2); err != nil {
		t.Fatal(err)
	}
	if res := measure(t, 1, "pb-lib", "--trigger=test_run"); res.Status != report.Skipped || !strings.Contains(res.Reason, "CPU 2") {
		t.Errorf("pb-lib: %s: %s, want a skip, as CPU 2 would have no buffer", res.Status, res.Reason)
	}
	r := loaded(t, "pb-custom", "--rb-batch-cnt=10", "--trigger=test_run")
	if err := r.pull(0, r.caller(0)); err != nil {
		t.Error(err)
	}
	if err := r.finish(func() {}); err != nil || r.taken.Records != 10 {
		t.Errorf("pb-custom: %d records were read, want 10 (%v)", r.taken.Records, err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}

// The lines of the suite can be run, and none is there twice.
func TestRingbufSuite(t *testing.T) {
	for _, whole := range []bool{false, true} {
		seen := make(map[string]bool)
		for _, line := range bufferLines(whole) {
			own := slices.DeleteFunc(slices.Clone(line[1:]), func(f string) bool {
				return strings.HasPrefix(f, "-p") || strings.HasPrefix(f, "--prod-affinity=") || strings.HasPrefix(f, "--cons-affinity=")
			})
			text := strings.Join(line, " ")
			if _, _, err := config(t, line[0], own...); err != nil || seen[text] {
				t.Errorf("%s: %v, there already: %v", text, err, seen[text])
			}
			seen[text] = true
		}
		t.Log(len(seen), "lines")
	}
}

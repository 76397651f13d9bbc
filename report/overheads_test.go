package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// seed is the three tables of the text that the fetcharg benchmarks go back to: rates in loops a second, and the overheads
// in ns that it gives for them.
var seed = []struct {
	name     string
	baseline uint64
	rows     map[string][4]uint64
	overhead map[string][4]string
}{
	{"bpf, JIT on", 298882359,
		map[string][4]uint64{"kprobe": {9740841, 8664195, 7944956, 7608274}, "fprobe": {10827749, 9220918, 7992512, 7683757}, "eprobe": {6746389, 6245994, 5319037, 4845406}},
		map[string][4]string{"kprobe": {"99.31", "12.76", "23.21", "28.78"}, "fprobe": {"89.01", "16.09", "32.76", "37.79"}, "eprobe": {"144.88", "11.88", "39.78", "58.15"}}},
	{"bpf, JIT off", 84067374,
		map[string][4]uint64{"kprobe": {7092949, 5834913, 3848776, 3443408}, "fprobe": {9426302, 6441734, 4350313, 3710814}, "eprobe": {5681716, 4958113, 3940999, 3953434}},
		map[string][4]string{"kprobe": {"129.09", "30.40", "118.84", "149.42"}, "fprobe": {"94.19", "49.15", "123.78", "163.40"}, "eprobe": {"164.11", "25.69", "77.74", "76.94"}}},
	{"legacy", 245433525,
		map[string][4]uint64{"kprobe": {9055348, 8488351, 7219595, 6453928}, "fprobe": {10859326, 9288801, 7492518, 6607046}, "eprobe": {6987128, 5114526, 5055084, 4803759}},
		map[string][4]string{"kprobe": {"106.36", "7.38", "28.08", "44.51"}, "fprobe": {"88.01", "15.57", "41.38", "59.27"}, "eprobe": {"139.05", "52.40", "54.70", "65.05"}}},
}

var seedRows = []string{"kprobe", "fprobe", "eprobe"}

// ofRate is a result of one run at a rate.
func ofRate(benchmark string, rate uint64, params ...Param) *Result {
	return &Result{Benchmark: benchmark, Status: OK, Params: params, Facts: []Param{{Name: TargetFact, Value: "strncmp"}},
		Runs: []*Run{{Samples: []Sample{{Ops: rate, Elapsed: 1e9}}}}}
}

// The overheads of all three tables follow from their rates, to the digit.
func TestSeedOverheads(t *testing.T) {
	checked := 0
	for _, table := range seed {
		rec := &Record{Session: Session{Unit: Nanoseconds, Hosts: []Host{{}}}, Results: []*Result{ofRate("fetcharg-baseline", table.baseline, Param{Name: TargetFact, Value: "strncmp"})}}
		for _, name := range seedRows {
			for n, rate := range table.rows[name] {
				rec.Results = append(rec.Results, ofRate("fetcharg-"+name, rate, Param{Name: ArgsParam, Value: n}))
				base := table.baseline
				if n > 0 {
					base = table.rows[name][0]
				}
				if got, want := fmt.Sprintf("%.2f", Overhead(float64(rate), float64(base))), table.overhead[name][n]; got != want {
					t.Errorf("%s: %s with %d fetchargs: %s ns, want %s", table.name, name, n, got, want)
				}
				checked++
			}
		}
		var out bytes.Buffer
		if err := NewOverheads(&out, TextOptions{}).End(rec); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		for _, name := range seedRows {
			for i, line := range lines {
				if !strings.HasPrefix(line, title1(name)) {
					continue
				}
				rates, overheads := strings.Fields(line), strings.Fields(lines[i+1])
				for n := range 4 {
					if rates[n+1] != fmt.Sprint(table.rows[name][n]) || overheads[n] != table.overhead[name][n] {
						t.Errorf("%s: %s with %d fetchargs is shown as %s, %s; want %d, %s", table.name, name, n, rates[n+1], overheads[n], table.rows[name][n], table.overhead[name][n])
					}
					checked++
				}
			}
		}
	}
	if checked != 72 {
		t.Errorf("%d values checked, want 36 computed and 36 shown", checked)
	}
}

// A table for each setting, a row that says why it is empty, and differences that are too small to be known.
func TestOverheadsTable(t *testing.T) {
	rec := &Record{Session: Session{Unit: Nanoseconds, Hosts: []Host{{}}}, Results: []*Result{ofRate("fetcharg-baseline", 1e9, Param{Name: TargetFact, Value: "strncmp"})}}
	for _, engine := range []string{"legacy", "bpf"} {
		for n := range 2 {
			r := ofRate("fetcharg-kprobe", 1e7, Param{Name: ArgsParam, Value: n}, Param{Name: "engine", Value: engine})
			r.Runs = append(r.Runs, &Run{Samples: []Sample{{Ops: 1e7 + 1e5*uint64(n), Elapsed: 1e9}}})
			rec.Results = append(rec.Results, r)
		}
		rec.Results = append(rec.Results, &Result{Benchmark: "fetcharg-fprobe", Status: Skipped, Reason: "needs Linux 6.5",
			Params: []Param{{Name: ArgsParam, Value: 0}, {Name: "engine", Value: engine}}})
	}
	var out bytes.Buffer
	if err := NewOverheads(&out, TextOptions{}).End(rec); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"engine=legacy:", "engine=bpf:", "99.00", "<0.99", "skipped", "[1] Fprobe is skipped: needs Linux 6.5", "Baseline strncmp"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if len([]rune(line)) > columns || strings.Contains(line, "cpu") || strings.HasSuffix(line, " ") {
			t.Errorf("a line is too wide, or has the letters that are for other lines: %q", line)
		}
	}
}

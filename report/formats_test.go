package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchproc"
	"golang.org/x/perf/benchunit"
)

func toCSV(b *bytes.Buffer) Writer      { return NewCSV(b) }
func toGo(b *bytes.Buffer) Writer       { return NewGo(b) }
func toMarkdown(b *bytes.Buffer) Writer { return NewMarkdown(b) }

// tables are the formats that are made from records and cannot be read back as such.
var tables = map[string]func(*bytes.Buffer) Writer{"csv": toCSV, "bench": toGo, "md": toMarkdown}

func TestFormats(t *testing.T) {
	for file, names := range map[string]string{
		"csv":   "mixed exact unpinned-counter zero-ops form-one-run",
		"bench": "mixed exact table-kernels form-memory", // not .go, which tools would take for source
		"md":    "mixed exact two-cpus unpinned-counter interrupted failed table-kernels table-benchmarks form-memory form-hits table-gauges",
	} {
		to := tables[file]
		for _, name := range strings.Fields(names) {
			rec := mixed()
			if make := texts[name]; make != nil {
				rec = make()
			}
			golden(t, name+"."+file, write(t, rec, to))
		}
	}
}

// TestCSV holds that every row has the cells of the header, and that the values are those of the runs.
func TestCSV(t *testing.T) {
	for name, make := range texts {
		rec := make()
		rows, err := csv.NewReader(bytes.NewReader(write(t, rec, toCSV))).ReadAll() // which checks the number of cells
		must(t, err)
		header := rows[0]
		cell := func(row []string, name string) string { return row[slices.Index(header, name)] }
		medians := map[string][]float64{}
		measured := map[string]bool{}
		for _, row := range rows[1:] {
			key := cell(row, "benchmark") + cell(row, "kernel")
			if i := slices.Index(header, "nr_entries"); i >= 0 {
				key += row[i]
			}
			measured[key+cell(row, "status")] = true
			if cell(row, "metric") == "rate" && cell(row, "cpu") == "total" {
				v, err := strconv.ParseFloat(cell(row, "value"), 64)
				must(t, err)
				medians[key] = append(medians[key], v)
			}
		}
		if len(measured) != len(rec.Results) {
			t.Errorf("%s: %d results, want %d", name, len(measured), len(rec.Results))
		}
		for _, r := range rec.Results {
			key := r.Benchmark + kernelOf(rec, r)
			if p, ok := lookup(r.Params, "nr_entries"); ok {
				key += bare(p)
			}
			s := Summarize(r)
			if unfit(r) != "" || s.Rate == nil {
				if len(medians[key]) > 0 {
					t.Errorf("%s: %s has rates", name, key)
				}
				continue
			}
			if d := describe(medians[key]); d == nil || d.Median != s.Rate.Median || d.N != s.Runs {
				t.Errorf("%s: %s: %+v, want %+v", name, key, d, s.Rate.Summary)
			}
		}
	}
}

func TestCSVColumns(t *testing.T) {
	rec := aRecord(aResult(4096, 19708000, 1, 1), ended(aResult(1, 0, 0, 1), Skipped, "no, \"not\"\nhere"))
	rec.Results[0].Params = []Param{{Name: "value", Value: json.Number("7")}, {Name: "kernel", Value: "a;b", Note: "x"}}
	rows, err := csv.NewReader(bytes.NewReader(write(t, rec, toCSV))).ReadAll()
	must(t, err)
	if got := strings.Join(rows[0][9:12], " "); got != "param_value param_kernel key_size" {
		t.Error(got)
	}
	if got := strings.Join(rows[1][9:12], " "); got != "7 a;b " {
		t.Errorf("%q", got)
	}
	if last := rows[len(rows)-1]; last[4] != "skipped" || last[5] != "no, \"not\"\nhere" || last[len(last)-1] != "" {
		t.Errorf("%q", last)
	}
}

// TestBenchstat holds that what benchstat reads the format with finds no fault in it, and the medians of the record.
func TestBenchstat(t *testing.T) {
	for name, make := range texts {
		rec := make()
		reader := benchfmt.NewReader(bytes.NewReader(write(t, rec, toGo)), name)
		var parser benchproc.ProjectionParser
		rows, err := parser.Parse(".fullname,kernel", nil)
		must(t, err)
		values := map[string][]float64{}
		for reader.Scan() {
			switch r := reader.Result().(type) {
			case *benchfmt.SyntaxError:
				t.Errorf("%s: %v", name, r)
			case *benchfmt.Result:
				for _, v := range r.Values {
					key := rows.Project(r).String() + " " + v.Unit
					values[key] = append(values[key], v.Value)
				}
			}
		}
		must(t, reader.Err())
		for unit, better := range map[string]int{"ns/op": -1, "events/s": 1, "insn/op": -1, "net-insn/op": -1} {
			exact := rec.Session.Unit == Instructions
			if known := strings.Contains(unit, "insn") == exact; known && reader.Units().GetBetter(unit) != better {
				t.Errorf("%s: %s is better by %d", name, unit, reader.Units().GetBetter(unit))
			}
		}
		check := func(r *Result, unit string, want float64) {
			var got float64
			for key, v := range values {
				if strings.Contains(key, ".fullname:"+goName(r)+" ") && strings.Contains(key, "kernel:"+kernelOf(rec, r)) && strings.HasSuffix(key, " "+unit) {
					got = benchmath.AssumeNothing.Summary(benchmath.NewSample(v, &benchmath.DefaultThresholds), 0.95).Center
				}
			}
			if math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%s: %s: median %v %s, want %v: %v", name, goName(r), got, unit, want, values)
			}
		}
		for _, r := range rec.Results {
			s := Summarize(r)
			switch {
			case unfit(r) != "" || s.Cost == nil:
			case rec.Session.Unit == Instructions:
				check(r, "insn/op", s.Cost.Gross.Median)
			default:
				check(r, "sec/op", s.Cost.Gross.Median/1e9)
				check(r, "events/s", s.Rate.Median)
			}
		}
	}
}

// TestGoGauges holds that benchstat knows the units of gauges by their ends.
func TestGoGauges(t *testing.T) {
	rec := aRecord(aForm(FormMemory, 1, Gauge{GaugeMemoryPeak, 3 << 20, "B"}, Gauge{"gp_latency", 5e6, "ns"}, Gauge{"full", 25, "%"}, Gauge{"false_hits", 7, ""}))
	reader := benchfmt.NewReader(bytes.NewReader(write(t, rec, toGo)), "")
	for reader.Scan() {
		res, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		for unit, want := range map[string]float64{"memory_peak-B": 3 << 20, "gp_latency-sec": 5e-3, "full-%": 25, "false_hits": 7} {
			if got, ok := res.Value(unit); !ok || got != want {
				t.Errorf("%v %s, want %v", got, unit, want)
			}
		}
	}
	must(t, reader.Err())
	if benchunit.ClassOf("memory_peak-B") != benchunit.Binary {
		t.Error("bytes are not scaled by 1024")
	}
}

func TestGoName(t *testing.T) {
	for want, r := range map[string]*Result{
		"BpfHashmapLookup/producers=2":                {Benchmark: "bpf-hashmap-lookup", Producers: 2},
		"ArrayMap2/a=1.5/producers=1":                 {Benchmark: "array_map-2", Producers: 1, Params: []Param{{Name: "a", Value: 1.5, Unit: "%"}}},
		"X/path=_sys_x_y-4/consumers=1/producers=0":   {Benchmark: "x", Consumers: 1, Params: []Param{{Name: "path", Value: "/sys/x y-4"}}},
		"X/args=+u32(%di):u32/engine=bpf/producers=1": {Benchmark: "x", Producers: 1, Params: []Param{{Name: "args", Value: "+u32(%di):u32"}, {Name: "engine", Value: "bpf"}}},
	} {
		if got := goName(r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if base, parts := benchfmt.Name(goName(r)).Parts(); string(base) != want[:strings.Index(want, "/")] || len(parts) != strings.Count(want, "/") {
			t.Errorf("%s: %s, %d parts", want, base, len(parts))
		}
	}
}

// TestMarkdownTables holds that every row of a table has its cells, whatever is in them.
func TestMarkdownTables(t *testing.T) {
	records := map[string]*Record{}
	for name, make := range texts {
		records[name] = make()
	}
	rec := aSweep(0)
	for _, r := range rec.Results {
		r.Params[4].Value = "a|b\n<b>*" + bare(r.Params[2]) + "`"
	}
	records["hostile"] = rec
	for name, rec := range records {
		cells := 0
		for line := range strings.Lines(string(write(t, rec, toMarkdown))) {
			if !strings.HasPrefix(line, "|") {
				cells = 0
				continue
			}
			n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
			if cells > 0 && n != cells || strings.Contains(line, "<") {
				t.Errorf("%s: %d cells, want %d: %s", name, n, cells, line)
			}
			cells = n
		}
	}
}

package report

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"bpfbench/report/stats"
)

// documented are the types behind the sections of docs/record.md.
var documented = map[string]any{
	"document": jsonDocument{}, "session": Session{}, "plan": Plan{}, "host": Host{}, "result": jsonResult{}, "param": Param{},
	"warning": Warning{}, "run": Run{}, "sample": Sample{}, "gauge": Gauge{},
	"summary": Summary{}, "cpu": CPU{}, "statistics": stats.Summary{}, "rate": Rate{}, "cost": Cost{}, "interval": stats.Interval{},
	"batch_cost": Batch{}, "gauge_summary": GaugeSummary{}, "variation": Variation{}, "outlier": Outlier{}, "drift": stats.Drift{},
	"line: session": sessionLine{}, "line: run": runLine{}, "line: result": resultLine{}, "line: end": endLine{},
	"comparison": Comparison{}, "side": Side{}, "row": Row{}, "center": Center{}, "unpaired": Unpaired{},
	"gate": Gate{}, "rule": Rule{},
}

// fields are the names that a struct has in JSON, those of embedded ones among them.
func fields(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			names = append(names, fields(of)...)
		case name != "" && name != "-":
			names = append(names, name)
		case name == "" && f.IsExported():
			names = append(names, f.Name+" (without a name in JSON)")
		}
	}
	return names
}

// TestRecordIsDocumented holds that docs/record.md has every field of what is written, in the section of its type, and
// none that there is not.
func TestRecordIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/record.md")
	must(t, err)
	sections := make(map[string]string)
	for _, s := range strings.Split(string(doc), "\n### ")[1:] {
		name, body, _ := strings.Cut(s, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		if sections[name] != "" {
			t.Errorf("two sections %s", name)
		}
		sections[name] = body
	}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	for name, v := range documented {
		have := make(map[string]bool)
		for _, m := range row.FindAllStringSubmatch(sections[name], -1) {
			have[m[1]] = true
		}
		for _, f := range fields(reflect.TypeOf(v)) {
			if !have[f] {
				t.Errorf("section %s does not have %s", name, f)
			}
			delete(have, f)
		}
		for f := range have {
			t.Errorf("section %s has %s, which there is not", name, f)
		}
	}
	for name := range sections {
		if documented[name] == nil {
			t.Errorf("section %s is of no type", name)
		}
	}
}

// TestTypesAreDocumented holds that no type of what is written has been forgotten above.
func TestTypesAreDocumented(t *testing.T) {
	known := map[reflect.Type]bool{reflect.TypeFor[plannedResult](): true, reflect.TypeFor[Result](): true, reflect.TypeFor[Scatter](): true}
	for _, v := range documented {
		known[reflect.TypeOf(v)] = true
	}
	var walk func(reflect.Type)
	seen := make(map[reflect.Type]bool)
	walk = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(of.Elem())
		case reflect.Struct:
			if seen[of] || !strings.HasPrefix(of.PkgPath(), "bpfbench") {
				return
			}
			seen[of] = true
			if !known[of] {
				t.Errorf("%v has no section in docs/record.md", of)
			}
			for i := range of.NumField() {
				walk(of.Field(i).Type)
			}
		}
	}
	for _, v := range documented {
		walk(reflect.TypeOf(v))
	}
}

// TestCSVIsDocumented holds the same of the columns and the metrics of CSV.
func TestCSVIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/record.md")
	must(t, err)
	_, section, _ := strings.Cut(string(doc), "\n## CSV\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	names = append(append(names, csvFirst...), csvLast...)
	for _, m := range metricsOf(aResult(4096, 19708000, 1, 0).Runs[0], Nanoseconds) {
		names = append(names, m.name)
	}
	for _, n := range names {
		if !strings.Contains(section, "`"+n+"`") {
			t.Errorf("%s is missing", n)
		}
	}
}

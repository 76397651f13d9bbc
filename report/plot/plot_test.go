package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"bpfbench/report"
)

func compared(t *testing.T) *report.Comparison {
	t.Helper()
	c, err := report.CompareHosts(kernels(report.Nanoseconds), report.CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// texts gives what an SVG document says, or an error where it is none.
func texts(svg []byte) (string, error) {
	var b strings.Builder
	in := false
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		switch e := token.(type) {
		case xml.StartElement:
			in = e.Name.Local == "text"
		case xml.EndElement:
			in = false
			b.WriteByte('\n')
		case xml.CharData:
			if in {
				b.Write(e)
			}
		}
	}
}

// figures are what there is to draw, and what is to be read in it.
var figures = map[string]struct {
	make func(*testing.T) (*Figure, error)
	says []string
	not  []string
}{
	"sweep": {
		make: func(t *testing.T) (*Figure, error) { return Sweep(readSweep(t)) },
		says: []string{"bpf-hashmap-lookup: lookup rate by nr_entries", "nr_entries", "lookup rate, M events/s", "65536", "cpu01",
			"Linux 6.2.0-rc5+ x86_64, 32 CPUs, AMD Ryzen 9 3950X 16-Core Processor", "key_size=4 max_entries=65536 nr_loops=1000000 map_flags=0x40 (zero_seed)"},
	},
	"kernels": {
		make: func(*testing.T) (*Figure, error) { return Of(kernels(report.Nanoseconds)) },
		says: []string{"6.1.0-57-cloud-amd64 cpu00", "7.3.4+deb14-cloud-amd64 cpu01", "Linux x86_64, 2 CPUs, QEMU Virtual CPU, guest under tcg"},
	},
	"exact": {
		make: func(*testing.T) (*Figure, error) { return Sweep(kernels(report.Instructions)) },
		says: []string{"cost, insn/op", "bpf-hashmap-lookup: cost by nr_entries", "6.1.0-57-cloud-amd64"},
		not:  []string{"ns", "events/s", "rate"},
	},
	"fetcharg": {
		make: func(*testing.T) (*Figure, error) { return Of(seedFetchargs()) },
		says: []string{"fetcharg (kprobe, fprobe, eprobe, baseline): cost of an operation", "cost with its loop, ns/op", "engine=bpf jit=off",
			"kprobe args=3", "baseline", "291", "guest under kvm"},
	},
	"comparison": {
		make: func(t *testing.T) (*Figure, error) { return Comparison(compared(t)) },
		says: []string{"rate, M events/s", "0.952 worse", "nr_entries=65536", "6.12.117+deb13-cloud-amd64"},
	},
}

// TestFigures holds that all figures are there in both formats, 800 pixels wide, and say what they show.
func TestFigures(t *testing.T) {
	for name, tt := range figures {
		f, err := tt.make(t)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		dir := t.TempDir()
		svg, image := filepath.Join(dir, "a.svg"), filepath.Join(dir, "a.PNG")
		for _, path := range []string{svg, image} {
			if err := f.Save(path); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		b, err := os.ReadFile(svg)
		if err != nil {
			t.Fatal(err)
		}
		says, err := texts(b)
		if err != nil {
			t.Fatalf("%s: no svg: %v", name, err)
		}
		for _, s := range tt.says {
			if !strings.Contains(says, s) {
				t.Errorf("%s does not say %q:\n%s", name, s, says)
			}
		}
		for _, s := range tt.not {
			for _, line := range strings.Split(says, "\n") {
				if strings.Contains(" "+strings.NewReplacer("/", " ", ",", " ").Replace(line)+" ", " "+s+" ") {
					t.Errorf("%s says %q: %s", name, s, line)
				}
			}
		}
		if nan.Match(b) {
			t.Errorf("%s: NaN", name)
		}
		file, err := os.Open(image)
		if err != nil {
			t.Fatal(err)
		}
		config, err := png.DecodeConfig(file)
		file.Close()
		if err != nil || config.Width != 800 || config.Height < 300 {
			t.Errorf("%s: %d by %d pixels, %v", name, config.Width, config.Height, err)
		}
	}
}

func TestErrors(t *testing.T) {
	skipped := seedSweep()
	for _, r := range skipped.Results {
		r.Status, r.Reason = report.Skipped, "no BPF"
	}
	notSwept := seedSweep()
	for _, r := range notSwept.Results {
		r.Varied = nil
	}
	for want, f := range map[string]func() (*Figure, error){
		"plot the sweep: nothing was measured":                func() (*Figure, error) { return Sweep(skipped) },
		"plot the table: nothing was measured":                func() (*Figure, error) { return Of(skipped) },
		"plot the sweep: no parameter with numbers was swept": func() (*Figure, error) { return Sweep(notSwept) },
		"plot the comparison: it has no rows":                 func() (*Figure, error) { return Comparison(&report.Comparison{}) },
		"plot the sweep: nothing was measured ":               func() (*Figure, error) { return Sweep(&report.Record{}) },
	} {
		if got, err := f(); got != nil || err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f, err := Table(notSwept)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a.jpg", "a", "a.svg.gz"} {
		if err := f.Save(filepath.Join(t.TempDir(), path)); err == nil || !strings.Contains(err.Error(), "name it .svg or .png") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := f.Save(filepath.Join(t.TempDir(), "no", "a.svg")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := f.Write(io.Discard, "pdf"); err == nil {
		t.Error("a pdf was written")
	}
}

// TestOdd holds that records with little in them can be drawn: one run, one point, names that are too long.
func TestOdd(t *testing.T) {
	one := seedSweep()
	one.Results = one.Results[:2]
	for _, r := range one.Results {
		r.Runs = r.Runs[:1]
	}
	single := seedSweep()
	single.Results = single.Results[:1]
	long := seedFetchargs()
	for i, r := range long.Results {
		r.Params = append(r.Params, report.Param{Name: "spec", Value: strings.Repeat("+0(+8(%di)):u64 ", 20+i)})
	}
	plain := seedFetchargs()
	for _, r := range plain.Results {
		r.Params = r.Params[:1]
	}
	for name, rec := range map[string]*report.Record{"two points of one run": one, "single": single, "long": long, "one series": plain} {
		f, err := Of(rec)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var b bytes.Buffer
		if err := f.Write(&b, "svg"); err != nil || nan.Match(b.Bytes()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGeometric(t *testing.T) {
	for want, all := range map[bool][][]float64{
		true:  {{1, 2, 4, 8}, {4096, 16384, 65536}, {1, 10, 100}, {3, 5, 8, 13}},
		false: {nil, {1, 2}, {4096, 8192, 12288, 16384}, {0, 1, 2}, {1, 2, 3, 4}, {-4, -2, -1}},
	} {
		for _, values := range all {
			if geometric(values) != want {
				t.Errorf("%v: %v", values, !want)
			}
		}
	}
}

// TestTicks holds that no two labels touch, and that the last is always there.
func TestTicks(t *testing.T) {
	var values []float64
	for i := range 200 {
		values = append(values, float64(4096*(i+1)))
	}
	room := vg.Length(500)
	place := func(v float64) float64 { return v / values[199] }
	all := ticks(values, place, room)
	free := vg.Length(math.Inf(1))
	labels := 0
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Label == "" {
			continue
		}
		labels++
		at, half := vg.Length(place(all[i].Value))*room, tickStyle.Width(all[i].Label)/2
		if at+half > free {
			t.Errorf("%s touches the next", all[i].Label)
		}
		free = at - half
	}
	if labels < 8 || all[199].Label == "" {
		t.Errorf("%d labels", labels)
	}
	var _ plot.Ticker = all
}

func TestShort(t *testing.T) {
	record := func(names ...string) *report.Record {
		rec := &report.Record{}
		for _, n := range names {
			rec.Results = append(rec.Results, &report.Result{Benchmark: n})
		}
		return rec
	}
	for want, names := range map[string][]string{
		"kprobe fprobe | fetcharg (kprobe, fprobe)": {"fetcharg-kprobe", "fetcharg-fprobe"},
		"a b | a, b": {"a", "b"},
		"a | a":      {"a"},
	} {
		rec := record(names...)
		var got []string
		for _, n := range benchmarks(rec) {
			got = append(got, short(rec, n))
		}
		if s := strings.Join(got, " ") + " | " + subject(rec); s != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
	// One name that is the beginning of another.
	rec := record("map-lookup", "map-lookup-elem")
	if a, b := short(rec, "map-lookup"), short(rec, "map-lookup-elem"); a != "lookup" || b != "lookup-elem" {
		t.Errorf("%q %q", a, b)
	}
	if s := subject(record("x-1", "x-2", "x-3", "x-4", "x-5", "x-6", "x-7")); s != "x (7 benchmarks)" {
		t.Error(s)
	}
}

var nan = regexp.MustCompile(`[xyd]="[^"]*(NaN|Inf)`)

// TestNiceTicks holds that round values have labels, however they are computed.
func TestNiceTicks(t *testing.T) {
	for want, ends := range map[string][2]float64{
		"0 0.05 0.1 0.15 0.2 0.25 0.3 0.35": {0, 0.351}, "0 50 100 150 200 250 300": {0, 309}, "25 30 35 40 45 50": {24.4, 53},
		"0 50000 100000 150000 200000": {0, 2e5}, "7": {7, 7},
	} {
		var labels []string
		for _, tick := range niceTicks(ends[0], ends[1]) {
			if tick.Label != "" {
				labels = append(labels, tick.Label)
			}
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%v: %s, want %s", ends, got, want)
		}
	}
}

// FuzzOf holds that whatever record can be read can be drawn, or that there is an error.
func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"schema":1,"session":{"unit":"ns"},"results":[{"benchmark":"x","varied":["n"],"params":[{"name":"n","value":1}],"producers":1,"runs":[{"samples":[{"ops":9,"elapsed":3}]}]},{"benchmark":"x-y","varied":["n"],"params":[{"name":"n","value":"0x40"}],"producers":2,"runs":[{"samples":[{"ops":9,"elapsed":3},{"worker":1,"cpu":-1,"ops":9,"elapsed":3}]}]}]}`))
	f.Add([]byte(`{"schema":1,"session":{"unit":"insn","hosts":[{"kernel":"a"},{"kernel":"b"}]},"results":[{"host":1,"varied":["n"],"params":[{"name":"n","value":"NaN"}],"runs":[{"samples":[{"ops":9,"elapsed":3}]}]},{"params":[{"name":"n","value":-1e300}],"runs":[{"samples":[{"ops":9,"elapsed":3}]}]}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		rec, _ := report.Read(bytes.NewReader(in))
		if rec == nil {
			return
		}
		figure, err := Of(rec)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := figure.Write(&b, "svg"); err != nil {
			t.Fatal(err)
		}
		if nan.Match(b.Bytes()) {
			t.Errorf("NaN:\n%s", &b)
		}
	})
}

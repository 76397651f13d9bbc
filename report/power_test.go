package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"bpfbench/report/stats"
)

// draws are distributions of the rates of runs, with a relative spread of about sd around 1.
var draws = map[string]func(rng *rand.Rand, sd float64) float64{
	"normal":    func(rng *rand.Rand, sd float64) float64 { return 1 + sd*rng.NormFloat64() },
	"lognormal": func(rng *rand.Rand, sd float64) float64 { return math.Exp(sd * rng.NormFloat64()) },
	// Where the JIT puts the code decides between two speeds.
	"two modes": func(rng *rand.Rand, sd float64) float64 {
		return 1 + sd*float64(2*rng.IntN(2)-1) + sd/10*rng.NormFloat64()
	},
	// One run in ten is disturbed, and slower by far.
	"outliers": func(rng *rand.Rand, sd float64) float64 {
		v := 1 + sd*rng.NormFloat64()
		if rng.IntN(10) == 0 {
			v -= 10 * sd * rng.Float64()
		}
		return v
	},
}

// ratesRecord has a result for each list of rates, of one run each, of one producer.
func ratesRecord(rows ...[]float64) *Record {
	rec := &Record{Schema: Schema, Session: Session{Unit: Nanoseconds, Hosts: []Host{{Kernel: "6.12", Arch: "x86_64"}}}}
	for i, rates := range rows {
		r := &Result{Benchmark: "x", Op: "op", Params: []Param{{Name: "row", Value: i}}, Producers: 1, Pinned: true, Status: OK}
		for round, rate := range rates {
			const ops = 1e6
			r.Runs = append(r.Runs, &Run{Round: round, Samples: []Sample{{Ops: ops, Elapsed: uint64(ops * 1e9 / (5e7 * rate))}}})
		}
		rec.Results = append(rec.Results, r)
	}
	return rec
}

func draw(rng *rand.Rand, n int, factor float64, one func() float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = factor * one()
	}
	return values
}

// verdicts counts those of pairs of measurements, of which the new one is slower by shift.
func verdicts(t *testing.T, rng *rand.Rand, pairs, runs int, shift, sd, threshold float64, draw1 func(*rand.Rand, float64) float64) map[Verdict]int {
	t.Helper()
	found := make(map[Verdict]int)
	one := func() float64 { return draw1(rng, sd) }
	for range pairs {
		c, err := Compare(ratesRecord(draw(rng, runs, 1, one)), ratesRecord(draw(rng, runs, 1-shift, one)), CompareOptions{Threshold: threshold})
		must(t, err)
		found[c.Rows[0].Verdict]++
	}
	return found
}

// racing is set where the race detector is on.
var racing bool

// simulated is how many pairs tests draw.
func simulated() int {
	if testing.Short() || racing {
		return 300
	}
	return 2000
}

// atMost is how often something of probability p may happen in n cases, but for one time in a thousand.
func atMost(n int, p float64) int { return int(float64(n)*p + 3.1*math.Sqrt(float64(n)*p*(1-p))) }

// TestFalseAlarms holds that two measurements of the same thing are not found to differ more often than the level says,
// whatever the distribution, even with a threshold that nothing is too small for.
func TestFalseAlarms(t *testing.T) {
	n := simulated()
	for name, one := range draws {
		for _, runs := range []int{4, 6, 10, 20} {
			found := verdicts(t, rand.New(rand.NewPCG(1, uint64(runs))), n, runs, 0, 0.03, 1e-9, one)
			if alarms := found[Worse] + found[Better]; alarms > atMost(n, stats.Level) {
				t.Errorf("%s, %d runs: %d alarms in %d pairs", name, runs, alarms, n)
			}
			if found[Same] > 0 {
				t.Errorf("%s, %d runs: %d the same within a threshold of nothing", name, runs, found[Same])
			}
		}
	}
}

// TestFalseAlarmsOfTables holds that of tables of 16 rows without any difference no more than the level have one found.
func TestFalseAlarmsOfTables(t *testing.T) {
	n, alarms := simulated()/4, 0
	rng := rand.New(rand.NewPCG(2, 16))
	one := func() float64 { return draws["normal"](rng, 0.03) }
	for range n {
		var old, new [][]float64
		for range 16 {
			old, new = append(old, draw(rng, 6, 1, one)), append(new, draw(rng, 6, 1, one))
		}
		c, err := Compare(ratesRecord(old...), ratesRecord(new...), CompareOptions{Threshold: 1e-9})
		must(t, err)
		for _, r := range c.Rows {
			if r.Verdict == Worse || r.Verdict == Better {
				alarms++
				break
			}
		}
	}
	if alarms > atMost(n, stats.Level) {
		t.Errorf("%d of %d tables have an alarm", alarms, n)
	}
}

// TestSameIsSame holds that a difference of the threshold is not called none more often than the level says.
func TestSameIsSame(t *testing.T) {
	n := simulated()
	for name, one := range draws {
		for _, runs := range []int{4, 6, 20} {
			found := verdicts(t, rand.New(rand.NewPCG(3, uint64(runs))), n, runs, 0.0201, 0.004, 0.02, one)
			if found[Same] > atMost(n, stats.Level) {
				t.Errorf("%s, %d runs: %d of %d the same", name, runs, found[Same], n)
			}
		}
	}
}

// TestDetectable holds that what Detectable promises is seen in about 80 of 100 cases, and by four or five runs, of which
// few orders have a p below the level, in two of three.
func TestDetectable(t *testing.T) {
	n := simulated()
	for _, runs := range []int{4, 5, 6, 10, 20} {
		d, ok := stats.Detectable(runs, 0.01)
		if !ok {
			t.Fatalf("%d runs: nothing is detectable", runs)
		}
		found := verdicts(t, rand.New(rand.NewPCG(4, uint64(runs))), n, runs, d, 0.01, 1e-9, draws["normal"])
		low, chance := 0.75, 3.1*math.Sqrt(0.2*0.8/float64(n))
		if runs < 6 {
			low = 0.65
		}
		if seen := float64(found[Worse]) / float64(n); seen < low-chance || seen > 0.85+chance {
			t.Errorf("%d runs: %.2f %% is seen in %.0f of 100 cases", runs, 100*d, 100*seen)
		}
	}
}

// powerTable is the table of docs/methodology.md for a threshold.
func powerTable(t *testing.T, threshold float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "With a threshold of %s:\n\n", shareText(threshold))
	b.WriteString("| spread between runs | runs | no change | 1 % slower | 2 % slower | 5 % slower |\n|---:|---:|---:|---:|---:|---:|\n")
	seed := uint64(0)
	for _, sd := range []float64{0.003, 0.01, 0.02} {
		for _, runs := range []int{4, 6, 10, 20} {
			fmt.Fprintf(&b, "| %.1f %% | %d ", 100*sd, runs)
			for _, shift := range []float64{0, 0.01, 0.02, 0.05} {
				seed++
				rng := rand.New(rand.NewPCG(5, seed))
				const pairs = 1000
				found := verdicts(t, rng, pairs, runs, shift, sd, threshold, draws["normal"])
				percent := func(v ...Verdict) float64 {
					n := 0
					for _, v := range v {
						n += found[v]
					}
					return 100 * float64(n) / pairs
				}
				fmt.Fprintf(&b, "| %.1f / %.1f / %.1f ", percent(Worse, Better), percent(Same), percent(Inconclusive))
				if found[Better] > atMost(pairs, stats.Level/2) {
					t.Errorf("%v %d %v: better in %d cases", sd, runs, shift, found[Better])
				}
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}

// TestPowerTable holds that the power that docs/methodology.md gives is what is simulated.
func TestPowerTable(t *testing.T) {
	if testing.Short() || racing {
		t.Skip("it takes seconds")
	}
	const path, begin, end = "../docs/methodology.md", "<!-- power -->\n", "<!-- /power -->\n"
	doc, err := os.ReadFile(path)
	must(t, err)
	before, rest, ok := strings.Cut(string(doc), begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", path, begin, end)
	}
	want := powerTable(t, DefaultThreshold) + "\n" + powerTable(t, 0.005)
	if *update {
		must(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
	} else if have != want {
		t.Errorf("%s (-update rewrites it) has\n%s\nbut simulated is\n%s", path, have, want)
	}
}

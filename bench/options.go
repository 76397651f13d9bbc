package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/cpuset"
	"bpfbench/internal/number"
	"bpfbench/report"
	"bpfbench/report/plot"
)

// options are the flags that every benchmark has.
type options struct {
	duration, warmup     seconds
	runs                 uint64
	producers, consumers uint64
	affinity             bool
	prodCPUs, consCPUs   cpuset.List
	sweeps               []string
	seed                 uint64
	formats              []string
	output, plot         string
	quiet, verbose       bool
	wait                 bool

	usable func() ([]int, error) // the CPUs that threads can be bound to; nil for those of this machine
}

func (o *options) bind(fs *pflag.FlagSet) {
	o.duration, o.warmup = seconds(5*time.Second), seconds(time.Second)
	fs.VarP(&o.duration, "duration", "d", "time to measure a configuration, all its runs together, in seconds (2, 0.5) or with a unit (1500ms)")
	fs.VarP(&o.warmup, "warmup", "w", "time to warm up, likewise")
	number.Var(fs, &o.runs, "runs", 6, "runs, each with a fresh set-up")
	o.bindWorkers(fs)
	fs.StringArrayVar(&o.sweeps, "sweep", nil, "measure each value: `PARAM=VALUES`, as nr_entries=4096:65536:4096, =1,10,100 or =4:1024:x2; given again: each combination")
	number.Var(fs, &o.seed, "seed", 0, "seed of the order in which configurations take turns; 0 takes a new one")
	o.bindOutput(fs)
	fs.BoolVarP(&o.verbose, "verbose", "v", false, "say what is being done, and print the verifier's log when it refuses a program")
	fs.BoolVar(&o.wait, "wait", false, "wait while another bench measures on this machine")
}

// bindWorkers binds the flags that may differ between the lines of a suite.
func (o *options) bindWorkers(fs *pflag.FlagSet) {
	o.producers, o.consumers = 1, 0
	fs.VarP(number.Value(&o.producers), "producers", "p", "producers, each a thread")
	fs.VarP(number.Value(&o.consumers), "consumers", "c", "consumers, each a thread")
	fs.BoolVarP(&o.affinity, "affinity", "a", false, "bind each thread to a CPU of its own: consumers first, then producers")
	fs.Var(&o.prodCPUs, "prod-affinity", "CPUs of the producers, such as 0,2-3; implies -a")
	fs.Var(&o.consCPUs, "cons-affinity", "CPUs of the consumers; implies -a")
}

// bindOutput binds the flags on where a record goes, which stored ones have, too.
func (o *options) bindOutput(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.formats, "format", nil, strings.Join(formatNames(), ", ")+", to the standard output or to a file: `F[=FILE]`; may be given again")
	fs.StringVarP(&o.output, "output", "o", "", "write the record to `FILE` as well; the same as --format jsonl=FILE")
	fs.StringVar(&o.plot, "plot", "", "draw it into `FILE`: .svg or .png")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "print only the numbers")
}

// maxRuns bounds --runs: with more, a run has no time left.
const maxRuns = 10000

// plan returns how to measure.
func (o *options) plan() (report.Plan, error) {
	p := report.Plan{Duration: uint64(o.duration), Warmup: uint64(o.warmup), Runs: int(o.runs), Seed: o.seed}
	if p.Seed == 0 {
		p.Seed = uint64(rand.Uint32()) + 1
	}
	errs := []error{number.Within("runs", o.runs, 1, maxRuns)}
	if o.plot != "" {
		if err := plot.CheckPath(o.plot); err != nil {
			errs = append(errs, fmt.Errorf("--plot=%s: %w", o.plot, err))
		}
	}
	if o.duration == 0 {
		errs = append(errs, errors.New("--duration=0: must be above 0"))
	}
	return p, errors.Join(errs...)
}

// workers returns a job of b and its configuration with its threads and where they are bound, and what is doubtful about that.
func (o *options) workers(b *harness.Benchmark, cfg harness.Config, fs *pflag.FlagSet) (*harness.Job, []report.Warning, error) {
	producers, consumers := b.Workers(cfg)
	if !fs.Changed("producers") {
		o.producers = uint64(producers.Default)
	}
	if !fs.Changed("consumers") {
		o.consumers = uint64(consumers.Default)
	}
	err := errors.Join(allowed(b, "producers", o.producers, producers), allowed(b, "consumers", o.consumers, consumers))
	if err != nil {
		return nil, nil, err
	}
	job := &harness.Job{Benchmark: b, Config: cfg, Producers: int(o.producers), Consumers: int(o.consumers)}
	if !o.affinity && o.prodCPUs == nil && o.consCPUs == nil {
		return job, nil, nil
	}
	if o.usable == nil {
		o.usable = cpuset.Usable
	}
	usable, err := o.usable()
	if err != nil {
		return nil, nil, err
	}
	var warnings []report.Warning
	if n := job.Producers + job.Consumers; n > len(usable) && (o.prodCPUs == nil || o.consCPUs == nil) {
		warnings = append(warnings, report.Warning{What: fmt.Sprintf("%d threads share %d CPUs", n, len(usable)), Remedy: "lower --producers"})
	}
	var errCons, errProd error
	job.ConsCPUs, errCons = place("cons-affinity", job.Consumers, o.consCPUs, usable, 0)
	start := 0
	if n := len(job.ConsCPUs); n > 0 {
		start = slices.Index(usable, job.ConsCPUs[n-1]) + 1
	}
	job.ProdCPUs, errProd = place("prod-affinity", job.Producers, o.prodCPUs, usable, start)
	return job, warnings, errors.Join(errCons, errProd)
}

func allowed(b *harness.Benchmark, what string, n uint64, w harness.Workers) error {
	why := ""
	if w.Why != "" {
		why = " " + w.Why
	}
	switch {
	case n >= uint64(w.Min) && n <= uint64(w.Max):
		return nil
	case w.Max == 0:
		return fmt.Errorf("--%s=%d: %s has no %s%s", what, n, b.Name, what, why)
	case w.Min == w.Max:
		return fmt.Errorf("--%s=%d: must be %d%s", what, n, w.Min, why)
	}
	return fmt.Errorf("%w%s", number.Within(what, n, uint64(w.Min), uint64(w.Max)), why)
}

// place returns the CPUs of n threads: those of the flag, or the usable ones from index start on, round and round.
func place(flag string, n int, listed cpuset.List, usable []int, start int) ([]int, error) {
	if listed != nil {
		if err := cpuset.Check(listed, usable); err != nil {
			return nil, fmt.Errorf("--%s=%s: %w", flag, &listed, err)
		}
		if len(listed) < n {
			return nil, fmt.Errorf("--%s=%s: has %d CPUs for %d threads", flag, &listed, len(listed), n)
		}
		return listed[:n], nil
	}
	cpus := make([]int, n)
	for i := range cpus {
		cpus[i] = usable[(start+i)%len(usable)]
	}
	return cpus, nil
}

// seconds is the pflag.Value of a time: a number of seconds, or one with a unit.
type seconds time.Duration

// maxSeconds is a year: beyond it there is only a slip of the finger.
const maxSeconds = 365 * 24 * 3600

func (s *seconds) Set(v string) error {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		d, derr := time.ParseDuration(v)
		if derr != nil {
			return fmt.Errorf("%q is not a time such as 2, 0.5 (seconds) or 1500ms", v)
		}
		n = d.Seconds()
	}
	if math.IsNaN(n) || n < 0 || n > maxSeconds {
		return fmt.Errorf("%q is not from 0 to %d seconds", v, maxSeconds)
	}
	*s = seconds(math.Round(n * float64(time.Second)))
	return nil
}

func (s *seconds) String() string {
	return strconv.FormatFloat(time.Duration(*s).Seconds(), 'f', -1, 64)
}
func (s *seconds) Type() string { return "seconds" }

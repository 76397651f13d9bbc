package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bpfbench/internal/number"
	"bpfbench/internal/vm"
	"bpfbench/report"
)

// guestOptions are the flags of `bench vm`.
type guestOptions struct {
	kernels []string
	accel   string
	exact   bool
	smp     uint64
	memory  uint64
	append  string
	timeout seconds
}

func (g *guestOptions) bind(fs *pflag.FlagSet) {
	fs.StringArrayVar(&g.kernels, "kernel", nil, "`FILE`: a bzImage or vmlinuz, or a folder or package that holds one; given again: each of them, side by side (default: the newest that make kernels fetched)")
	fs.StringVar(&g.accel, "accel", "auto", "kvm, tcg (emulation), or `auto`: kvm where it can run the guest")
	fs.BoolVar(&g.exact, "exact", false, "count instructions in place of time: emulation of one CPU that gives the same numbers every time")
	number.Var(fs, &g.smp, "smp", 1, "CPUs of the guest")
	number.Var(fs, &g.memory, "memory", vm.DefaultMemory, "memory of the guest, in bytes (2G)")
	fs.StringVar(&g.append, "append", "", "further `ARGS` of the kernel's command line")
	fs.Var(&g.timeout, "timeout", "how long a guest may take, in seconds (default: a minute, 5 seconds for each run, and 60 times what it measures)")
}

const vmLong = `Runs a benchmark in a guest: on any kernel, without root, and with --exact in instructions instead of time. The guest boots this ` +
	`binary; nothing else is needed but QEMU and a kernel. Flags of vm and of the benchmark may stand in any order; behind -- are only the benchmark's.`

// vmCommand runs a benchmark's command line in guests.
func vmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                "vm [flags of vm] [--] NAME [flags]",
		Short:              "run a benchmark in a guest, on any kernel",
		Long:               vmLong,
		DisableFlagParsing: true, // as most flags are the benchmark's
	}
	g, flags := new(guestOptions), pflag.NewFlagSet("vm", pflag.ContinueOnError)
	g.bind(flags)
	cmd.Flags().AddFlagSet(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		own, inner := divide(args, flags)
		switch {
		case len(inner) == 0:
			return usageError{errors.New("vm: name a benchmark: bench vm -- bpf-hashmap-lookup --nr_entries=4096")}
		case len(inner) == 1 && (inner[0] == "-h" || inner[0] == "--help"):
			return cmd.Help()
		}
		if err := flags.Parse(own); err != nil {
			return usageError{fmt.Errorf("vm: %w", err)}
		}
		if err := g.check(); err != nil {
			return usageError{fmt.Errorf("vm: %w", err)}
		}
		root := newRoot(func(ctx context.Context, req request) error { return g.measure(ctx, req, inner) })
		root.SetArgs(nameFirst(inner))
		root.SetOut(cmd.OutOrStdout())
		root.SetErr(cmd.ErrOrStderr())
		return root.ExecuteContext(cmd.Context())
	}
	return cmd
}

// divide parts the arguments into the flags of vm and the benchmark's command line.
func divide(args []string, flags *pflag.FlagSet) (own, inner []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return own, append(inner, args[i+1:]...)
		}
		name, _, hasValue := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		f := flags.Lookup(name)
		if !strings.HasPrefix(args[i], "--") || f == nil {
			inner = append(inner, args[i])
			continue
		}
		own = append(own, args[i])
		if !hasValue && f.NoOptDefVal == "" && i+1 < len(args) {
			i++
			own = append(own, args[i])
		}
	}
	return own, inner
}

func (g *guestOptions) check() error {
	errs := []error{number.Within("smp", g.smp, 1, 288), number.Within("memory", g.memory, 128<<20, 1<<40)}
	if !slices.Contains([]string{"auto", "kvm", "tcg"}, g.accel) {
		errs = append(errs, fmt.Errorf("--accel=%s: must be auto, kvm or tcg", g.accel))
	}
	if g.exact && g.smp > 1 {
		errs = append(errs, fmt.Errorf("--smp=%d: --exact has one CPU: its clock counts the instructions of that one", g.smp))
	}
	if g.exact && g.accel == "kvm" {
		errs = append(errs, errors.New("--accel=kvm: --exact needs emulation, which is tcg: leave --accel out"))
	}
	return errors.Join(errs...)
}

// measure runs what is asked for in guests, with command line inner, and reports it as a run on the host is reported.
func (g *guestOptions) measure(ctx context.Context, req request, inner []string) (err error) {
	o := req.opts
	o.usable = func() ([]int, error) {
		cpus := make([]int, g.smp)
		for i := range cpus {
			cpus[i] = i
		}
		return cpus, nil
	}
	if g.exact {
		g.exactDefaults(o, req.flags)
	}
	one, jobs, err := prepare(req)
	if err != nil {
		return usageError{err}
	}
	s := &guestSession{g: g, configs: len(jobs), rec: one, quiet: o.quiet, args: append(slices.Clone(inner),
		fmt.Sprintf("--seed=%d", one.Session.Plan.Seed), "--duration="+o.duration.String(), "--warmup="+o.warmup.String())}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.plan(); err != nil {
		return err
	}
	outs, err := o.openOutputs(os.Stdout, req.text)
	if err != nil {
		return err
	}
	s.writers = slices.Concat([]report.Writer{adviser{}}, outs.writers, []report.Writer{newProgress(os.Stderr, o, s.rec)})
	err = s.run(ctx)
	if err = errors.Join(err, outs.close()); err != nil {
		return err
	}
	tell(os.Stderr, s.rec, outs.text && !o.quiet && len(s.rec.Results) > 1)
	if err := o.draw(s.rec); err != nil {
		return err
	}
	if len(s.kernels) > 1 && outs.text && !o.quiet && verdict(s.rec) == nil {
		return s.compare(os.Stdout)
	}
	return verdict(s.rec)
}

// exactDefaults are other defaults for what counts instructions: the same order of runs every time, and a tenth of the
// length, as there is no noise to average out and emulation takes its time.
func (g *guestOptions) exactDefaults(o *options, flags *pflag.FlagSet) {
	if o.seed == 0 {
		o.seed = 1
	}
	if !flags.Changed("duration") {
		o.duration /= 10
	}
	if !flags.Changed("warmup") {
		o.warmup /= 10
	}
}

// guestSession is a session whose runs take place in guests. Its results are those of the first kernel, then of the next.
type guestSession struct {
	g       *guestOptions
	kernels []*vm.Kernel
	configs int      // results of each kernel
	args    []string // of bench in a guest
	rec     *report.Record
	writers []report.Writer
	begun   bool
	quiet   bool
	toldKVM bool
}

// plan finds the kernels, and lays out the record: each configuration on each kernel.
func (s *guestSession) plan() error {
	for _, name := range s.g.kernels {
		k, err := vm.FindKernel(name)
		if err != nil {
			return fmt.Errorf("--kernel=%s: %w", name, err)
		}
		s.kernels = append(s.kernels, k)
	}
	if s.g.kernels == nil {
		k, err := vm.CachedKernel()
		if err != nil {
			return err
		}
		s.kernels = append(s.kernels, k)
	}
	s.layOut()
	return nil
}

// layOut gives each kernel results of its own.
func (s *guestSession) layOut() {
	session := &s.rec.Session
	if s.g.exact {
		session.Unit, session.Start = report.Instructions, time.Time{}
	}
	session.Hosts = nil
	var results []*report.Result
	for i, k := range s.kernels {
		session.Hosts = append(session.Hosts, report.Host{Kernel: k.Release})
		for _, r := range s.rec.Results {
			copied := *r
			copied.Host = i
			copied.Facts, copied.Warnings = slices.Clone(r.Facts), slices.Clone(r.Warnings)
			results = append(results, &copied)
		}
	}
	s.rec.Results = results
}

func (s *guestSession) close() error {
	var errs []error
	for _, k := range s.kernels {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}

// run boots the guests: one that does all rounds, or of several kernels, one each a round. In exact mode a boot is like the
// other, so there one boot of each kernel does all rounds.
func (s *guestSession) run(ctx context.Context) error {
	rounds := []int{-1}
	if len(s.kernels) > 1 && !s.g.exact {
		rounds = rounds[:0]
		for i := range s.rec.Session.Plan.Runs {
			rounds = append(rounds, i)
		}
	}
	for _, round := range rounds {
		for i := range s.kernels {
			if ctx.Err() != nil || s.failed(i) {
				continue
			}
			if err := s.boot(ctx, i, round); err != nil && ctx.Err() == nil {
				var fatal *writeError
				if errors.As(err, &fatal) {
					return err
				}
				s.fail(i, err)
			}
		}
	}
	return s.end(ctx)
}

// writeError is an error of a writer: it ends the session, whatever the guests have to say.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// of are the results of kernel i.
func (s *guestSession) of(i int) []*report.Result {
	return s.rec.Results[i*s.configs : (i+1)*s.configs]
}

// failed reports whether nothing more can come from kernel i.
func (s *guestSession) failed(i int) bool {
	return !slices.ContainsFunc(s.of(i), func(r *report.Result) bool { return r.Status == "" || r.Status == report.OK })
}

// fail ends the results of kernel i that have no error of their own.
func (s *guestSession) fail(i int, err error) {
	for _, r := range s.of(i) {
		if r.Status == "" || r.Status == report.OK {
			r.Status, r.Reason = report.Failed, err.Error()
		}
	}
}

// boot does a round, or all for -1, on kernel i.
func (s *guestSession) boot(ctx context.Context, i, round int) error {
	var lines report.Lines
	timeout := time.Duration(s.g.timeout)
	if timeout == 0 {
		plan := s.rec.Session.Plan
		timeout = time.Minute + time.Duration(s.configs)*(5*time.Second*time.Duration(plan.Runs)+60*time.Duration(plan.Duration+plan.Warmup))
	}
	exit, err := vm.Boot(ctx, vm.Options{
		Kernel: s.kernels[i].File, Accel: s.g.accel, Exact: s.g.exact, SMP: int(s.g.smp), Memory: int64(s.g.memory), Append: s.g.append, Timeout: timeout,
	}, vm.Task{Args: s.args, Round: round}, vm.Handler{
		Booted:  s.booted,
		Message: func(line string) { fmt.Fprintln(os.Stderr, line) },
		Record: func(line []byte) error {
			added, err := lines.Add(line)
			if err != nil {
				return err
			}
			return s.take(i, lines.Record(), added)
		},
	})
	if err != nil {
		return err
	}
	if !lines.Complete() {
		return fmt.Errorf("bench in the guest ended with exit status %d and no record", exit.Status)
	}
	for j, r := range lines.Record().Results {
		mine := s.of(i)[j]
		mine.Status, mine.Reason = r.Status, r.Reason
		mine.SetFacts(r.Facts...)
		for _, w := range r.Warnings {
			if !slices.Contains(mine.Warnings, w) {
				mine.Warnings = append(mine.Warnings, w)
			}
		}
	}
	return nil
}

// booted says, the first time, why a guest is emulated that need not be.
func (s *guestSession) booted(b vm.Booted) {
	if b.NoKVM != nil && !s.quiet && !s.toldKVM {
		s.toldKVM = true
		fmt.Fprintf(os.Stderr, "bench: vm: no kvm, so the guest is emulated: %v\n", b.NoKVM)
	}
}

// take adds what a guest of kernel i has told: its facts, and the last run of a result, if one was added.
func (s *guestSession) take(i int, guest *report.Record, added int) error {
	if len(guest.Results) != s.configs || len(guest.Session.Hosts) != 1 {
		return fmt.Errorf("the guest measures %d configurations, not %d", len(guest.Results), s.configs)
	}
	s.rec.Session.Hosts[i] = guest.Session.Hosts[0]
	if err := s.begin(); err != nil {
		return err
	}
	if added < 0 {
		return nil
	}
	index := i*s.configs + added
	runs := guest.Results[added].Runs
	s.rec.Results[index].SetFacts(guest.Results[added].Facts...)
	s.rec.Results[index].Runs = append(s.rec.Results[index].Runs, runs[len(runs)-1])
	for _, w := range s.writers {
		if err := w.Run(s.rec, index); err != nil {
			return &writeError{err}
		}
	}
	return nil
}

// begin begins the report when the first guest has told where it runs.
func (s *guestSession) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	for _, w := range s.writers {
		if err := w.Begin(s.rec); err != nil {
			return &writeError{err}
		}
	}
	return nil
}

// end settles the results that were cut short, and ends the report.
func (s *guestSession) end(ctx context.Context) error {
	s.rec.Session.Interrupted = ctx.Err() != nil
	for _, r := range s.rec.Results {
		if (r.Status == "" || r.Status == report.OK) && len(r.Runs) < s.rec.Session.Plan.Runs {
			r.Status = report.Interrupted
		}
	}
	err := s.begin()
	for _, w := range s.writers {
		err = errors.Join(err, w.End(s.rec))
	}
	return err
}

// compare says what the other kernels are against the first.
func (s *guestSession) compare(w io.Writer) error {
	c, err := report.CompareHosts(s.rec, report.CompareOptions{})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return c.WriteText(w)
}

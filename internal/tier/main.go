// Tier runs every test of the module in every place: on this machine, without privilege, with the race detector, and as
// root in a guest of each kernel. It says what ran where. See docs/testing.md.
//
//	go run ./internal/tier [flags] [packages]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"bpfbench/internal/vm"
)

func main() {
	vm.Init() // does not return in the first process of a guest
	if task, records, ok := vm.Guest(); ok {
		os.Exit(inside(task, records))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "tier:", err)
		os.Exit(1)
	case !ok:
		os.Exit(1)
	}
}

// tier is what is asked for, and what it takes.
type tier struct {
	stages       []string
	kernels      []string // files or folders; none for those of the cache
	packages     []string // patterns
	racePackages []string
	run          string // regular expression; empty for all tests
	short        bool
	limit        time.Duration // of a test binary

	root      string // of the module
	test2json string
	guest     string // the binary that guests boot
	bins      []binary
	out       *report
	slots     chan bool // one for each CPU: taken by a guest that is emulated, and by what runs on this machine
}

// stage is a way to run tests.
type stage struct {
	name string
	run  func(*tier, context.Context) error
}

// The stages on this machine and those in guests go on at the same time.
var (
	stagesHere     = []stage{{"host", (*tier).host}, {"nobody", (*tier).nobody}, {"race", (*tier).race}}
	stagesInGuests = []stage{{"guests", (*tier).guests}, {"cpus", (*tier).cpus}}
)

func stageNames() []string {
	var names []string
	for _, s := range slices.Concat(stagesHere, stagesInGuests) {
		names = append(names, s.name)
	}
	return names
}

// run does the whole job, and returns whether all is well.
func run(ctx context.Context, args []string, w io.Writer) (bool, error) {
	t := &tier{out: &report{w: w, strict: os.Getenv("CI") == "true"}}
	if err := t.parse(args); err != nil {
		return false, err
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return false, fmt.Errorf("find the module: %w", withStderr(err))
	}
	t.root = strings.TrimSpace(string(root))
	if err := t.prepare(); err != nil {
		return false, err
	}
	t.slots = make(chan bool, runtime.NumCPU())
	var err1, err2 error
	var both sync.WaitGroup
	both.Go(func() {
		t.slots <- true
		defer func() { <-t.slots }()
		err1 = t.all(ctx, stagesHere)
	})
	both.Go(func() { err2 = t.all(ctx, stagesInGuests) })
	both.Wait()
	ok := t.out.finish()
	if err := errors.Join(err1, err2); err != nil {
		return false, err
	}
	return ok, nil
}

// all runs those of the stages that are asked for, one after the other.
func (t *tier) all(ctx context.Context, stages []stage) error {
	for _, s := range stages {
		if !slices.Contains(t.stages, s.name) {
			continue
		}
		if err := t.out.phase(s.name, func() error { return s.run(t, ctx) }); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (t *tier) parse(args []string) error {
	fs := flag.NewFlagSet("tier", flag.ContinueOnError)
	list := func(into *[]string) func(string) error {
		return func(s string) error {
			*into = strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		}
	}
	t.stages = stageNames()
	t.racePackages = []string{"./bench/harness", "./report/...", "./producers", "./internal/..."}
	fs.Func("stages", "what to run, of "+strings.Join(t.stages, ",")+" (default all)", list(&t.stages))
	fs.Func("kernels", "`files` or folders of kernels for guests, such as .cache/kernels/trixie (default all that make kernels fetched)", list(&t.kernels))
	fs.Func("race-packages", "`packages` to test with the race detector (default "+strings.Join(t.racePackages, ",")+")", list(&t.racePackages))
	fs.StringVar(&t.run, "run", "", "run only tests that match this `regexp`, as go test does")
	fs.BoolVar(&t.out.verbose, "v", false, "show all output")
	fs.BoolVar(&t.short, "short", false, "leave out tests that take long or much memory, which nobody, race and guests always do")
	fs.DurationVar(&t.limit, "timeout", 10*time.Minute, "how long a test binary may take")
	fs.SetOutput(io.Discard) // an error is told once, by main
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(t.out.w)
		fmt.Fprintln(t.out.w, "usage: go run ./internal/tier [flags] [packages] (default ./...)")
		fs.PrintDefaults()
		return err
	} else if err != nil {
		return err
	}
	for _, s := range t.stages {
		if !slices.Contains(stageNames(), s) {
			return fmt.Errorf("-stages=%s: there is no stage %q: must be of %s", strings.Join(t.stages, ","), s, strings.Join(stageNames(), ","))
		}
	}
	if t.packages = fs.Args(); len(t.packages) == 0 {
		t.packages = []string{"./..."}
	}
	for i, k := range t.kernels { // from where this is called, which may not be the root
		abs, err := filepath.Abs(k)
		if err != nil {
			return err
		}
		t.kernels[i] = abs
	}
	return nil
}

// prepare builds what the stages run.
func (t *tier) prepare() (err error) {
	if err := os.Chdir(t.root); err != nil { // kernels are looked for from here
		return err
	}
	if slices.Equal(t.stages, []string{"race"}) {
		return nil
	}
	if t.test2json, err = findTest2json(); err != nil {
		return err
	}
	return t.out.phase("build", func() error {
		if t.bins, err = build(t.root, t.packages); err != nil {
			return err
		}
		if slices.Contains(t.stages, "guests") || slices.Contains(t.stages, "cpus") {
			t.guest, err = buildGuest(t.root)
		}
		return err
	})
}

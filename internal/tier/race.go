package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// race runs tests with the race detector.
func (t *tier) race(ctx context.Context) error {
	if err := findCompiler(); err != nil {
		t.out.leaveOut("race", fmt.Errorf("the race detector is built with a C compiler: %w: make tools installs gcc", err))
		return nil
	}
	args := []string{"test", "-race", "-json", "-count=1", "-short", "-timeout=" + t.limit.String()}
	if t.run != "" {
		args = append(args, "-run="+t.run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, t.racePackages...)...)
	cmd.Dir = t.root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it passes that on to the tests
	cmd.WaitDelay = grace
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := t.out.place("race")
	err = decode(out, newRacer(t.out, p).take)
	werr := cmd.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || werr != nil && p.count().failed == 0 {
		t.out.problem(p, "go test -race: %v: %s", errors.Join(err, werr), strings.TrimSpace(stderr.String()))
	}
	return nil
}

// racer sorts the events of go test by package.
type racer struct {
	out    *report
	place  *place
	suites map[string]*suite
	builds map[string]*strings.Builder // what building said
}

func newRacer(out *report, p *place) *racer {
	return &racer{out: out, place: p, suites: map[string]*suite{}, builds: map[string]*strings.Builder{}}
}

func (r *racer) take(e event) {
	if e.Package == "" {
		if r.builds[e.ImportPath] == nil {
			r.builds[e.ImportPath] = new(strings.Builder)
		}
		r.builds[e.ImportPath].WriteString(e.Output)
		return
	}
	s := r.suites[e.Package]
	if s == nil {
		s = newSuite(e.Package)
		r.suites[e.Package] = s
	}
	s.take(e)
	if e.Test != "" || !slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
		return
	}
	if e.FailedBuild != "" {
		if said := r.builds[e.FailedBuild]; said != nil {
			s.take(event{Output: said.String()})
		}
	}
	s.elapsed = time.Duration(e.Elapsed * float64(time.Second))
	if e.Action != "skip" { // the package has no tests
		r.out.ended(r.place, s)
	}
}

// findCompiler looks for the C compiler that go would use.
func findCompiler() error {
	out, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		return withStderr(err)
	}
	cc := strings.Fields(string(out))
	if len(cc) == 0 {
		return errors.New("go names none")
	}
	_, err = exec.LookPath(cc[0])
	return err
}

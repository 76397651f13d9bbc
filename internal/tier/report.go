package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// place is where tests ran: host, nobody, race, or a guest by the release of its kernel and what is special with it.
type place struct {
	name     string
	suites   []*suite
	problems []string // that are no package's
}

func (p *place) count() counts {
	c := counts{failed: len(p.problems)}
	for _, s := range p.suites {
		c = c.plus(s.count())
	}
	return c
}

// state is that of a test, or "" if it did not run.
func (p *place) state(pkg, name string) (state, reason string) {
	for _, s := range p.suites {
		if t := s.tests[name]; s.pkg == pkg && t != nil {
			return t.state, t.reason()
		}
	}
	return "", ""
}

// report is what is printed, and what it says in the end. What runs at once shares it.
type report struct {
	mu      sync.Mutex
	w       io.Writer
	verbose bool
	strict  bool // what is left out has failed
	places  []*place
	leftOut []string
	phases  []string // with the time that each took
}

// place begins a place.
func (r *report) place(name string) *place {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &place{name: name}
	r.places = append(r.places, p)
	return p
}

// ended adds a suite to the place and says what became of it: a line, after the output of tests that have failed, or all.
func (r *report) ended(p *place, s *suite) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.suites = append(p.suites, s)
	verdict := "ok  "
	if !s.ok() {
		verdict = "FAIL"
	}
	if r.verbose {
		fmt.Fprint(r.w, s.log.String())
	} else if !s.ok() {
		r.explain(s)
	}
	for _, problem := range s.problems {
		fmt.Fprintf(r.w, "%s: %s: %s\n", p.name, s.pkg, problem)
	}
	fmt.Fprintf(r.w, "%s\t%s\t%s\t%.3fs\n", verdict, s.pkg, p.name, s.elapsed.Seconds())
}

// explain shows the output of what has failed.
func (r *report) explain(s *suite) {
	for _, name := range s.inState("fail", "run") {
		if s.tests[name].state == "run" {
			fmt.Fprintf(r.w, "--- FAIL: %s: it has not come to its end\n", name)
		}
		fmt.Fprint(r.w, s.tests[name].shown())
	}
	fmt.Fprint(r.w, s.output.String())
}

// problem says what is wrong with a place.
func (r *report) problem(p *place, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
	fmt.Fprintf(r.w, "FAIL\t%s: %s\n", p.name, p.problems[len(p.problems)-1])
}

// message shows what a guest has to say besides its tests.
func (r *report) message(p *place, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, "%s: %s\n", p.name, line)
}

// leaveOut says what cannot run here, and how it could.
func (r *report) leaveOut(what string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftOut = append(r.leftOut, fmt.Sprintf("%s: left out: %v", what, why))
}

// phase does something and remembers how long it took.
func (r *report) phase(name string, do func() error) error {
	start := time.Now()
	err := do()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phases = append(r.phases, fmt.Sprintf("%s %.0f s", name, time.Since(start).Seconds()))
	return err
}

// finish prints what ran where, and returns whether all is well.
func (r *report) finish() bool {
	fmt.Fprintf(r.w, "\ntime: %s\n", strings.Join(r.phases, ", "))
	var all counts
	here := func(p *place) int {
		if slices.ContainsFunc(stagesHere, func(s stage) bool { return s.name == p.name }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(r.places, func(p, q *place) int { return here(p) - here(q) })
	for _, p := range r.places {
		r.skips(p)
		r.failures(p)
		c := p.count()
		all = all.plus(c)
		fmt.Fprintf(r.w, "%s: %s\n", p.name, c)
	}
	for _, line := range r.leftOut {
		fmt.Fprintln(r.w, line)
	}
	ok := all.failed == 0 && (len(r.leftOut) == 0 || !r.strict)
	if len(r.leftOut) > 0 && r.strict {
		fmt.Fprintln(r.w, "that is a failure, as CI=true says that nothing may be left out")
	}
	if all == (counts{}) {
		fmt.Fprintln(r.w, "no test ran, which is a failure")
		ok = false
	}
	fmt.Fprintln(r.w, all)
	return ok
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// skips lists why tests of a place were skipped, each reason once.
func (r *report) skips(p *place) {
	tests := map[string][]string{}
	for _, s := range p.suites {
		for _, name := range s.inState("skip") {
			why := s.tests[name].reason()
			tests[why] = append(tests[why], name)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(tests)) {
		fmt.Fprintf(r.w, "    skipped: %s (%s)\n", why, few(tests[why]))
	}
}

func (r *report) failures(p *place) {
	for _, s := range p.suites {
		if names := s.inState("fail", "run"); names != nil {
			fmt.Fprintf(r.w, "    failed: %s: %s\n", s.pkg, strings.Join(names, ", "))
		}
		for _, problem := range s.problems {
			fmt.Fprintf(r.w, "    failed: %s: %s\n", s.pkg, problem)
		}
	}
	for _, problem := range p.problems {
		first, _, _ := strings.Cut(problem, "\n")
		fmt.Fprintf(r.w, "    failed: %s\n", first)
	}
}

// few shortens a list of names.
func few(names []string) string {
	const limit = 4
	if len(names) <= limit+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

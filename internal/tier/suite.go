package main

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// suite is what became of a package's tests in one place. A test that has begun and not ended has failed.
type suite struct {
	pkg      string // import path
	elapsed  time.Duration
	problems []string        // why it has failed, tests that have failed aside
	log      strings.Builder // all output
	output   strings.Builder // that is no test's
	tests    map[string]*test
	names    []string // of the tests, in the order in which they began
	failed   bool     // says the package's last event, if one came
}

type test struct {
	state  string // the last of run, pass, fail and skip
	output strings.Builder
}

func newSuite(pkg string) *suite { return &suite{pkg: pkg, tests: map[string]*test{}} }

// take adds an event.
func (s *suite) take(e event) {
	s.log.WriteString(e.Output)
	if e.Test == "" {
		s.output.WriteString(e.Output)
		s.failed = s.failed || e.Action == "fail"
		return
	}
	t := s.tests[e.Test]
	if t == nil {
		t = new(test)
		s.tests[e.Test] = t
		s.names = append(s.names, e.Test)
	}
	switch e.Action {
	case "run", "pass", "fail", "skip":
		t.state = e.Action
	case "output":
		t.output.WriteString(e.Output)
	}
}

// counts are of tests, subtests and those that have some.
type counts struct{ passed, failed, skipped int }

func (c counts) plus(d counts) counts {
	return counts{c.passed + d.passed, c.failed + d.failed, c.skipped + d.skipped}
}

// count counts each test and subtest. A package that has failed without a test that has counts as one that has.
func (s *suite) count() counts {
	var c counts
	for _, t := range s.tests {
		switch t.state {
		case "pass":
			c.passed++
		case "skip":
			c.skipped++
		default:
			c.failed++
		}
	}
	if c.failed == 0 && (s.failed || len(s.problems) > 0) {
		c.failed = 1
	}
	return c
}

func (s *suite) ok() bool { return s.count().failed == 0 }

// inState returns the names of the tests in one of the states.
func (s *suite) inState(states ...string) []string {
	var names []string
	for _, name := range s.names {
		if slices.Contains(states, s.tests[name].state) {
			names = append(names, name)
		}
	}
	return names
}

// shown is a test's output without the lines that say that it runs.
func (t *test) shown() string {
	var b strings.Builder
	for line := range strings.Lines(t.output.String()) {
		if !strings.HasPrefix(line, "=== ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

var logPrefix = regexp.MustCompile(`^ +\S+\.go:\d+: `)

// reason is what a skipped test has said last.
func (t *test) reason() string {
	var lines []string
	for line := range strings.Lines(t.shown()) {
		if prefix := logPrefix.FindString(line); prefix != "" {
			lines = []string{line[len(prefix):]}
		} else if lines != nil && !strings.HasPrefix(strings.TrimSpace(line), "--- ") {
			lines = append(lines, line)
		}
	}
	said := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	if said == "" {
		return "no reason is given"
	}
	return said
}

package fetcharg

import (
	"fmt"
	"strings"
	"testing"
)

// expand puts the names that the kind's target has into a list of the corpus.
func expand(kind Kind, list string) string {
	names := []string{"FILE", "file", "FIELD", "f_op", "STRUCT", "file"}
	if kind == Tprobe {
		names = []string{"FILE", "prev", "FIELD", "real_parent", "STRUCT", "task_struct"}
	}
	return strings.NewReplacer(names...).Replace(list)
}

// verdict is the package's answer.
func verdict(kind Kind, list string, version Version, attached *Format) error {
	args, err := Parse(list)
	if err != nil {
		return err
	}
	if err := Check(args, kind); err != nil {
		return err
	}
	if kind == Eprobe {
		if err := attached.CheckFields(args); err != nil {
			return err
		}
	}
	for _, n := range Needs(args, kind) {
		if !n.In(version) {
			return fmt.Errorf("%v", n)
		}
	}
	return nil
}

// TestKernelCorpus compares the package's answers with those of the running kernel.
func TestKernelCorpus(t *testing.T) {
	tr := newTracing(t)
	for _, kind := range Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			tr := tr.on(t)
			tr.needs(kind)
			c := &comparison{t: t, tr: tr, kind: kind, used: map[string]bool{}}
			if kind == Eprobe {
				c.attached = tr.format("sched/sched_switch")
			}
			for _, part := range corpus {
				for _, k := range part.kinds {
					if k != kind {
						continue
					}
					for _, list := range part.lists {
						c.compare(list)
					}
				}
			}
			c.unused()
			t.Logf("kernel %v: %d lists, %d accepted, %d refused, %d as in the table of differences", tr.version, c.accepted+c.refused, c.accepted, c.refused, len(c.used))
		})
	}
}

type comparison struct {
	t                 *testing.T
	tr                *tracing
	kind              Kind
	attached          *Format
	accepted, refused int
	used              map[string]bool
}

func (c *comparison) compare(list string) {
	c.t.Helper()
	text := expand(c.kind, list)
	want := verdict(c.kind, text, c.tr.version, c.attached)
	line := mustDefine(c.t, c.tr.event(c.kind)) + " " + text
	got := c.tr.define(line, "x")
	if got == nil {
		c.accepted++
	} else {
		c.refused++
	}
	reason := c.reason(list)
	switch agree := (want == nil) == (got == nil); {
	case agree && reason != "":
		c.t.Errorf("%s: the table has a difference (%s), but there is none: %v", text, reason, got)
	case !agree && reason == "":
		c.t.Errorf("%v on %v: %s: the kernel says %v, the package %v", c.kind, c.tr.version, text, got, want)
	case !agree:
		c.used[list] = true
	}
	if want != nil || got != nil {
		return
	}
	args, _ := Parse(text)
	e := c.tr.event(c.kind)
	e.Args = args
	if line, err := e.Definition(); err != nil {
		c.t.Errorf("%s: %v", text, err)
	} else if Join(args) == text {
		return
	} else if err := c.tr.define(line, "x"); err != nil {
		c.t.Errorf("%s: the kernel takes it, but of its canonical form it says %v: %s", text, err, line)
	}
}

// reason returns why the list is a difference on this kernel, or "".
func (c *comparison) reason(list string) string {
	for _, d := range differences {
		if d.holds(c.tr.version, c.kind) {
			for _, l := range d.lists {
				if l == list {
					return d.reason
				}
			}
		}
	}
	return ""
}

func (d difference) holds(v Version, kind Kind) bool {
	if v.Before(d.since) || d.from != (Version{}) && !v.Before(d.from) {
		return false
	}
	for _, k := range d.kinds {
		if k == kind {
			return true
		}
	}
	return false
}

// unused fails for differences that are not in the corpus.
func (c *comparison) unused() {
	for _, d := range differences {
		for _, l := range d.lists {
			if d.holds(c.tr.version, c.kind) && !c.used[l] {
				c.t.Errorf("%s: it is in the table of differences, but it was not seen", l)
			}
		}
	}
}

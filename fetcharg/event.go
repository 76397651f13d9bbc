package fetcharg

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// Limits of names and lines (include/linux/trace_events.h, MAX_EVENT_NAME_LEN; kernel/trace/trace.c, WRITE_BUFSIZE).
const (
	maxEventName = 63
	maxLine      = 4094
)

// Event is a probe event.
type Event struct {
	Kind  Kind
	Group string // the folder of the event in tracefs's events
	Name  string
	// Target is what is probed: a function of the kernel (also MODULE:FUNCTION, in kprobes also an address 0x…), a
	// tracepoint, SYSTEM.EVENT for an eprobe, or the absolute path of a file for a uprobe.
	Target string
	Offset uint64 // bytes from the function's begin (kprobes only), or of the instruction in the file (uprobes)
	Args   []Arg
}

// Definition returns the line that defines the event when it is written to tracefs's dynamic_events, without a newline. Its
// error joins all that is wrong with the event and its arguments.
func (e Event) Definition() (string, error) {
	if err := e.check(); err != nil {
		return "", err
	}
	letter := map[Kind]string{Kprobe: "p", Kretprobe: "r", Fprobe: "f", FprobeReturn: "f", Tprobe: "t", Eprobe: "e", Uprobe: "p", Uretprobe: "r"}[e.Kind]
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%s/%s %s", letter, e.Group, e.Name, e.Target)
	switch {
	case e.Kind.User():
		fmt.Fprintf(&b, ":%#x", e.Offset)
	case e.Kind == FprobeReturn:
		b.WriteString("%return")
	case e.Offset > 0:
		fmt.Fprintf(&b, "+%#x", e.Offset)
	}
	for _, a := range e.Args {
		b.WriteString(" " + a.String())
	}
	if b.Len() > maxLine {
		return "", fmt.Errorf("define event %s/%s: the line has %d bytes, and the kernel takes %d", e.Group, e.Name, b.Len(), maxLine)
	}
	return b.String(), nil
}

// Removal returns the line that removes the event again.
func (e Event) Removal() string { return "-:" + e.Group + "/" + e.Name }

// Needs returns what the event needs of the kernel.
func (e Event) Needs() []Need { return Needs(e.Args, e.Kind) }

func (e Event) check() error {
	if !e.Kind.valid() {
		return fmt.Errorf("define event: there is no %v", e.Kind)
	}
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("define event %s/%s: "+format, append([]any{e.Group, e.Name}, args...)...))
	}
	if group := strings.ReplaceAll(e.Group, "-", "_"); !isName(group) || len(group) > maxEventName { // is_good_system_name
		fail("expected a group of letters, digits, _ and -, no digit first, of %d bytes at most", maxEventName)
	}
	if !isName(e.Name) || len(e.Name) > maxEventName {
		fail("expected a name of letters, digits and _, no digit first, of %d bytes at most", maxEventName)
	}
	if want := e.wantTarget(); want != "" {
		fail("target %q: expected %s", e.Target, want)
	}
	atEntry := true
	if e.Offset > 0 && !e.Kind.User() {
		if e.Kind != Kprobe {
			fail("offset %d: expected none for %s", e.Offset, kinds[e.Kind].title)
		}
		atEntry = runtime.GOARCH == "amd64" && e.Offset == 4 // after an endbr64
	}
	if err := check(e.Args, e.Kind, atEntry); err != nil {
		errs = append(errs, fmt.Errorf("define event %s/%s: %w", e.Group, e.Name, err))
	}
	return errors.Join(errs...)
}

// wantTarget returns what the target should be, or "" if it is that.
func (e Event) wantTarget() string {
	switch e.Kind {
	case Uprobe, Uretprobe:
		if !strings.HasPrefix(e.Target, "/") || strings.ContainsAny(e.Target, "#\x00") || slices.ContainsFunc([]byte(e.Target), isSpace) {
			return "the absolute path of a file, without blanks and #"
		}
	case Eprobe:
		system, event, ok := strings.Cut(e.Target, ".")
		if !ok || !isName(strings.ReplaceAll(system, "-", "_")) || !isName(event) {
			return "SYSTEM.EVENT"
		}
	case Tprobe:
		if !isName(e.Target) {
			return "the name of a tracepoint"
		}
	default:
		module, function, ok := strings.Cut(e.Target, ":")
		if !ok {
			module, function = "m", e.Target
		}
		if address, ok := strings.CutPrefix(e.Target, "0x"); ok && e.Kind != Fprobe && e.Kind != FprobeReturn && e.Offset == 0 {
			if _, ok := parseUint("0x" + address); ok {
				return ""
			}
		}
		if !isSymbol(module) || !isSymbol(function) {
			return "a function of the kernel"
		}
	}
	return ""
}

func isSymbol(s string) bool {
	return s != "" && !isDigit(s[0]) && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$") == ""
}

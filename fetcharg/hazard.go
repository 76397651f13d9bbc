package fetcharg

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf/btf"
)

// Hazard says why an event must not be given to a kernel: fetching the argument, the kernel's own engine writes beyond the
// event's record, whatever memory that is. A compiled program never does.
type Hazard struct {
	Arg    Arg
	Why    string
	Remedy string // what makes the event harmless
}

func (h *Hazard) Error() string { return fmt.Sprintf("%s: %s: %s", h.Arg, h.Why, h.Remedy) }

// HazardOptions say what is known of the kernel. What is nil is asked of the running one where it matters.
type HazardOptions struct {
	Version Version
	BTF     *btf.Spec
	Symbols func(name string) (uint64, error)
}

// Hazard returns an argument with which the event, once it is hit, makes the kernel damage its own memory, or nil.
// It knows three faults of kernel/trace/trace_probe*.h and trace_uprobe.c; the kernel refuses none of these definitions:
//
//   - a bit field whose type comes from BTF (6.6 on) is shifted as 8 bytes, whatever it has in the record;
//   - symstr (until 7.0) writes a zero 511 bytes behind the begin of its text;
//   - the arguments of a uprobe (until 6.12 and the stable releases of its time) are put together in a page, however long
//     their texts are.
//
// Where it cannot be known whether a field is a bit field, it is taken for one.
func (e Event) Hazard(opt HazardOptions) *Hazard {
	if opt.Symbols == nil {
		opt.Symbols = kallsymsAddress
	}
	c := &compiler{event: e, nodes: map[nodeKey]*node{}, types: types{spec: opt.BTF, event: e}, typesOnly: true}
	texts, behind := 0, 0 // bytes
	for i := len(e.Args) - 1; i >= 0; i-- {
		a := e.Args[i]
		if a.Type.Base == SymStr && opt.Version.Before(v7_0) {
			return &Hazard{a, "at each hit the kernel writes a zero 511 bytes behind the text, and crashes sooner or later", "use the type symbol"}
		}
		size, bits := c.hazardSize(a)
		if behind += size; bits && behind < bitFieldWord {
			return &Hazard{a, fmt.Sprintf("the kernel shifts a bit field as %d bytes, and the record ends %d bytes behind the begin of this one", bitFieldWord, behind),
				`add an argument of 8 bytes behind it, such as pad=\0, or give it a type`}
		}
		texts += longest(a)
	}
	if page := os.Getpagesize(); e.Kind.User() && behind+texts > page && opt.Version.Before(v6_12) {
		if _, err := opt.Symbols("prepare_uprobe_buffer"); err != nil { // which came with the bound
			i := firstText(e.Args)
			return &Hazard{e.Args[i], fmt.Sprintf("the kernel puts a uprobe's arguments together in a page of %d bytes, and these can be longer", page),
				"fetch no text"}
		}
	}
	return nil
}

const (
	bitFieldWord = 8    // bytes that the kernel shifts for a bit field that BTF knows
	longestText  = 4096 // PATH_MAX
)

// hazardSize returns the least number of bytes that an argument has in the record, and whether the kernel shifts it as a bit
// field that BTF knows.
func (c *compiler) hazardSize(a Arg) (size int, bits bool) {
	t, fromBTF := a.Typed(c.event.Kind)
	if !fromBTF {
		return t.ElemSize() * max(t.Len, 1), false
	}
	t, m, ok := c.typeOf(a)
	switch {
	case ok && m.typ != nil:
		return t.ElemSize(), m.bits > 0 && (m.bits%8 > 0 || m.shift > 0)
	default:
		return 1, isMember(a.Expr)
	}
}

// longest is how many bytes an argument's texts can have.
func longest(a Arg) int {
	switch e := a.Expr.(type) {
	case Comm:
		return taskNameSize
	case ImmString:
		return len(e.Value) + 1
	}
	if !a.Type.IsString() {
		return 0
	}
	return longestText * max(a.Type.Len, 1)
}

// firstText is the index of the first argument that is text, or of the last.
func firstText(args []Arg) int {
	for i, a := range args {
		if longest(a) > 0 {
			return i
		}
	}
	return len(args) - 1
}

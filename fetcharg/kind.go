package fetcharg

import "fmt"

// Kind is a kind of probe event.
type Kind uint8

const (
	Kprobe Kind = iota
	Kretprobe
	Fprobe
	FprobeReturn
	Tprobe // on a tracepoint as it is in the kernel's code
	Eprobe // on an event
	Uprobe
	Uretprobe
)

// Kinds are all kinds.
var Kinds = []Kind{Kprobe, Kretprobe, Fprobe, FprobeReturn, Tprobe, Eprobe, Uprobe, Uretprobe}

var kinds = [...]struct {
	name, title string
	since       Version
	option      string
}{
	Kprobe:       {"kprobe", "a kprobe", Version{2, 6}, "CONFIG_KPROBE_EVENTS"},
	Kretprobe:    {"kretprobe", "a kretprobe", Version{2, 6}, "CONFIG_KPROBE_EVENTS"},
	Fprobe:       {"fprobe", "an fprobe", Version{6, 5}, "CONFIG_FPROBE_EVENTS"},
	FprobeReturn: {"fprobe-return", "an fprobe at the return", Version{6, 5}, "CONFIG_FPROBE_EVENTS"},
	Tprobe:       {"tprobe", "a tprobe", Version{6, 5}, "CONFIG_FPROBE_EVENTS"},
	Eprobe:       {"eprobe", "an eprobe", Version{5, 15}, "CONFIG_EPROBE_EVENTS"},
	Uprobe:       {"uprobe", "a uprobe", Version{3, 5}, "CONFIG_UPROBE_EVENTS"},
	Uretprobe:    {"uretprobe", "a uretprobe", Version{3, 10}, "CONFIG_UPROBE_EVENTS"},
}

// String returns a word.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k].name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Since returns the kernel version that the kind came with.
func (k Kind) Since() Version { return kinds[k].since }

// Option returns the option that the kernel is to be built with.
func (k Kind) Option() string { return kinds[k].option }

// Return reports whether the probe is at a function's return.
func (k Kind) Return() bool { return k == Kretprobe || k == FprobeReturn || k == Uretprobe }

// User reports whether the probed code is that of a process.
func (k Kind) User() bool { return k == Uprobe || k == Uretprobe }

// function reports whether the probe is at the entry or the return of a function of the kernel, or at a tracepoint: those
// have parameters.
func (k Kind) function() bool { return k <= Tprobe }

// registers reports whether the probe has them.
func (k Kind) registers() bool { return k == Kprobe || k == Kretprobe || k.User() }

// valid reports whether k is one of the kinds.
func (k Kind) valid() bool { return int(k) < len(kinds) }

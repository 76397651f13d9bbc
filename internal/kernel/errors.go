// Package kernel finds out what the running kernel offers to BPF, and translates what it answers. A feature is there, it
// is missing, or it is refused: the capabilities are held, but lockdown or a security module (LSM) says no. That the
// process lacks a capability is none of these, as there is a remedy.
package kernel

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Outcome is what is found of a feature.
type Outcome int

const (
	There   Outcome = iota // it can be used
	Missing                // the kernel does not have it
	Refused                // the kernel denies it to a process that holds the capabilities
)

func (o Outcome) String() string {
	switch o {
	case There:
		return "there"
	case Missing:
		return "missing"
	case Refused:
		return "refused"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

// Error says that a feature cannot be used on this kernel, as it is set up. It is errors.ErrUnsupported.
type Error struct {
	Feature string
	Outcome Outcome // Missing or Refused
	Needs   string  // the version or option that has it, of a missing one; empty if that is not known
	By      string  // what may have refused it, of a refused one
	Err     error   // from the kernel; may be nil
}

func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString(e.Feature)
	switch e.Outcome {
	case Refused:
		s.WriteString(": refused although the capabilities are held")
		if e.By != "" {
			s.WriteString(" (" + e.By + ")")
		}
		if name := errnoName(e.Err); name != "" { // the library's words for EPERM would mislead
			s.WriteString(": " + name)
			return s.String()
		}
	default:
		s.WriteString(": not in this kernel")
		if e.Needs != "" {
			s.WriteString(": needs " + e.Needs)
			return s.String() // the error says no more than this
		}
	}
	if e.Err != nil {
		s.WriteString(": " + e.Err.Error())
	}
	return s.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports that the error is errors.ErrUnsupported.
func (e *Error) Is(target error) bool { return target == errors.ErrUnsupported }

// PrivilegeError says that the process lacks capabilities. It is not errors.ErrUnsupported, as the feature may be there.
type PrivilegeError struct {
	Feature string
	Missing []string // such as "CAP_BPF"
	Remedy  string
	Err     error // from the kernel; may be nil
}

func (e *PrivilegeError) Error() string {
	verb := "is"
	if len(e.Missing) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s: not permitted: %s %s missing: %s", e.Feature, strings.Join(e.Missing, ", "), verb, e.Remedy)
}

func (e *PrivilegeError) Unwrap() error { return e.Err }

// enotsupp is an error number of the kernel's own that bpf(2) lets through (include/linux/errno.h: ENOTSUPP).
const enotsupp = syscall.Errno(524)

// notSupported reports that the kernel or the library says that it does not know what it was asked for.
func notSupported(err error) bool {
	return errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, enotsupp) || errors.Is(err, errors.ErrUnsupported)
}

// errnoName returns the name of the error number in err, such as "EPERM", or "" if there is none.
func errnoName(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	if errno == enotsupp {
		return "ENOTSUPP"
	}
	return unix.ErrnoName(errno)
}

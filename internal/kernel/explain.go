package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Explain sorts an error of bpf(2) or of the BPF library: into a *PrivilegeError if one of caps is needed and not held, an
// *Error if the feature is missing or refused, and otherwise wraps it as what. caps are those that the call needs; none
// stands for CapSysAdmin. An error that is one of these types comes back as it is; err stays reachable, a
// *ebpf.VerifierError among others. Explain of nil is nil.
func Explain(err error, what string, caps ...Cap) error { return here().explain(err, what, caps...) }

func (s system) explain(err error, what string, caps ...Cap) error {
	var known *Error
	var privilege *PrivilegeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.As(err, &privilege):
		return err
	case errors.Is(err, unix.ENOSYS):
		return &Error{Feature: what, Outcome: Missing, Needs: "CONFIG_BPF_SYSCALL=y", Err: err}
	case notSupported(err):
		return &Error{Feature: what, Outcome: Missing, Err: err}
	case !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w", what, err)
	}
	if len(caps) == 0 {
		caps = []Cap{CapSysAdmin}
	}
	if lacking := s.lacking(caps); lacking != nil {
		return &PrivilegeError{Feature: what, Missing: lacking, Remedy: s.remedy(), Err: err}
	}
	// The verifier answers EACCES to a program that is wrong, and says why. LSMs of SELinux's kind answer EACCES, too.
	var verifier *ebpf.VerifierError
	if errors.As(err, &verifier) && errors.Is(err, unix.EACCES) && len(verifier.Log) > 0 {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &Error{Feature: what, Outcome: Refused, By: s.refuser(), Err: err}
}

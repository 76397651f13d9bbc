// Package testutils holds what the tests of several packages need: skipping where a kernel or a user cannot do what is
// tested, and finding what a test has left behind.
package testutils

import (
	"errors"
	"testing"

	"bpfbench/internal/kernel"
)

// NeedsBPF skips the test, with the reason, where BPF programs cannot be loaded and run: for lack of privilege, or as the
// kernel does not offer it. It fails the test if that cannot be found out.
func NeedsBPF(t testing.TB) {
	t.Helper()
	Needs(t, kernel.RawTracepoint())
}

// Needs skips the test if err is a lack of privilege or errors.ErrUnsupported, and fails it for any other error. err is
// that of a probe of package kernel.
func Needs(t testing.TB, err error) {
	t.Helper()
	var privilege *kernel.PrivilegeError
	switch {
	case err == nil:
	case errors.As(err, &privilege), errors.Is(err, errors.ErrUnsupported):
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

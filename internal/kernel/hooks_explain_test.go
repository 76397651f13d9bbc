package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

func TestExplainHook(t *testing.T) {
	h := Hook{Name: "x", Since: "6.5", Options: []string{"CONFIG_X=y", "CONFIG_Y=n"}, SetUp: "a set-up", caps: []Cap{CapBPF, CapPerfmon}}
	const missing = "x: not in this kernel: needs Linux 6.5 with CONFIG_X=y, CONFIG_Y=n; a set-up"
	for name, c := range map[string]struct {
		err       error
		release   version
		effective uint64
		want      string
	}{
		"there":      {nil, version{6, 12}, allCaps, ""},
		"unknown":    {ebpf.ErrNotSupported, version{6, 12}, allCaps, missing},
		"no file":    {fmt.Errorf("open: %w", fs.ErrNotExist), version{6, 12}, allCaps, missing},
		"too old":    {unix.EINVAL, version{6, 1}, allCaps, missing},
		"not so old": {unix.EINVAL, version{6, 5}, allCaps, "x: invalid argument"},
		"unprivileged": {unix.EPERM, version{6, 1}, 0,
			"x: not permitted: CAP_BPF, CAP_PERFMON are missing: run it as root (sudo)"},
		"refused": {unix.EPERM, version{6, 12}, allCaps, "x: refused although the capabilities are held (lockdown or an LSM: " +
			"mount securityfs on /sys/kernel/security to see which): EPERM"},
		"explained": {&PrivilegeError{Feature: "y", Missing: []string{"CAP_Z"}, Remedy: "ask"}, version{6, 12}, allCaps,
			"y: not permitted: CAP_Z is missing: ask"},
	} {
		s := fakeSystem(t, c.effective, nil)
		s.release = c.release
		got := ""
		if err := h.explain(s, c.err); err != nil {
			got = err.Error()
			if !errors.Is(err, c.err) {
				t.Errorf("%s: the error is not reachable", name)
			}
		}
		if got != c.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, c.want)
		}
	}
}

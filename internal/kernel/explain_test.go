package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

const allCaps = 1<<41 - 1

// fakeSystem is a kernel 6.12 with files below its root, and a process of a user.
func fakeSystem(t *testing.T, effective uint64, files map[string]string) system {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return system{root: root, release: version{6, 12}, effective: effective, euid: 1000}
}

const lockdown, lsm, uids = "sys/kernel/security/lockdown", "sys/kernel/security/lsm", "proc/self/uid_map"

var rejected = &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"R1 invalid mem access"}}

var explained = []struct {
	name      string
	err       error
	caps      []Cap
	effective uint64
	files     map[string]string
	want      string
}{
	{"privilege", unix.EPERM, []Cap{CapBPF, CapPerfmon}, 0, nil,
		"x: not permitted: CAP_BPF, CAP_PERFMON are missing: run it as root (sudo)"},
	{"half the privilege", unix.EPERM, []Cap{CapBPF, CapPerfmon}, 1 << CapBPF, nil,
		"x: not permitted: CAP_PERFMON is missing: run it as root (sudo)"},
	{"by default", unix.EACCES, nil, 1 << CapBPF, nil, "x: not permitted: CAP_SYS_ADMIN is missing: run it as root (sudo)"},
	{"user namespace", unix.EPERM, []Cap{CapBPF}, allCaps, map[string]string{uids: "0 1000 1\n"},
		"x: not permitted: CAP_BPF is missing: run it as root outside of the user namespace (a rootless container?)"},
	{"refused", unix.EPERM, []Cap{CapBPF}, allCaps, map[string]string{uids: "         0          0 4294967295\n"},
		"x: refused although the capabilities are held (lockdown or an LSM: mount securityfs on /sys/kernel/security " +
			"to see which): EPERM"},
	{"lockdown", unix.EPERM, []Cap{CapBPF, CapPerfmon}, 1 << CapSysAdmin,
		map[string]string{lockdown: "none [integrity] confidentiality\n", lsm: "lockdown,capability,landlock,bpf\n"},
		"x: refused although the capabilities are held (lockdown is integrity; active LSMs: bpf): EPERM"},
	{"selinux", fmt.Errorf("load: %w", unix.EACCES), []Cap{CapBPF}, allCaps,
		map[string]string{lockdown: "[none] integrity confidentiality\n", lsm: "capability,selinux\n"},
		"x: refused although the capabilities are held (active LSMs: selinux): EACCES"},
	{"seccomp", unix.EPERM, []Cap{CapBPF}, allCaps, map[string]string{lsm: "capability", "proc/self/status": "Seccomp:\t2\n"},
		"x: refused although the capabilities are held (a seccomp filter is active): EPERM"},
	{"unknown", unix.EPERM, []Cap{CapBPF}, allCaps, map[string]string{lsm: "capability", "proc/self/status": "Seccomp:\t0\n"},
		"x: refused although the capabilities are held (by what is not known): EPERM"},
	{"missing", fmt.Errorf("feature: %w", ebpf.ErrNotSupported), nil, 0, nil, "x: not in this kernel: feature: not supported"},
	{"no bpf", unix.ENOSYS, nil, 0, nil, "x: not in this kernel: needs CONFIG_BPF_SYSCALL=y"},
	{"leaked errno", enotsupp, nil, 0, nil, "x: not in this kernel: errno 524"},
	{"verifier", rejected, []Cap{CapBPF}, allCaps, nil, "x: : permission denied: R1 invalid mem access"},
	{"other", unix.ENOENT, nil, 0, nil, "x: no such file or directory"},
	{"nothing", nil, nil, 0, nil, ""},
}

func TestExplain(t *testing.T) {
	for _, c := range explained {
		t.Run(c.name, func(t *testing.T) {
			got := fakeSystem(t, c.effective, c.files).explain(c.err, "x", c.caps...)
			text := ""
			if got != nil {
				text = got.Error()
			}
			if text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
			if c.err != nil && !errors.Is(got, c.err) {
				t.Error("the error is not reachable")
			}
			unsupported := strings.Contains(text, "refused") || strings.Contains(text, "not in this kernel")
			if errors.Is(got, errors.ErrUnsupported) != unsupported {
				t.Errorf("errors.Is(%v, errors.ErrUnsupported) is %v", got, !unsupported)
			}
		})
	}
}

func TestExplainReachable(t *testing.T) {
	s := fakeSystem(t, 0, nil)
	rejected := &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"bad"}}
	err := s.explain(fmt.Errorf("load: %w", rejected), "x", CapPerfmon)
	var privilege *PrivilegeError
	var verifier *ebpf.VerifierError
	if !errors.As(err, &privilege) || !errors.As(err, &verifier) || verifier != rejected {
		t.Errorf("%v holds no *PrivilegeError and *VerifierError", err)
	}
	if again := s.explain(fmt.Errorf("y: %w", err), "z"); again.Error() != "y: "+err.Error() {
		t.Errorf("explained again: %v", again)
	}
	missing := &Error{Feature: "f", Outcome: Missing}
	if again := s.explain(missing, "z"); again != error(missing) {
		t.Errorf("explained again: %v", again)
	}
}

func TestOldKernel(t *testing.T) {
	s := fakeSystem(t, 0, nil)
	s.release = version{5, 4}
	var privilege *PrivilegeError
	err := s.explain(unix.EPERM, "x", CapBPF, CapPerfmon)
	if !errors.As(err, &privilege) || strings.Join(privilege.Missing, " ") != "CAP_SYS_ADMIN" {
		t.Errorf("before 5.8: %v", err)
	}
	s.effective = allCaps
	if err := s.explain(unix.EPERM, "x", CapBPF); !strings.Contains(err.Error(), "RLIMIT_MEMLOCK") {
		t.Errorf("before 5.11: %v", err)
	}
}

func TestRoot(t *testing.T) {
	if os.Geteuid() == 0 {
		if s := here(); s.effective == 0 {
			t.Error("root holds no capability")
		}
	}
	s := fakeSystem(t, 0, nil)
	user := s.remedy()
	s.euid = 0
	if root := s.remedy(); root == user || strings.Contains(root, "sudo") {
		t.Errorf("remedy for root: %s", root)
	}
}

func TestVersion(t *testing.T) {
	for in, want := range map[string]version{
		"6.12.9-amd64": {6, 12}, "5.4": {5, 4}, "7.0-rc1": {7, 0}, "": {}, "x.y": {}, "6": {},
	} {
		if got := parseVersion(in); got != want {
			t.Errorf("parseVersion(%q) = %v, want %v", in, got, want)
		}
	}
	for _, c := range []struct {
		v    version
		want bool
	}{{version{5, 16}, true}, {version{4, 19}, true}, {version{5, 17}, false}, {version{6, 1}, false}, {version{}, false}} {
		if got := c.v.before(5, 17); got != c.want {
			t.Errorf("%v before 5.17: %v", c.v, got)
		}
	}
}

func TestOutcome(t *testing.T) {
	if got := fmt.Sprint(There, Missing, Refused, Outcome(9)); got != "there missing refused Outcome(9)" {
		t.Error(got)
	}
	if errors.Is(&Error{}, fs.ErrPermission) {
		t.Error("an *Error is fs.ErrPermission")
	}
}

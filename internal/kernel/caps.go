package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Cap is a capability (capabilities(7)).
type Cap int

const (
	CapNetAdmin Cap = unix.CAP_NET_ADMIN // network program types
	CapSysAdmin Cap = unix.CAP_SYS_ADMIN // everything that the others allow, to BPF
	CapPerfmon  Cap = unix.CAP_PERFMON   // tracing program types, perf events; from Linux 5.8
	CapBPF      Cap = unix.CAP_BPF       // maps, programs; from Linux 5.8
)

// String is the capability's name, such as "CAP_BPF".
func (c Cap) String() string {
	switch c {
	case CapNetAdmin:
		return "CAP_NET_ADMIN"
	case CapSysAdmin:
		return "CAP_SYS_ADMIN"
	case CapPerfmon:
		return "CAP_PERFMON"
	case CapBPF:
		return "CAP_BPF"
	}
	return fmt.Sprintf("capability %d", int(c))
}

// system is the kernel and what the process may do, which tests replace.
type system struct {
	root      string // holds proc and sys
	release   version
	effective uint64 // capabilities, a bit each
	euid      int
}

func here() system {
	return system{root: "/", release: release(), effective: effective(), euid: os.Geteuid()}
}

// effective returns the effective capabilities of the calling thread.
func effective() uint64 {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return 0
	}
	return uint64(data[0].Effective) | uint64(data[1].Effective)<<32
}

// lacking returns the names of those capabilities that the process does not hold.
func (s system) lacking(caps []Cap) []string {
	var names []string
	for _, c := range caps {
		held := s.effective>>c&1 == 1 || s.effective>>CapSysAdmin&1 == 1
		if held && !s.userNamespace() {
			continue
		}
		if s.release.before(5, 8) {
			c = CapSysAdmin // the others were split off in 5.8; none of the callers asks for more than BPF
		}
		if len(names) == 0 || names[len(names)-1] != c.String() {
			names = append(names, c.String())
		}
	}
	return names
}

// userNamespace reports whether the process is not in the first user namespace. What it holds in another does not count
// for bpf(2).
func (s system) userNamespace() bool {
	uids := strings.Fields(s.read("proc/self/uid_map"))
	return len(uids) > 0 && strings.Join(uids, " ") != "0 0 4294967295"
}

// remedy says how to get capabilities.
func (s system) remedy() string {
	switch {
	case s.userNamespace():
		return "run it as root outside of the user namespace (a rootless container?)"
	case s.euid == 0:
		return "root does not hold everything here (a container?): run it outside, or grant what is missing"
	}
	return "run it as root (sudo)"
}

// refuser names what may refuse a call to a process that holds the capabilities.
func (s system) refuser() string {
	var found []string
	// The state in brackets: "none [integrity] confidentiality".
	_, state, _ := strings.Cut(s.read("sys/kernel/security/lockdown"), "[")
	state, _, _ = strings.Cut(state, "]")
	if state != "" && state != "none" {
		found = append(found, "lockdown is "+state)
	}
	lsms := s.read("sys/kernel/security/lsm")
	var denying []string
	for name := range strings.SplitSeq(lsms, ",") {
		switch name {
		case "selinux", "apparmor", "smack", "tomoyo", "bpf":
			denying = append(denying, name)
		}
	}
	if denying != nil {
		found = append(found, "active LSMs: "+strings.Join(denying, ", "))
	}
	for line := range strings.Lines(s.read("proc/self/status")) {
		if mode, ok := strings.CutPrefix(line, "Seccomp:"); ok && strings.TrimSpace(mode) == "2" {
			found = append(found, "a seccomp filter is active")
		}
	}
	if s.release.before(5, 11) {
		found = append(found, "RLIMIT_MEMLOCK may be too low, to which kernels before 5.11 account BPF memory")
	}
	if state == "" && lsms == "" {
		found = append(found, "lockdown or an LSM: mount securityfs on /sys/kernel/security to see which")
	}
	if found == nil {
		return "by what is not known"
	}
	return strings.Join(found, "; ")
}

func (s system) read(name string) string {
	b, err := os.ReadFile(filepath.Join(s.root, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// version is a kernel's, such as 6.12.
type version struct{ major, minor int }

func release() version {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return version{}
	}
	return parseVersion(unix.ByteSliceToString(u.Release[:]))
}

// parseVersion reads the start of a release such as "6.12.9-amd64". It is zero if that is no version.
func parseVersion(s string) version {
	var v version
	if _, err := fmt.Sscanf(s, "%d.%d", &v.major, &v.minor); err != nil {
		return version{}
	}
	return v
}

// before reports whether v is known to be older.
func (v version) before(major, minor int) bool {
	return v != version{} && (v.major < major || v.major == major && v.minor < minor)
}

func (v version) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

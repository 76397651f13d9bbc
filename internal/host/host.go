// Package host finds the facts of the machine and its kernel that bear on a measurement. What cannot be found out, as a
// file is missing or not readable for this user, stays empty: it is never an error.
package host

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bpfbench/internal/cpuset"
	"bpfbench/report"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Facts returns what is known of this machine.
func Facts() report.Host { return here().facts() }

// machine is where the facts come from, which tests replace.
type machine struct {
	root   string         // holds proc, sys and boot
	uname  func() utsname // of the kernel
	vendor func() string  // of the hypervisor, as CPUID gives it; empty where there is none or no CPUID
}

type utsname struct{ release, version, machine string }

func here() machine { return machine{root: "/", uname: uname, vendor: hypervisorVendor} }

func uname() utsname {
	var u unix.Utsname
	if unix.Uname(&u) != nil { // fails for a bad address only
		return utsname{}
	}
	return utsname{
		release: unix.ByteSliceToString(u.Release[:]),
		version: unix.ByteSliceToString(u.Version[:]),
		machine: unix.ByteSliceToString(u.Machine[:]),
	}
}

func (m machine) facts() report.Host {
	u := m.uname()
	cpus := m.cpuinfo()
	return report.Host{
		Kernel:      u.release,
		Build:       u.version,
		Arch:        u.machine,
		CPUModel:    model(cpus),
		CPUs:        m.online(len(cpus)),
		Memory:      m.memory(),
		Hypervisor:  m.hypervisor(cpus),
		ClockSource: m.read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Governor:    m.governor(),
		SMT:         m.read("sys/devices/system/cpu/smt/control"),
		JIT:         m.jit(u.release),
		Mitigations: m.mitigations(),
	}
}

// online counts the CPUs that are online. Where sysfs does not tell, it is what /proc/cpuinfo lists.
func (m machine) online(listed int) int {
	if cpus, err := cpuset.Parse(m.read("sys/devices/system/cpu/online")); err == nil {
		return len(cpus)
	}
	return listed
}

// memory is the machine's, in bytes, without what the kernel's image takes.
func (m machine) memory() uint64 {
	info, err := m.meminfo()
	if err != nil || info.MemTotalBytes == nil {
		return 0
	}
	return *info.MemTotalBytes
}

func (m machine) meminfo() (procfs.Meminfo, error) {
	proc, err := procfs.NewFS(m.path("proc"))
	if err != nil {
		return procfs.Meminfo{}, err
	}
	return proc.Meminfo()
}

// governor returns the frequency governors in use, joined by commas where CPUs differ.
func (m machine) governor() string {
	seen := map[string]bool{}
	for _, path := range m.glob("sys/devices/system/cpu/cpufreq/policy*/scaling_governor") {
		if g := read(path); g != "" {
			seen[g] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), ",")
}

// mitigations returns what the kernel says of each CPU vulnerability, in its own words.
func (m machine) mitigations() map[string]string {
	var all map[string]string
	for _, path := range m.glob("sys/devices/system/cpu/vulnerabilities/*") {
		if state := read(path); state != "" {
			if all == nil {
				all = map[string]string{}
			}
			all[filepath.Base(path)] = state
		}
	}
	return all
}

// jit returns the state of the BPF JIT compiler. The sysctl is for root only; a kernel built with
// CONFIG_BPF_JIT_ALWAYS_ON has no interpreter, whatever it says.
func (m machine) jit(release string) string {
	config := m.kernelConfig(release)
	if config["CONFIG_BPF_JIT_ALWAYS_ON"] == "y" {
		return "always on"
	}
	switch m.read("proc/sys/net/core/bpf_jit_enable") {
	case "0":
		return "off"
	case "1", "2": // 2 prints the code that it makes
		return "on"
	}
	if config != nil && config["CONFIG_BPF_JIT"] != "y" {
		return "off"
	}
	return ""
}

func (m machine) path(name string) string { return filepath.Join(m.root, name) }

// read returns a small file's content without space around it, or "" if it cannot be read.
func (m machine) read(name string) string { return read(m.path(name)) }

func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// glob returns the files that a pattern below the root matches.
func (m machine) glob(pattern string) []string {
	paths, _ := filepath.Glob(m.path(pattern)) // fails for a bad pattern only
	return paths
}

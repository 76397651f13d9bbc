package host

import (
	"fmt"
	"strings"

	"github.com/prometheus/procfs"

	"bpfbench/report"
)

// Disturbances are what of the machine's set-up or of what goes on on it would make a measurement worse, each with what to
// do about it.
func Disturbances() []report.Warning { return here().disturbances() }

func (m machine) disturbances() []report.Warning {
	var found []report.Warning
	add := func(is bool, remedy, what string, args ...any) {
		if is {
			found = append(found, report.Warning{What: fmt.Sprintf(what, args...), Remedy: remedy})
		}
	}
	f := m.facts()
	add(f.JIT == "off", "sysctl net.core.bpf_jit_enable=1", "BPF programs are interpreted, as the JIT is off")
	add(m.read("proc/sys/kernel/bpf_stats_enabled") == "1", "sysctl kernel.bpf_stats_enabled=0", "the kernel counts and times every run of a BPF program")
	add(f.Governor != "" && f.Governor != "performance", "cpupower frequency-set -g performance", "the frequency governor is %s", f.Governor)
	add(m.turbo(), "switch it off: intel_pstate/no_turbo or cpufreq/boost", "turbo is on, so speed depends on heat and on what other cores do")
	add(m.read("sys/devices/system/cpu/smt/active") == "1", "switch it off (/sys/devices/system/cpu/smt/control), or leave siblings idle by --prod-affinity", "CPUs share cores (SMT)")
	add(slow(f.ClockSource), "boot with clocksource=tsc if the machine's is stable", "reading the clock %s is slow", f.ClockSource)
	if debug := m.debugOptions(f.Kernel); len(debug) > 0 {
		add(true, "measure a kernel without them", "the kernel is built for debugging: %s", strings.Join(debug, ", "))
	}
	fs, err := procfs.NewFS(m.path("proc"))
	if err != nil {
		return found
	}
	if load, err := fs.LoadAvg(); err == nil && f.CPUs > 0 {
		add(load.Load1 > float64(f.CPUs)/2, "wait, or stop what else runs", "other work keeps the CPUs busy: a load of %.1f on %d", load.Load1, f.CPUs)
	}
	if stat, err := fs.Stat(); err == nil {
		c := stat.CPUTotal
		all := c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
		add(all > 0 && c.Steal > all/100, "use a machine of your own; compare inside one session only", "the host took %.0f %% of the time since boot (steal)", 100*c.Steal/all)
	}
	return found
}

// slow reports whether a clock source is one that takes a trap or a device to read.
func slow(clock string) bool { return clock == "hpet" || clock == "acpi_pm" || clock == "jiffies" }

func (m machine) turbo() bool {
	return m.read("sys/devices/system/cpu/intel_pstate/no_turbo") == "0" || m.read("sys/devices/system/cpu/cpufreq/boost") == "1"
}

// debugOptions are the options of the kernel's configuration that slow everything down.
func (m machine) debugOptions(release string) []string {
	config := m.kernelConfig(release)
	var on []string
	for _, option := range []string{"CONFIG_KASAN", "CONFIG_KCSAN", "CONFIG_KMSAN", "CONFIG_PROVE_LOCKING", "CONFIG_LOCK_STAT", "CONFIG_DEBUG_KMEMLEAK",
		"CONFIG_DEBUG_OBJECTS", "CONFIG_SLUB_DEBUG_ON", "CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT", "CONFIG_GCOV_KERNEL"} {
		if config[option] == "y" {
			on = append(on, option)
		}
	}
	return on
}

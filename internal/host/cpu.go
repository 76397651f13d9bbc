package host

import (
	"slices"
	"strings"
)

// cpu holds the fields of one CPU in /proc/cpuinfo. Their names depend on the architecture.
type cpu map[string]string

// cpuinfo reads /proc/cpuinfo: CPUs are parted by empty lines. It does without procfs, which reads the format of the
// architecture that it was built for and no other.
func (m machine) cpuinfo() []cpu {
	var cpus []cpu
	for block := range strings.SplitSeq(m.read("proc/cpuinfo"), "\n\n") {
		c := cpu{}
		for line := range strings.Lines(block) {
			if key, value, ok := strings.Cut(line, ":"); ok {
				c[strings.TrimSpace(key)] = strings.TrimSpace(value)
			}
		}
		if c["processor"] != "" {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// model returns the CPUs' model, or their models where they differ. On arm64 the kernel does not name any: there it is
// the numbers of the implementer and the part, as in the register MIDR_EL1.
func model(cpus []cpu) string {
	var models []string
	for _, c := range cpus {
		name := c["model name"]
		if name == "" && c["CPU implementer"] != "" {
			name = "implementer " + c["CPU implementer"] + ", part " + c["CPU part"] +
				", variant " + c["CPU variant"] + ", revision " + c["CPU revision"]
		}
		if name != "" && !slices.Contains(models, name) {
			models = append(models, name)
		}
	}
	return strings.Join(models, " + ")
}

// hypervisors are by the signature that CPUID leaf 0x40000000 gives (arch/x86/include/asm, *_CPUID_SIGNATURE and the like).
var hypervisors = map[string]string{
	"KVMKVMKVM":    "kvm",
	"Linux KVM Hv": "kvm",
	"TCGTCGTCGTCG": "qemu (tcg)",
	"Microsoft Hv": "hyper-v",
	"VMwareVMware": "vmware",
	"XenVMMXenVMM": "xen",
	"VBoxVBoxVBox": "virtualbox",
	"bhyve bhyve":  "bhyve",
	"ACRNACRNACRN": "acrn",
	"prl hyperv":   "parallels",
	"lrpepyh  vr":  "parallels",
}

// vendors are by the start of the maker's or the product's name in the firmware's tables (DMI).
var vendors = []struct{ start, name string }{
	{"KVM", "kvm"},
	{"QEMU", "qemu"},
	{"VMware", "vmware"},
	{"Xen", "xen"},
	{"VirtualBox", "virtualbox"},
	{"innotek", "virtualbox"},
	{"Parallels", "parallels"},
	{"BHYVE", "bhyve"},
	{"Google Compute Engine", "kvm"},
	{"Apple Virtualization", "apple"},
}

const unknownHypervisor = "yes (vendor unknown)"

// hypervisor returns what the machine runs on, or "" on bare metal, and where nothing tells.
func (m machine) hypervisor(cpus []cpu) string {
	if kind := m.read("sys/hypervisor/type"); kind != "" {
		return kind
	}
	// x86 only. Elsewhere there is no such flag, and DMI is asked in any case.
	flagged := false
	if len(cpus) > 0 {
		flags, x86 := cpus[0]["flags"]
		if flagged = slices.Contains(strings.Fields(flags), "hypervisor"); x86 && !flagged {
			return ""
		}
	}
	if flagged {
		if name, ok := hypervisors[m.vendor()]; ok {
			return name
		}
	}
	if name := m.virtualHardware(); name != "" {
		return name
	}
	if flagged {
		return unknownHypervisor
	}
	return ""
}

// virtualHardware tells a hypervisor from the hardware that it shows to the guest, or returns "".
func (m machine) virtualHardware() string {
	product, maker := m.read("sys/class/dmi/id/product_name"), m.read("sys/class/dmi/id/sys_vendor")
	for _, v := range vendors {
		if strings.HasPrefix(product, v.start) || strings.HasPrefix(maker, v.start) {
			return v.name
		}
	}
	if maker == "Microsoft Corporation" && product == "Virtual Machine" {
		return "hyper-v"
	}
	if maker == "Amazon EC2" && !strings.Contains(product, ".metal") {
		return "kvm"
	}
	if compatible := m.read("proc/device-tree/hypervisor/compatible"); compatible != "" {
		// A list with NULs between: "linux,kvm", or "xen,xen-4.17" and "xen,xen".
		first, _, _ := strings.Cut(compatible, "\x00")
		_, name, _ := strings.Cut(first, ",")
		name, _, _ = strings.Cut(name, "-")
		return name
	}
	clocks := strings.Fields(m.read("sys/devices/system/clocksource/clocksource0/available_clocksource"))
	switch {
	case slices.Contains(clocks, "kvm-clock"):
		return "kvm"
	case slices.Contains(clocks, "hyperv_clocksource_tsc_page"):
		return "hyper-v"
	case slices.Contains(clocks, "xen"):
		return "xen"
	}
	return ""
}

package host

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"bpfbench/report"

	"github.com/google/go-cmp/cmp"
)

// fake is a machine of testdata.
func fake(root string, u utsname, vendor string) machine {
	return machine{root: root, uname: func() utsname { return u }, vendor: func() string { return vendor }}
}

func TestFacts(t *testing.T) {
	for name, c := range map[string]struct {
		machine machine
		want    report.Host
	}{
		"guest": {
			fake("testdata/guest", utsname{"6.18.44", "#1 SMP PREEMPT_DYNAMIC", "x86_64"}, "KVMKVMKVM"),
			report.Host{
				Kernel: "6.18.44", Build: "#1 SMP PREEMPT_DYNAMIC", Arch: "x86_64", CPUModel: "Intel(R) Xeon(R) Processor",
				CPUs: 2, Memory: 24684096 << 10, Hypervisor: "kvm", ClockSource: "tsc", SMT: "notsupported", JIT: "always on",
				Mitigations: map[string]string{
					"meltdown":          "Not affected",
					"spec_store_bypass": "Vulnerable",
					"spectre_v2": "Mitigation: Retpolines; STIBP: disabled; RSB filling; PBRSB-eIBRS: Not affected; " +
						"BHI: Retpoline",
				},
			},
		},
		"arm64": {
			fake("testdata/arm64", utsname{"6.12.9-arm64", "#1 SMP", "aarch64"}, ""),
			report.Host{
				Kernel: "6.12.9-arm64", Build: "#1 SMP", Arch: "aarch64",
				CPUModel: "implementer 0x41, part 0xd0c, variant 0x3, revision 1",
				CPUs:     4, Memory: 8041004 << 10, Hypervisor: "kvm", ClockSource: "arch_sys_counter", SMT: "notimplemented",
				Mitigations: map[string]string{"meltdown": "Not affected", "spectre_v2": "Mitigation: CSV2, BHB"},
			},
		},
		"amd": {
			// The signature is of no account where the CPU does not say that there is a hypervisor.
			fake("testdata/amd", utsname{"6.12.9", "#1 SMP", "x86_64"}, "garbage"),
			report.Host{
				Kernel: "6.12.9", Build: "#1 SMP", Arch: "x86_64", CPUModel: "AMD EPYC 9354P 32-Core Processor", CPUs: 3,
				Memory: 131072000 << 10, ClockSource: "tsc", Governor: "performance,schedutil", SMT: "on", JIT: "off",
				Mitigations: map[string]string{"meltdown": "Not affected", "spec_rstack_overflow": "Mitigation: Safe RET"},
			},
		},
		"nothing": {
			fake(t.TempDir(), utsname{"6.1", "", "riscv64"}, ""),
			report.Host{Kernel: "6.1", Arch: "riscv64"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.machine.facts()); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFactsHere(t *testing.T) {
	h := Facts()
	if h.Kernel == "" || h.Arch == "" || h.CPUs < 1 || h.Memory < 1<<20 {
		t.Errorf("facts of this machine: %+v", h)
	}
	available, err := MemAvailable()
	if err != nil || available == 0 || available > h.Memory {
		t.Errorf("%d bytes available of %d, %v", available, h.Memory, err)
	}
	if runtime.GOARCH == "amd64" && h.CPUModel == "" {
		t.Error("no CPU model")
	}
}

// write makes files below a folder.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHypervisor(t *testing.T) {
	const (
		flagged = "processor\t: 0\nflags\t\t: fpu hypervisor avx\n"
		plain   = "processor\t: 0\nflags\t\t: fpu avx\n"
		arm     = "processor\t: 0\nCPU part\t: 0xd0c\n"
		dmi     = "sys/class/dmi/id/"
		clocks  = "sys/devices/system/clocksource/clocksource0/available_clocksource"
	)
	for _, c := range []struct {
		name, cpuinfo, vendor string
		files                 map[string]string
		want                  string
	}{
		{"bare metal", plain, "KVMKVMKVM", map[string]string{dmi + "sys_vendor": "QEMU"}, ""},
		{"signature", flagged, "TCGTCGTCGTCG", map[string]string{dmi + "product_name": "KVM"}, "qemu (tcg)"},
		{"unknown", flagged, "FooFooFoo", nil, unknownHypervisor},
		{"by firmware", flagged, "FooFooFoo", map[string]string{dmi + "sys_vendor": "VMware, Inc."}, "vmware"},
		{"by clock", flagged, "", map[string]string{clocks: "tsc kvm-clock \n"}, "kvm"},
		{"xen", flagged, "KVMKVMKVM", map[string]string{"sys/hypervisor/type": "xen\n"}, "xen"},
		{"arm64 hyper-v", arm, "", map[string]string{
			dmi + "sys_vendor": "Microsoft Corporation\n", dmi + "product_name": "Virtual Machine\n",
		}, "hyper-v"},
		{"arm64 instance", arm, "", map[string]string{
			dmi + "sys_vendor": "Amazon EC2\n", dmi + "product_name": "c7g.large\n",
		}, "kvm"},
		{"arm64 metal", arm, "", map[string]string{
			dmi + "sys_vendor": "Amazon EC2\n", dmi + "product_name": "c7g.metal\n",
		}, ""},
		{"device tree", arm, "", map[string]string{"proc/device-tree/hypervisor/compatible": "linux,kvm\x00"}, "kvm"},
		{"device tree of xen", arm, "", map[string]string{
			"proc/device-tree/hypervisor/compatible": "xen,xen-4.17\x00xen,xen\x00",
		}, "xen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, c.files)
			write(t, root, map[string]string{"proc/cpuinfo": c.cpuinfo})
			m := fake(root, utsname{}, c.vendor)
			if got := m.hypervisor(m.cpuinfo()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestJIT(t *testing.T) {
	const sysctl, config = "proc/sys/net/core/bpf_jit_enable", "boot/config-6.1"
	for _, c := range []struct{ sysctl, config, want string }{
		{"0\n", "", "off"},
		{"1\n", "", "on"},
		{"2\n", "CONFIG_BPF_JIT=y\n", "on"},
		{"1\n", "CONFIG_BPF_JIT=y\nCONFIG_BPF_JIT_ALWAYS_ON=y\n", "always on"},
		{"", "CONFIG_BPF_JIT=y\nCONFIG_BPF_JIT_ALWAYS_ON=y\n", "always on"}, // as another user than root
		{"", "CONFIG_BPF_JIT=y\n", ""},
		{"", "CONFIG_BPF=y\n# CONFIG_BPF_JIT is not set\n", "off"},
		{"", "", ""},
	} {
		root := t.TempDir()
		write(t, root, map[string]string{sysctl: c.sysctl, config: c.config})
		if got := fake(root, utsname{}, "").jit("6.1"); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

func TestModel(t *testing.T) {
	little := cpu{"CPU implementer": "0x41", "CPU part": "0xd05", "CPU variant": "0x1", "CPU revision": "0"}
	big := cpu{"CPU implementer": "0x41", "CPU part": "0xd0b", "CPU variant": "0x1", "CPU revision": "0"}
	want := "implementer 0x41, part 0xd05, variant 0x1, revision 0 + implementer 0x41, part 0xd0b, variant 0x1, revision 0"
	if got := model([]cpu{little, little, big}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

package vm

import (
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// DefaultMemory is what a guest has, in bytes, if nobody says otherwise. The host provides only what the guest touches.
const DefaultMemory = 2 << 30

// machine is what differs between architectures.
type machine struct {
	qemu, pkg string   // program, and its package in Debian
	args      []string // to QEMU
	tcgCPU    string   // the fullest CPU that QEMU emulates
	exactCPU  string   // the same without a source of randomness
	ports     []string // arguments that make the console, and the port for frames from the chardev "port"
	port      string   // the latter's device in the guest
	append    string   // to the kernel, for its console from the very start
	exact     string   // to the kernel, in exact mode
	tcg       string   // to the kernel, where it is emulated otherwise
}

// machines has an entry for each architecture; arm64's has not been run yet.
var machines = map[string]machine{
	"amd64": {
		qemu: "qemu-system-x86_64", pkg: "qemu-system-x86",
		args:   []string{"-machine", "pc"},
		tcgCPU: "max", exactCPU: "max,-rdrand,-rdseed",
		ports:  []string{"-serial", "stdio", "-serial", "chardev:port"},
		port:   "/dev/ttyS1",
		append: "console=ttyS0 earlyprintk=ttyS0",
		// The clock is given instead of measured, so that a nanosecond is an instruction and not almost one.
		exact: "tsc_early_khz=1000000",
		// On a busy host, the timer's first interrupts come too late for the kernel's test of it, which then panics.
		tcg: "no_timer_check",
	},
	"arm64": {
		qemu: "qemu-system-aarch64", pkg: "qemu-system-arm",
		args:   []string{"-machine", "virt,gic-version=max"},
		tcgCPU: "max,pauth-impdef=on", exactCPU: "max,pauth-impdef=on",
		ports:  []string{"-serial", "stdio", "-device", "pci-serial,chardev=port"},
		port:   "/dev/ttyS0",
		append: "console=ttyAMA0 earlycon",
	},
}

// kernelArgs are for every guest. Notices are shown until the command runs, as signs of life, and so that a death at
// boot leaves its traces; and the kernel's tests of its own ciphers are half a second of an emulated boot.
const kernelArgs = "loglevel=6 panic=-1 oops=panic cryptomgr.notests"

// exactArgs make boots alike, and short: ACPI's tables are interpreted, in code that an emulated CPU is slow at.
const exactArgs = "nokaslr acpi=off"

func findQEMU() (string, machine, error) {
	m, ok := machines[runtime.GOARCH]
	if !ok {
		return "", m, fmt.Errorf("boot guest: there is no guest for architecture %s yet", runtime.GOARCH)
	}
	file, err := exec.LookPath(m.qemu)
	if err != nil {
		return "", m, fmt.Errorf("boot guest: %s is not there: install QEMU (package %s on Debian)", m.qemu, m.pkg)
	}
	return file, m, nil
}

// The child's file descriptors, after standard input, output and error.
const (
	initramfsFD = 3
	portFD      = 4
)

// qemuArgs is QEMU's command line.
func qemuArgs(m machine, opt Options, kernel, accel string) []string {
	fd := func(n int) string { return "/proc/self/fd/" + strconv.Itoa(n) }
	args := append([]string{
		"-no-user-config", "-nodefaults", "-nic", "none", "-display", "none", "-no-reboot",
		"-smp", strconv.Itoa(max(1, opt.SMP)), "-m", fmt.Sprintf("%dM", mebibytes(opt.Memory)),
		"-chardev", "file,id=port,path=" + fd(portFD),
		"-kernel", kernel, "-initrd", fd(initramfsFD),
	}, m.args...)
	args = append(args, m.ports...)
	cmdline := []string{m.append, kernelArgs}
	switch {
	case opt.Exact:
		args = append(args, "-cpu", m.exactCPU, "-icount", "shift=0,sleep=off", "-rtc", "base=2020-01-01,clock=vm", "-seed", "1")
		cmdline = append(cmdline, exactArgs, m.exact)
	case accel == "tcg":
		args = append(args, "-cpu", m.tcgCPU)
		cmdline = append(cmdline, m.tcg)
	default:
		args = append(args, "-cpu", "host")
	}
	if accel == "tcg" { // with several threads, QEMU 7.2 crashes kernels that patch their code
		accel = "tcg,thread=single"
	}
	return append(args, "-accel", accel, "-append", strings.Join(append(cmdline, opt.Append), " "))
}

func mebibytes(bytes int64) int64 {
	if bytes == 0 {
		bytes = DefaultMemory
	}
	return (bytes + 1<<20 - 1) >> 20
}

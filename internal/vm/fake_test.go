package vm

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cavaliergopher/cpio"
)

// TestMain makes this binary also what it needs others to be: a guest's first process and its command, and QEMU.
func TestMain(m *testing.M) {
	Init()
	if task, records, ok := Guest(); ok {
		os.Exit(guestMain(task, records))
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), "qemu-system-") {
		os.Exit(fakeQEMU(os.Getenv("FAKE_QEMU")))
	}
	os.Exit(m.Run())
}

// fake sets up a QEMU that behaves as the mode says, a kernel, and a static binary. KVM is taken to be there.
func fake(t *testing.T, mode string) Options {
	t.Helper()
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(dir, machines[runtime.GOARCH].qemu)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv("FAKE_QEMU", mode)
	t.Setenv("FAKE_PID", filepath.Join(dir, "pid"))
	kvm.set(nil)
	kvm.works = false
	oldDevice, oldPatience := kvmDevice, kvmPatience
	kvmDevice, kvmPatience = write(t, "kvm", ""), 300*time.Millisecond
	t.Cleanup(func() { kvmDevice, kvmPatience, kvm.works, kvm.err = oldDevice, oldPatience, false, nil })
	return Options{
		Kernel: write(t, "vmlinuz", image(runtime.GOARCH, "6.12.1-test")), Accel: "tcg", Timeout: 20 * time.Second,
		Binary: write(t, "static", elfFile(false)),
	}
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// image is the beginning of a kernel image.
func image(arch, release string) string {
	b := make([]byte, 0x1000)
	copy(b, "MZ")
	switch arch {
	case "amd64":
		copy(b[0x1fe:], "\x55\xaa\xeb\x6aHdrS\x0f\x02")
		binary.LittleEndian.PutUint16(b[0x20e:], 0x600)
		b[0x236] = 0x7f
		copy(b[0x800:], release+" (someone@example.org) #1 SMP\x00")
	case "arm64":
		copy(b[56:], "ARM\x64")
		copy(b[0x800:], "Linux version "+release+" (someone@example.org)\x00")
	}
	return string(b)
}

// elfFile is the header of an ELF file, with or without the name of a dynamic loader.
func elfFile(dynamic bool) string {
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64, Phoff: 64, Phentsize: 56, Phnum: 1}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	p := elf.Prog64{Type: uint32(elf.PT_LOAD)}
	if dynamic {
		p.Type = uint32(elf.PT_INTERP)
	}
	var b bytes.Buffer
	for _, v := range []any{h, p} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.String()
}

// fakeQEMU is what runs as QEMU. Its standard output is the console, its file portFD the port.
func fakeQEMU(mode string) int {
	pid := os.Getenv("FAKE_PID")
	if err := os.WriteFile(pid+".new", fmt.Append(nil, os.Getpid()), 0o644); err != nil {
		panic(err)
	}
	if err := os.Rename(pid+".new", pid); err != nil {
		panic(err)
	}
	if status, ended := fakeStart(mode); ended {
		return status
	}
	port := os.NewFile(portFD, "port")
	send := func(k kind, payload string) { port.Write(appendFrame(nil, k, []byte(payload))) }
	if mode == "version" {
		send(helloFrame, `{"protocol":99}`)
		return 0
	}
	send(helloFrame, `{"protocol":1,"release":"6.12.1-test"}`)
	switch mode {
	case "garbage":
		port.WriteString("[    1.234567] kernel text")
	case "cut":
		frame := appendFrame(nil, recordFrame, []byte(`{"a":1}`))
		port.Write(frame[:len(frame)-3])
		return 0
	case "hang":
	case "crash":
		fmt.Print("[    5.0] BUG: kernel NULL pointer dereference, address: 0000000000000000\n")
		fmt.Print(strings.Repeat("[    5.0]  some_function+0x10/0x20\n", 100))
		fmt.Print("[    5.1] Kernel panic - not syncing: Fatal exception\n")
		return 0
	default:
		send(messageFrame, "working on ")
		send(recordFrame, "{\"a\":1}\n{\"b\"")
		send(messageFrame, fakeTask()+"\n\nno newline")
		send(recordFrame, ":2}\n")
		send(lastFrame, `{"status":3}`)
	}
	time.Sleep(time.Hour)
	return 0
}

// fakeStart is what happens before the guest says hello, which may be all.
func fakeStart(mode string) (status int, ended bool) {
	if slices.Contains(os.Args, "kvm") {
		switch mode {
		case "kvm-silent":
			time.Sleep(time.Hour)
		case "kvm-broken":
			fmt.Fprintln(os.Stderr, "KVM internal error. Suberror: 1")
			time.Sleep(time.Hour)
		case "kvm-refused":
			fmt.Fprintln(os.Stderr, "Could not access KVM kernel module: Permission denied")
			return 1, true
		case "kvm-slow":
			fmt.Println("[    0.000000] Linux version 6.12.1-test")
			time.Sleep(600 * time.Millisecond)
		}
	}
	switch mode {
	case "no memory":
		fmt.Fprintln(os.Stderr, "qemu-system: cannot set up guest memory")
		return 1, true
	case "panic":
		fmt.Print("\x1b[2J[    0.8] VFS: Cannot open root device\r\n\a[    0.9] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n[    0.9] ---[ end Kernel panic")
		return 0, true
	case "script": // that starts QEMU
		cmd := exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Env = append(os.Environ(), "FAKE_QEMU=hang")
		cmd.ExtraFiles = []*os.File{os.NewFile(initramfsFD, "initramfs"), os.NewFile(portFD, "port")}
		fmt.Fprintln(os.Stderr, cmd.Run())
		return 1, true
	}
	return 0, false
}

// fakeTask takes the task out of the initramfs.
func fakeTask() string {
	f, err := os.Open(os.Args[slices.Index(os.Args, "-initrd")+1])
	if err != nil {
		return err.Error()
	}
	for r := cpio.NewReader(f); ; {
		h, err := r.Next()
		if err != nil {
			return err.Error()
		}
		if "/"+h.Name == taskPath {
			var task Task
			data, err := io.ReadAll(r)
			if err == nil {
				err = json.Unmarshal(data, &task)
			}
			return fmt.Sprintf("%q exact=%v accel=%s round=%d %v", task.Args, task.Exact, task.Accel, task.Round, err)
		}
	}
}

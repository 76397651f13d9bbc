package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// log is what came from a guest.
type log struct {
	booted   []Booted
	records  []string
	messages []string
}

func (l *log) handler() Handler {
	return Handler{
		Booted:  func(b Booted) { l.booted = append(l.booted, b) },
		Record:  func(line []byte) error { l.records = append(l.records, string(line)); return nil },
		Message: func(line string) { l.messages = append(l.messages, line) },
	}
}

// fakePID is the process that was QEMU.
func fakePID(t *testing.T) int {
	t.Helper()
	for range 500 {
		if data, err := os.ReadFile(os.Getenv("FAKE_PID")); err == nil {
			pid, err := strconv.Atoi(string(data))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("QEMU did not start")
	return 0
}

// wantGone checks that QEMU has ended. Where its parent is gone, others have to wait for it, in their own time.
func wantGone(t *testing.T) {
	t.Helper()
	stat := fmt.Sprintf("/proc/%d/stat", fakePID(t))
	for range 500 {
		if content, err := os.ReadFile(stat); err != nil || strings.Contains(string(content), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("QEMU is still there")
}

func TestBoot(t *testing.T) {
	opt := fake(t, "run")
	opt.Exact = true
	var got log
	exit, err := Boot(t.Context(), opt, Task{Args: []string{"-a", "x y"}, Round: 2}, got.handler())
	if err != nil {
		t.Fatal(err)
	}
	if exit.Status != 3 || exit.Accel != "tcg" || exit.Release != "6.12.1-test" || exit.After <= 0 {
		t.Errorf("exit: %+v", exit)
	}
	if diff := cmp.Diff([]Booted{exit.Booted}, got.booted); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`{"a":1}`, `{"b":2}`}, got.records); diff != "" {
		t.Error(diff)
	}
	want := []string{`working on ["-a" "x y"] exact=true accel=tcg round=2 <nil>`, "", "no newline"}
	if diff := cmp.Diff(want, got.messages); diff != "" {
		t.Error(diff)
	}
	wantGone(t)
}

func TestBootWithoutHandler(t *testing.T) {
	if _, err := Boot(t.Context(), fake(t, "run"), Task{}, Handler{}); err != nil {
		t.Error(err)
	}
}

func TestBootHandlerFails(t *testing.T) {
	full := errors.New("disk full")
	_, err := Boot(t.Context(), fake(t, "run"), Task{}, Handler{Record: func([]byte) error { return full }})
	if !errors.Is(err, full) {
		t.Error(err)
	}
	wantGone(t)
}

func TestBootDies(t *testing.T) {
	for mode, want := range map[string]string{
		"cut":     "guest stopped in the middle of a frame",
		"garbage": `guest sent what is no frame, at byte 49: "[    1.234567] kernel text"`,
		"version": "guest speaks version 99 of the protocol, not 1: is its binary of another version?",
		"crash":   "guest stopped before its task was done: BUG: kernel NULL pointer dereference, address: 0000000000000000; the end of its console:\n",
		"hang":    "guest did not come to its end within 500ms",
		"panic": "guest stopped before its task was done: Kernel panic - not syncing: VFS: Unable to mount root fs; the end of its console:\n" +
			"    [    0.8] VFS: Cannot open root device\n" +
			"    [    0.9] Kernel panic - not syncing: VFS: Unable to mount root fs\n" +
			"    [    0.9] ---[ end Kernel panic",
	} {
		t.Run(mode, func(t *testing.T) {
			opt := fake(t, mode)
			if mode == "hang" {
				opt.Timeout = 500 * time.Millisecond
			}
			_, err := Boot(t.Context(), opt, Task{}, Handler{})
			var died *DiedError
			if !errors.As(err, &died) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if mode == "crash" && len(died.Console) != consoleLines {
				t.Errorf("%d lines of console, not %d", len(died.Console), consoleLines)
			}
			wantGone(t)
		})
	}
}

func TestBootRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		mode   string
		change func(*Options)
		want   string
	}{
		"QEMU fails":     {"no memory", func(*Options) {}, "run QEMU: qemu-system: cannot set up guest memory"},
		"QEMU not there": {"run", func(*Options) { os.Setenv("PATH", "") }, "install QEMU (package " + machines[runtime.GOARCH].pkg},
		"dynamic binary": {"run", func(o *Options) { o.Binary = write(t, "dynamic", elfFile(true)) }, "it is linked dynamically: build it with CGO_ENABLED=0"},
		"no binary":      {"run", func(o *Options) { o.Binary = write(t, "script", "#!/bin/sh\nexit 0 # long enough") }, "script to run it in a guest: bad magic number"},
		"no kernel":      {"run", func(o *Options) { o.Kernel = write(t, "k", "text") }, "it is no kernel image"},
		"exact SMP":      {"run", func(o *Options) { o.Exact, o.SMP = true, 2 }, "exact mode counts the instructions of one CPU, but 2 CPUs were asked for"},
		"exact KVM":      {"run", func(o *Options) { o.Exact, o.Accel = true, "kvm" }, "exact mode emulates the CPU"},
		"accelerator":    {"run", func(o *Options) { o.Accel = "xen" }, `accelerator "xen" is none of auto, kvm and tcg`},
		"KVM not there":  {"run", func(o *Options) { o.Accel, kvmDevice = "kvm", "/dev/null/kvm" }, "boot guest: open /dev/null/kvm: not a directory"},
		"KVM asked for":  {"kvm-broken", func(o *Options) { o.Accel = "kvm" }, "guest was lost as KVM failed; QEMU said:\n    KVM internal error"},
		"no such file":   {"run", func(o *Options) { o.Files = []File{{Host: "/dev/null/x", Guest: "/x"}} }, "put file into the guest: open /dev/null/x"},
	} {
		t.Run(name, func(t *testing.T) {
			opt := fake(t, c.mode)
			c.change(&opt)
			_, err := Boot(t.Context(), opt, Task{}, Handler{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestBootCancelled(t *testing.T) {
	for _, mode := range []string{"hang", "script"} {
		t.Run(mode, func(t *testing.T) {
			opt := fake(t, mode)
			ctx, cancel := context.WithCancel(t.Context())
			_, err := Boot(ctx, opt, Task{}, Handler{Booted: func(Booted) { cancel() }})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			wantGone(t)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Boot(ctx, fake(t, "hang"), Task{}, Handler{}); !errors.Is(err, context.Canceled) {
		t.Error("cancelled before: ", err)
	}
}

func TestBootAuto(t *testing.T) {
	for mode, want := range map[string]string{
		"kvm-silent":  "the kernel gave no sign of life under KVM within 300ms",
		"kvm-broken":  "KVM cannot run the guest: KVM internal error. Suberror: 1",
		"kvm-refused": "KVM cannot run the guest: Could not access KVM kernel module: Permission denied",
		"kvm-slow":    "", // but it shows that its kernel runs
	} {
		t.Run(mode, func(t *testing.T) {
			opt := fake(t, mode)
			opt.Accel = "auto"
			var got log
			if _, err := Boot(t.Context(), opt, Task{}, got.handler()); err != nil {
				t.Fatal(err)
			}
			accel := "kvm"
			if want != "" {
				accel = "tcg"
			}
			if b := got.booted[0]; b.Accel != accel || (want != "") != (b.NoKVM != nil) || want != "" && b.NoKVM.Error() != want {
				t.Errorf("%+v", b)
			}
			if !strings.Contains(got.messages[0], "accel="+accel) {
				t.Error(got.messages)
			}
			t.Setenv("FAKE_QEMU", "kvm-silent") // what the next boot would find out if it tried
			if want == "" {
				kvmPatience = 0
				t.Setenv("FAKE_QEMU", "kvm-slow")
			}
			exit, err := Boot(t.Context(), opt, Task{}, Handler{})
			if err != nil || exit.Accel != accel || exit.After > 10*time.Second {
				t.Errorf("second boot: %+v %v", exit, err)
			}
		})
	}
}

// TestKilled kills the process that boots, and sees QEMU go.
func TestKilled(t *testing.T) {
	fake(t, "hang")
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledHelper$")
	cmd.Env = append(os.Environ(), "KILLED_HELPER=1", "TMPDIR="+t.TempDir()) // which it cannot clean up itself
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fakePID(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	wantGone(t)
}

func TestKilledHelper(t *testing.T) {
	if os.Getenv("KILLED_HELPER") == "" {
		t.Skip("it is no test of its own")
	}
	pid := os.Getenv("FAKE_PID")
	opt := fake(t, "hang")
	os.Setenv("FAKE_PID", pid)
	_, _ = Boot(t.Context(), opt, Task{}, Handler{})
}

func TestQEMUArgs(t *testing.T) {
	m := machines["amd64"]
	exact := strings.Join(qemuArgs(m, Options{Exact: true, Append: "quiet"}, "K", "tcg"), " ")
	for _, want := range []string{
		"-accel tcg,thread=single", "-icount shift=0,sleep=off", "-cpu max,-rdrand,-rdseed ", "-smp 1 ", "-m 2048M ",
		"-rtc base=2020-01-01,clock=vm", "-seed 1 ", "-nic none", "-no-reboot", "-kernel K ", "nokaslr acpi=off", " quiet",
	} {
		if !strings.Contains(exact, want) {
			t.Errorf("no %q in %s", want, exact)
		}
	}
	args := qemuArgs(m, Options{SMP: 4, Memory: 1<<30 + 1}, "K", "kvm")
	for _, want := range [][2]string{{"-accel", "kvm"}, {"-cpu", "host"}, {"-smp", "4"}, {"-m", "1025M"}} {
		if i := slices.Index(args, want[0]); i < 0 || args[i+1] != want[1] {
			t.Errorf("%v not in %v", want, args)
		}
	}
	if s := strings.Join(args, " "); strings.Contains(s, "icount") || strings.Contains(s, "acpi=off") {
		t.Error(s)
	}
}

func TestCachedKernels(t *testing.T) {
	dir := t.TempDir()
	for name, release := range map[string]string{
		"a/vmlinuz-6.9.1": "6.9.1", "b/vmlinuz-6.12.1": "6.12.1", "c/vmlinuz-6.12.1-rc2": "6.12.1-rc2", "c/config-7.0": "7.0",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(image(runtime.GOARCH, release)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a/vmlinuz-8.0"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BENCH_KERNELS", dir)
	kernels, err := CachedKernels()
	var got []string
	for _, k := range kernels {
		got = append(got, k.Release)
	}
	if diff := cmp.Diff([]string{"6.9.1", "6.12.1-rc2", "6.12.1"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if k, err := CachedKernel(t.TempDir(), dir); err != nil || k.File != filepath.Join(dir, "b/vmlinuz-6.12.1") {
		t.Error(k, err)
	}
	if _, err := CachedKernel(t.TempDir()); err == nil || !strings.Contains(err.Error(), "make kernels") {
		t.Error(err)
	}
}

package vm

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// guestMain is what this binary does as the command of a guest.
func guestMain(task Task, records io.Writer) int {
	switch task.Args[0] {
	case "records":
		for i := range recordCount {
			if _, err := io.WriteString(records, recordLine(i)+"\n"); err != nil {
				fmt.Println(err)
				return 1
			}
		}
	case "system":
		return showSystem()
	case "sleep":
		fmt.Println("sleeping")
		time.Sleep(time.Hour)
	case "clock":
		return showClock(records)
	case "panic":
		fmt.Println("about to crash")
		time.Sleep(time.Second) // for the message to leave
		fmt.Println(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0))
	case "signal":
		fmt.Print("no newline, ")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	}
	return 3
}

// recordCount lines are 2 MB.
const recordCount = 4000

func recordLine(i int) string {
	h := fnv.New64a()
	fmt.Fprint(h, i)
	return fmt.Sprintf(`{"n":%d,"x":"%s"}`, i, strings.Repeat(strconv.FormatUint(h.Sum64(), 36), i%80))
}

// showSystem shows what the command finds, and leaves processes behind.
func showSystem() int {
	mounts, err := os.ReadFile("/proc/mounts")
	fmt.Println(string(mounts), err)
	fmt.Println(os.Args[0], os.Getpid() > 1, slices.Sorted(slices.Values(os.Environ())))
	flags, err := os.ReadFile("/sys/class/net/lo/flags")
	fmt.Printf("lo %s%v\n", flags, err)
	var files, locked unix.Rlimit
	fmt.Println("limits", unix.Getrlimit(unix.RLIMIT_NOFILE, &files), unix.Getrlimit(unix.RLIMIT_MEMLOCK, &locked), files.Max, locked.Cur == unix.RLIM_INFINITY)
	content, err := os.ReadFile("/data/file")
	fmt.Println(string(content), err)
	_, _, again := Guest()
	for range 2 { // that the guest has to end itself
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestSleeper$")
		cmd.Env = append(os.Environ(), "SLEEPER=1")
		cmd.Stdout = os.Stdout
		fmt.Println("orphan", cmd.Start(), again)
	}
	return 3
}

func TestSleeper(t *testing.T) {
	if os.Getenv("SLEEPER") == "" {
		t.Skip("it is no test of its own")
	}
	time.Sleep(time.Hour)
}

// showClock does what would show any difference between two boots.
func showClock(records io.Writer) int {
	random := make([]byte, 16)
	_, err := crand.Read(random)
	fmt.Printf("random %x %v\n", random, err)
	var wg sync.WaitGroup
	var kept [][]byte
	for i := range 30 {
		start := time.Now()
		for j := range 1000 {
			kept = append(kept, make([]byte, j))
		}
		runtime.GC()
		wg.Go(func() { time.Sleep(time.Millisecond) })
		wg.Wait()
		fmt.Fprintf(records, "{\"i\":%d,\"at\":%d,\"took\":%d,\"p\":\"%p\"}\n", i, start.UnixNano(), time.Since(start), kept[i*100+1])
		fmt.Println("message", i, time.Now().UnixNano())
	}
	return 0
}

// real finds what booting this binary for real needs, or skips the test.
func real(t *testing.T) []*Kernel {
	t.Helper()
	if testing.Short() {
		t.Skip("boots guests, which takes long")
	}
	if _, _, err := findQEMU(); err != nil {
		t.Skip(err)
	}
	if err := checkStatic("/proc/self/exe"); err != nil {
		t.Skip(err)
	}
	kernels, err := CachedKernels("../../.cache/kernels")
	if os.Getenv("BENCH_KERNELS") != "" {
		kernels, err = CachedKernels()
	}
	if err != nil {
		t.Skip(err)
	}
	return kernels
}

func newest(kernels []*Kernel) *Kernel { return kernels[len(kernels)-1] }

func boot(t *testing.T, k *Kernel, opt Options, args ...string) (Exit, log, error) {
	t.Helper()
	opt.Kernel = k.File
	if opt.Timeout == 0 {
		opt.Timeout = 3 * time.Minute
	}
	var got log
	start := time.Now()
	exit, err := Boot(t.Context(), opt, Task{Args: args}, got.handler())
	t.Logf("%s %v: booted after %.1f s, ended after %.1f s", k.Release, args, exit.After.Seconds(), time.Since(start).Seconds())
	return exit, got, err
}

func TestRealSystem(t *testing.T) {
	for _, k := range real(t) {
		t.Run(k.Release, func(t *testing.T) {
			data := write(t, "file", "the content")
			exit, got, err := boot(t, k, Options{Accel: "tcg", Files: []File{{data, "/data/file", 0}}}, "system")
			if err != nil || exit.Status != 3 || exit.Release != k.Release {
				t.Fatal(exit, err)
			}
			all := strings.Join(got.messages, "\n")
			for _, m := range mounts {
				if want := m.fstype + " " + m.dir + " " + m.fstype + " rw"; !strings.Contains(all, want) {
					t.Errorf("no %q", want)
				}
			}
			for _, want := range []string{
				"bench true [HOME=/ PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb]", "lo 0x9\n<nil>",
				"limits <nil> <nil> 1048576 true", "the content <nil>", "orphan <nil> true",
			} {
				if !strings.Contains(all, want) {
					t.Errorf("no %q", want)
				}
			}
			if t.Failed() || strings.Contains(all, "bench: guest:") {
				t.Error(all)
			}
		})
	}
}

func TestRealRecords(t *testing.T) {
	_, got, err := boot(t, newest(real(t)), Options{Accel: "tcg"}, "records")
	if err != nil || len(got.records) != recordCount {
		t.Fatal(len(got.records), err, got.messages)
	}
	size := 0
	for i, line := range got.records {
		if line != recordLine(i) {
			t.Fatalf("line %d is %q", i, line)
		}
		size += len(line)
	}
	t.Logf("%d bytes", size)
}

func TestRealExact(t *testing.T) {
	for _, k := range real(t) {
		t.Run(k.Release, func(t *testing.T) {
			var logs [2]string
			for i := range logs {
				_, got, err := boot(t, k, Options{Exact: true}, "clock")
				if err != nil {
					t.Fatal(err)
				}
				logs[i] = fmt.Sprintf("%q", [][]string{got.records, got.messages})
			}
			if logs[0] != logs[1] || strings.Count(logs[0], "took") != 30 {
				t.Errorf("two boots differ:\n%s\n%s", logs[0], logs[1])
			}
		})
	}
}

func TestRealPanic(t *testing.T) {
	_, got, err := boot(t, newest(real(t)), Options{Accel: "tcg", SMP: 2}, "panic")
	var died *DiedError
	if !errors.As(err, &died) || died.Trouble != "Kernel panic - not syncing: sysrq triggered crash" || got.messages[0] != "about to crash" {
		t.Error(err, got.messages)
	}
}

func TestRealSignal(t *testing.T) {
	exit, got, err := boot(t, newest(real(t)), Options{Accel: "tcg"}, "signal")
	if want := "no newline, bench: guest: the command was ended by a signal: killed"; err != nil || exit.Status != 137 || got.messages[0] != want {
		t.Error(exit, err, got.messages)
	}
}

// TestRealAuto holds wherever KVM works and where it does not; it ends the guest by its context and by its time.
func TestRealAuto(t *testing.T) {
	k := newest(real(t))
	kvm.set(nil)
	kvm.works = false
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := time.Now()
	exit, err := Boot(ctx, Options{Kernel: k.File}, Task{Args: []string{"sleep"}}, Handler{Message: func(line string) {
		if line == "sleeping" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || exit.Accel == "" {
		t.Fatal(err)
	}
	t.Logf("%s, without KVM because: %v; booted %v after QEMU's start, ended after %v", exit.Accel, exit.NoKVM, exit.After, time.Since(start))
	if lost := time.Since(start) - exit.After; exit.NoKVM != nil && lost > 5*time.Second { // with the guest's own start
		t.Errorf("giving KVM up took %v", lost)
	}
	if _, err := os.Stat("/proc/self/task"); err == nil {
		children, _ := os.ReadFile("/proc/thread-self/children")
		if len(bytes.TrimSpace(children)) > 0 {
			t.Errorf("left behind: %s", children)
		}
	}
}

func TestRealTimeout(t *testing.T) {
	_, _, err := boot(t, newest(real(t)), Options{Accel: "tcg", Timeout: time.Second}, "sleep")
	if err == nil || !strings.HasPrefix(err.Error(), "guest did not come to its end within 1s") {
		t.Error(err)
	}
}

func TestRealNoInit(t *testing.T) {
	_, _, err := boot(t, newest(real(t)), Options{Accel: "tcg", Append: "rdinit=/none"}, "sleep")
	if err == nil || !strings.Contains(err.Error(), "Kernel panic - not syncing: ") {
		t.Error(err)
	}
}

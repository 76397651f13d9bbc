package lock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The test binary, run with this variable set to a path, takes the lock there, says so and keeps it.
const holdVar = "BPFBENCH_TEST_HOLD"

func TestMain(m *testing.M) {
	path := os.Getenv(holdVar)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := Acquire(context.Background(), Options{Path: path, What: "sleep"}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	time.Sleep(time.Minute)
}

// hold starts a process that holds the lock. user is the uid that it runs under, or negative for that of the test.
func hold(t *testing.T, path string, user int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), holdVar+"="+path)
	if user >= 0 {
		id := uint32(user)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
		cmd.Dir = "/"
		// The binary lies in a folder that only its owner may enter. A descriptor passes it on.
		file, err := os.Open(exe)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		cmd.ExtraFiles = []*os.File{file}
		cmd.Path = "/proc/self/fd/3"
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kill(cmd) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "held\n" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	return cmd
}

func kill(cmd *exec.Cmd) error {
	_ = cmd.Process.Kill()
	return cmd.Wait()
}

func TestTwoProcesses(t *testing.T) {
	path := tempPath(t)
	cmd := hold(t, path, -1)
	_, err := Acquire(t.Context(), Options{Path: path})
	var held *HeldError
	if !errors.As(err, &held) || held.Holder.PID != cmd.Process.Pid || held.Holder.What != "sleep" {
		t.Fatalf("held by %d: %v", cmd.Process.Pid, err)
	}

	// A dead holder's words stay in the file, but the lock is free.
	_ = kill(cmd) // SIGKILL
	if pid := readHolder(path).PID; pid != cmd.Process.Pid {
		t.Errorf("the file names %d, want the dead %d", pid, cmd.Process.Pid)
	}
	acquire(t, path)
	if pid := readHolder(path).PID; pid != os.Getpid() {
		t.Errorf("the file names %d, want %d", pid, os.Getpid())
	}
}

func TestWaitForProcess(t *testing.T) {
	path := tempPath(t)
	cmd := hold(t, path, -1)
	done := make(chan error)
	go func() {
		time.Sleep(2 * poll)
		done <- cmd.Process.Kill()
	}()
	l, err := Acquire(t.Context(), Options{Path: path, Wait: true})
	if err != nil {
		t.Error(err)
	}
	if err := errors.Join(<-done, l.Release()); err != nil {
		t.Error(err)
	}
}

// TestUsers: root and another user share the lock, whoever came first, in a sticky folder.
func TestUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run a process as another user")
	}
	const nobody = 65534
	for _, first := range []int{0, nobody} {
		t.Run(strconv.Itoa(first), func(t *testing.T) {
			dir, err := os.MkdirTemp("", "lock")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, fileName)
			_ = kill(hold(t, path, first))
			second := nobody - first
			cmd := hold(t, path, second)
			_, err = Acquire(t.Context(), Options{Path: path})
			var held *HeldError
			if !errors.As(err, &held) || held.Holder.PID != cmd.Process.Pid {
				t.Errorf("held by user %d: %v", second, err)
			}
		})
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bpfbench/internal/testutils"
	"bpfbench/internal/tracefs"
)

// A session that is killed leaves its event and its trace instance; the next one removes them.
func TestKilled(t *testing.T) {
	testutils.NeedsBPF(t)
	if err := tracefs.Mount(); err != nil {
		t.Skip(err)
	}
	left := 0
	for i := range 8 {
		cmd := command("--wait", "-d60", "-w0", "fetcharg-uprobe", "--args=3")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20*i+rand.IntN(60)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		left += len(leftovers(t, cmd.Process.Pid))
		if _, stderr, status := bench(t, quick()...); status != exitDone {
			t.Fatalf("the next: exit status %d, %q", status, stderr)
		}
		if now := leftovers(t, cmd.Process.Pid); len(now) > 0 {
			t.Errorf("the next left %q of what a killed one left", now)
		}
	}
	if left == 0 {
		t.Skip("none of them was killed while it had anything: no uprobe events here?")
	}
}

// leftovers are the events and instances in tracefs of a bench that was a process.
func leftovers(t *testing.T, pid int) []string {
	t.Helper()
	name := fmt.Sprint(tracefs.Prefix, pid)
	events, err := tracefs.Events()
	if err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob("/sys/kernel/tracing/instances/" + name)
	for _, e := range events {
		if strings.Contains(e, ":"+name+"/") {
			left = append(left, e)
		}
	}
	return left
}

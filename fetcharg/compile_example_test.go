package fetcharg_test

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestKernelCompileExample runs the example where it can be.
func TestKernelCompileExample(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/tracing/kprobe_events"); err != nil {
		t.Skip(err)
	}
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() { // what opens files
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				_, _ = os.Stat("/proc/self/status")
				_, _ = os.ReadFile("/proc/self/status")
			}
		}
	}()
	var out strings.Builder
	err := watchOpens(&out, 20)
	close(done)
	<-stopped
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `do_sys_openat2 dir=-100 name="/proc/self/status" flags=0x88000 task="`) {
		t.Error(out.String())
	}
}

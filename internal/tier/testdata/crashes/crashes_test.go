package crashes

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestCrashes crashes the kernel: in a guest of the tier's tests, and nowhere else.
func TestCrashes(t *testing.T) {
	first, _ := os.Readlink("/proc/1/exe")
	if os.Getenv("TIER_TEST_CRASH") == "" || first != "/init" {
		t.Skip("it crashes the kernel")
	}
	fmt.Println("about to crash")
	time.Sleep(time.Second) // for the line to leave
	t.Log(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0))
}

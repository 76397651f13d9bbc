// Package stuck has a test binary that does not heed its time, and leaves a process behind that has its output.
package stuck

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestMain(*testing.M) {
	if len(os.Args) > 1 {
		fmt.Println("child", exec.Command("/proc/self/exe").Start())
	}
	time.Sleep(time.Hour)
}

func TestNever(*testing.T) {}

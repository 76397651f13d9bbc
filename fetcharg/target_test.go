package fetcharg

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// probed is the function that uprobes of the tests are on. Its arguments are in the registers of Go's calling convention.
//
//go:noinline
func probed(a int, b **uint32, c *byte) int {
	return a + int(**b) + int(*c)
}

// targetPlace returns the running binary's path and the offset of the function probed in it.
func targetPlace(t *testing.T) (path string, offset uint64) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	address := uint64(reflect.ValueOf(probed).Pointer())
	for line := range strings.Lines(string(maps)) {
		var start, end, from uint64
		var perms string
		if _, err := fmt.Sscanf(line, "%x-%x %s %x", &start, &end, &perms, &from); err == nil && start <= address && address < end {
			return path, address - start + from
		}
	}
	t.Fatalf("no file is mapped at %#x", address)
	return "", 0
}

package tracefs

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMount(t *testing.T) {
	before, err := isTracefs(path)
	if err != nil {
		t.Skip("this kernel has no tracefs:", err)
	}
	undo, err := Mount()
	if errors.Is(err, unix.EPERM) {
		t.Skip("mounting needs root:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if is, err := isTracefs(path); !is || err != nil {
		t.Errorf("tracefs is mounted: %v, %v", is, err)
	}
	if err := undo(); err != nil {
		t.Error(err)
	}
	if after, err := isTracefs(path); after != before || err != nil {
		t.Errorf("tracefs was mounted: %v, is mounted: %v, %v", before, after, err)
	}
	if is, err := isTracefs("/proc"); is || err != nil {
		t.Errorf("/proc is tracefs: %v, %v", is, err)
	}
}

package tracefs

import (
	"slices"
	"testing"
)

func TestFunctions(t *testing.T) {
	got := functions("vfs_read\nbtrfs_read [btrfs]\n__ftrace_invalid_address___16\nstatic_twice\nstatic_twice\nabort_creds\n")
	if want := []string{"abort_creds", "static_twice", "vfs_read"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

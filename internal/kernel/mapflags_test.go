package kernel

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseMapFlags(t *testing.T) {
	for _, c := range []struct {
		in    string
		want  uint32
		names string
	}{
		{"0", 0, "none"},
		{"none", 0, "none"},
		{"0x40", 64, "zero_seed"},
		{"0X40", 64, "zero_seed"},
		{"64", 64, "zero_seed"},
		{"no_prealloc", unix.BPF_F_NO_PREALLOC, "no_prealloc"},
		{"no_prealloc,zero_seed", 65, "no_prealloc,zero_seed"},
		{"BPF_F_ZERO_SEED | bpf_f_no_prealloc", 65, "no_prealloc,zero_seed"},
		{"No-Prealloc|0x40", 65, "no_prealloc,zero_seed"},
		{"mmapable", unix.BPF_F_MMAPABLE, "mmapable"},
		{"inner_map", unix.BPF_F_INNER_MAP, "inner_map"},
		{"path_fd", unix.BPF_F_PATH_FD, "path_fd"},
		{"rb_overwrite", 1 << 19, "rb_overwrite"},
		{"0xffffffff", 1<<32 - 1, strings.Join(mapFlagNames, ",") + ",0xfff00000"},
	} {
		got, err := ParseMapFlags(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseMapFlags(%q) = %#x, %v; want %#x", c.in, got, err, c.want)
		}
		if names := MapFlagNames(got); names != c.names {
			t.Errorf("MapFlagNames(%#x) = %q, want %q", got, names, c.names)
		}
	}
}

func TestParseMapFlagsErrors(t *testing.T) {
	for _, c := range []struct{ in, say string }{
		{"", "empty item"},
		{"zero_seed,", "empty item"},
		{"no_preallocate", `"no_preallocate" is no flag: there are no_prealloc, no_common_lru`},
		{"no_preallok", `did you mean no_prealloc?`},
		{"zeroseed", "did you mean zero_seed?"},
		{"rdonly_", "did you mean rdonly or rdonly_prog?"},
		{"wronl", "map flags: \"wronl\" is no flag: did you mean wronly or wronly_prog?"},
		{"numa", "did you mean numa_node?"},
		{"0x1ffffffff", "32 bits"},
		{"4294967296", "32 bits"},
		{"0x", "want a number"},
		{"64K", "want a number"},
		{"1_0", "want a number"},
		{"010", "leading zeros"},
		{"-1", "is no flag"},
		{strings.Repeat("z", 10000), "is no flag"},
	} {
		got, err := ParseMapFlags(c.in)
		if err == nil || !strings.Contains(err.Error(), c.say) || got != 0 || len(err.Error()) > 500 {
			t.Errorf("ParseMapFlags(%.50q) = %#x, %v; want %q", c.in, got, err, c.say)
		}
	}
	_, err := ParseMapFlags("foo,zero_seed,bar")
	if msg := err.Error(); !strings.Contains(msg, `"foo"`) || !strings.Contains(msg, `"bar"`) || strings.Contains(msg, "\n") {
		t.Errorf("not all that is wrong in one line: %s", msg)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"link", "link", 0}, {"flaw", "lawn", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func FuzzParseMapFlags(f *testing.F) {
	for _, s := range []string{"0", "0x40", "no_prealloc,zero_seed", "BPF_F_LINK|4", "none", "", "foo", "0xffffffff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		flags, err := ParseMapFlags(s)
		if err != nil {
			if flags != 0 {
				t.Errorf("ParseMapFlags(%q) gives flags and an error", s)
			}
			return
		}
		if again, err := ParseMapFlags(MapFlagNames(flags)); err != nil || again != flags {
			t.Errorf("ParseMapFlags(%q) = %#x, and %#x again, %v", s, flags, again, err)
		}
	})
}

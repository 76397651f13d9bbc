package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mountsV1 = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
		"34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
	mountsV2  = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
	unlimited = "9223372036854771712\n"
)

const v1, v2 = "sys/fs/cgroup/memory/", "sys/fs/cgroup/"

var memoryLimits = []struct {
	name           string
	cgroup, mounts string
	files          map[string]string
	want           uint64 // KiB; the machine has 1000
}{
	{"no cgroups", "", "", nil, 1000},
	{"v2 without a limit", "0::/a\n", mountsV2, map[string]string{
		v2 + "a/memory.max": "max\n", v2 + "a/memory.current": "512000\n",
	}, 1000},
	{"v2", "0::/a\n", mountsV2, map[string]string{
		v2 + "a/memory.max": "614400\n", v2 + "a/memory.current": "204800\n",
	}, 400},
	{"v2, with old file pages", "0::/a\n", mountsV2, map[string]string{
		v2 + "a/memory.max": "614400\n", v2 + "a/memory.current": "204800\n",
		v2 + "a/memory.stat": "anon 102400\ninactive_file 102400\nactive_file 0\n",
	}, 500},
	{"v2, limit above", "0::/a/b/c\n", mountsV2, map[string]string{
		v2 + "a/b/c/memory.max": "max\n", v2 + "a/b/c/memory.current": "0\n",
		v2 + "a/memory.max": "102400\n", v2 + "a/memory.current": "0\n",
	}, 100},
	{"v2, limit above the machine's", "0::/a\n", mountsV2, map[string]string{
		v2 + "a/memory.max": "9999999999\n", v2 + "a/memory.current": "0\n",
	}, 1000},
	{"v2, over the limit", "0::/\n", mountsV2, map[string]string{
		v2 + "memory.max": "102400\n", v2 + "memory.current": "204800\n",
	}, 0},
	{"v1 without a limit", "4:memory:/a\n3:cpuset:/\n0::/\n", mountsV1, map[string]string{
		v1 + "a/memory.limit_in_bytes": unlimited, v1 + "a/memory.usage_in_bytes": "512000\n",
		v1 + "memory.limit_in_bytes": unlimited, v1 + "memory.usage_in_bytes": "512000\n",
	}, 1000},
	{"v1", "4:memory:/a\n3:cpuset:/\n0::/\n", mountsV1, map[string]string{
		v1 + "a/memory.limit_in_bytes": "614400\n", v1 + "a/memory.usage_in_bytes": "204800\n",
		v1 + "a/memory.stat": "inactive_file 0\ntotal_inactive_file 102400\n",
	}, 500},
	{"container that sees its own part", "4:memory:/docker/x\n", strings.ReplaceAll(mountsV1, "0:32 /", "0:32 /docker/x"),
		map[string]string{v1 + "memory.limit_in_bytes": "614400\n", v1 + "memory.usage_in_bytes": "0\n"}, 600},
	{"outside of what is mounted", "0::/../x\n", mountsV2,
		map[string]string{v2 + "memory.max": "614400\n", v2 + "memory.current": "0\n"}, 600},
	{"garbage", "what\n", "ever\n", nil, 1000},
}

func TestMemAvailable(t *testing.T) {
	for _, c := range memoryLimits {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, c.files)
			write(t, root, map[string]string{
				"proc/meminfo":     "MemTotal:       2000 kB\nMemAvailable:   1000 kB\n",
				"proc/7/cgroup":    c.cgroup,
				"proc/7/mountinfo": c.mounts,
			})
			if err := os.Symlink("7", filepath.Join(root, "proc", "self")); err != nil {
				t.Fatal(err)
			}
			got, err := fake(root, utsname{}, "").memAvailable()
			if err != nil || got != c.want<<10 {
				t.Errorf("got %d, %v; want %d", got, err, c.want<<10)
			}
		})
	}
}

func TestMemAvailableErrors(t *testing.T) {
	root := t.TempDir()
	if _, err := fake(root, utsname{}, "").memAvailable(); err == nil {
		t.Error("no /proc/meminfo, and no error")
	}
	write(t, root, map[string]string{"proc/meminfo": "MemTotal: 2000 kB\n"})
	if _, err := fake(root, utsname{}, "").memAvailable(); err == nil {
		t.Error("no MemAvailable, and no error")
	}
}

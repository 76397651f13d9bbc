package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// MemAvailable returns how many bytes can be allocated without swapping or being killed: the kernel's estimate for the
// machine (MemAvailable of /proc/meminfo), or what the memory cgroups of this process leave of their limits, if that is
// less. File pages that a cgroup has not used for long count as free, as they do in the kernel's estimate.
func MemAvailable() (uint64, error) { return here().memAvailable() }

func (m machine) memAvailable() (uint64, error) {
	info, err := m.meminfo()
	if err != nil {
		return 0, fmt.Errorf("read available memory: %w", err)
	}
	if info.MemAvailableBytes == nil {
		return 0, errors.New("read available memory: no MemAvailable in /proc/meminfo")
	}
	available := *info.MemAvailableBytes
	for _, g := range m.memoryCgroups() {
		available = min(available, m.headroom(g))
	}
	return available, nil
}

// cgroup is a folder of a memory cgroup and the names of its files.
type cgroup struct {
	dir                 string // below the root
	limit, usage, cache string // cache is the field of memory.stat, of the whole subtree
}

// memoryCgroups returns the memory cgroups that this process is in: its own, and those above, which bound it, too.
func (m machine) memoryCgroups() []cgroup {
	proc, err := procfs.NewFS(m.path("proc"))
	if err != nil {
		return nil
	}
	self, err := proc.Self()
	if err != nil {
		return nil
	}
	memberships, err := self.Cgroups()
	if err != nil {
		return nil
	}
	mounts, err := proc.GetMounts()
	if err != nil {
		return nil
	}
	var groups []cgroup
	for _, member := range memberships {
		var g cgroup
		isMount := func(mount *procfs.MountInfo) bool { return mount.FSType == "cgroup2" }
		switch {
		case slices.Contains(member.Controllers, "memory"):
			g = cgroup{limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", cache: "total_inactive_file"}
			isMount = func(mount *procfs.MountInfo) bool {
				_, ok := mount.SuperOptions["memory"]
				return mount.FSType == "cgroup" && ok
			}
		case member.HierarchyID == 0:
			g = cgroup{limit: "memory.max", usage: "memory.current", cache: "inactive_file"}
		default:
			continue
		}
		if i := slices.IndexFunc(mounts, isMount); i >= 0 {
			for _, dir := range upwards(mounts[i], member.Path) {
				g.dir = dir
				groups = append(groups, g)
			}
		}
	}
	return groups
}

// upwards returns the folders of a cgroup and of those above it, up to the mount point.
func upwards(mount *procfs.MountInfo, path string) []string {
	// A container may see a part of the hierarchy only, and its own place in terms of the whole.
	inside, err := filepath.Rel(mount.Root, path)
	if err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		inside = "."
	}
	var dirs []string
	for ; inside != "."; inside = filepath.Dir(inside) {
		dirs = append(dirs, filepath.Join(mount.MountPoint, inside))
	}
	return append(dirs, mount.MountPoint)
}

// headroom returns how many bytes a cgroup may still use, which is huge where it has no limit.
func (m machine) headroom(g cgroup) uint64 {
	const unlimited = ^uint64(0)
	limit, ok := m.number(filepath.Join(g.dir, g.limit)) // "max" is none
	if !ok {
		return unlimited
	}
	usage, ok := m.number(filepath.Join(g.dir, g.usage))
	if !ok {
		return unlimited
	}
	for line := range strings.Lines(m.read(filepath.Join(g.dir, "memory.stat"))) {
		if value, ok := strings.CutPrefix(line, g.cache+" "); ok {
			cache, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			usage -= min(usage, cache)
		}
	}
	return limit - min(limit, usage)
}

func (m machine) number(name string) (uint64, bool) {
	n, err := strconv.ParseUint(m.read(name), 10, 64)
	return n, err == nil
}

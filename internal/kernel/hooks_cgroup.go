package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// limitMemory makes a cgroup, bounds its memory and removes it.
func limitMemory() error {
	group, err := NewMemoryCgroup(fmt.Sprintf("bpfbench-probe-%d", os.Getpid()))
	if err != nil {
		return err
	}
	return errors.Join(group.Limit(1<<30), group.Remove())
}

// MemoryCgroup is a cgroup of version 2 that bounds memory.
type MemoryCgroup struct {
	root, dir string
	enabled   bool // the controller was, for the groups below the root
}

// NewMemoryCgroup makes a group below the root of cgroup2. Where that does not bound memory, the error is
// [ebpf.ErrNotSupported]; the hook cgroup2-memory says what it needs. Its caller removes the group. An empty one of that name,
// which a process that was killed has left, is replaced.
func NewMemoryCgroup(name string) (*MemoryCgroup, error) {
	root, err := cgroupRoot()
	if err != nil {
		return nil, err
	}
	g := &MemoryCgroup{root: root, dir: filepath.Join(root, name)}
	if !lists(filepath.Join(root, "cgroup.controllers"), "memory") {
		return nil, fmt.Errorf("cgroup2 has no memory controller: %w", ebpf.ErrNotSupported)
	}
	if g.enabled = lists(g.control(), "memory"); !g.enabled {
		if err := write(g.control(), "+memory"); err != nil {
			return nil, fmt.Errorf("enable the memory controller: %w", err)
		}
	}
	_ = os.Remove(g.dir) // it is not there, as a rule; where it cannot be removed, it cannot be made either
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, errors.Join(err, g.disable())
	}
	return g, nil
}

func (g *MemoryCgroup) control() string { return filepath.Join(g.root, "cgroup.subtree_control") }

func (g *MemoryCgroup) disable() error {
	if g.enabled {
		return nil
	}
	return write(g.control(), "-memory")
}

// Limit sets how much memory the group may use, in bytes.
func (g *MemoryCgroup) Limit(bytes uint64) error {
	return write(filepath.Join(g.dir, "memory.max"), fmt.Sprint(bytes))
}

// Usage returns how much memory the group uses, in bytes.
func (g *MemoryCgroup) Usage() (bytes uint64, err error) { return g.read("memory.current") }

// Peak returns the most memory that the group has used, in bytes. It needs Linux 5.19.
func (g *MemoryCgroup) Peak() (bytes uint64, err error) { return g.read("memory.peak") }

func (g *MemoryCgroup) read(name string) (bytes uint64, err error) {
	content, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(content), &bytes)
	return bytes, err
}

// Do does something as a member of the group, with all the threads of the process. What memory the kernel gives the
// process meanwhile is the group's, and so are the maps that it makes, whoever fills them later.
func (g *MemoryCgroup) Do(do func() error) error {
	before, err := ownCgroup()
	if err != nil {
		return err
	}
	if err := write(filepath.Join(g.dir, "cgroup.procs"), "0"); err != nil {
		return fmt.Errorf("enter cgroup: %w", err)
	}
	err = do()
	if e := write(filepath.Join(g.root, before, "cgroup.procs"), "0"); e != nil {
		err = errors.Join(err, fmt.Errorf("leave cgroup: %w", e))
	}
	return err
}

// Remove removes the group, which has to be empty.
func (g *MemoryCgroup) Remove() error { return errors.Join(os.Remove(g.dir), g.disable()) }

// cgroupRoot returns where cgroup2 is mounted.
func cgroupRoot() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			return f[1], nil
		}
	}
	return "", fmt.Errorf("cgroup2 is not mounted: %w", ebpf.ErrNotSupported)
}

// ownCgroup returns the cgroup that the process is in, below the root.
func ownCgroup() (string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(groups)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return name, nil
		}
	}
	return "", errors.New("the process is in no cgroup of version 2")
}

// lists reports whether a file has a word in it.
func lists(name, word string) bool {
	content, err := os.ReadFile(name)
	return err == nil && slices.Contains(strings.Fields(string(content)), word)
}

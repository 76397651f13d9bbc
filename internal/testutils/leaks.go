package testutils

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// patience is for what the kernel frees in the background, behind others on a busy machine, and for goroutines that are
	// about to end.
	patience = 20 * time.Second
	poll     = 20 * time.Millisecond
)

// NoLeaks fails the test if, when it has ended and all that it registered later with Cleanup is done, the process has open
// files, BPF programs, maps or links, or goroutines that it did not have when NoLeaks was called. Call it first. What is
// left has 20 seconds to go.
//
// BPF objects are found by their ids, as those that are pinned or attached need no open file. They are the machine's, not
// the process's, and the kernel does not tell who made them: those that an open file of another process holds, directly or
// through a program or a link, are taken to be that one's, and so are all that do not stay. Where the ids may not be
// listed (that takes root), only open files are checked. Tests that run in parallel with others cannot use it.
func NoLeaks(t testing.TB) {
	t.Helper()
	noLeaks(t, patience)
}

func noLeaks(t testing.TB, patience time.Duration) {
	t.Helper()
	openPoller()
	before := take()
	t.Cleanup(func() {
		t.Helper()
		deadline := time.Now().Add(patience)
		left := subtract(take(), before)
		for len(left) > 0 && time.Now().Before(deadline) {
			time.Sleep(poll)
			now := subtract(take(), before)
			maps.DeleteFunc(left, func(key, _ string) bool { return now[key] == "" })
		}
		for _, key := range slices.Sorted(maps.Keys(left)) {
			what := left[key]
			if o, ok := parseObject(key); ok {
				what = o.describe()
			}
			t.Errorf("left behind: %s", what)
		}
	})
}

// things are what a process has, by a name that is theirs alone, with a description.
type things map[string]string

// take lists what there is now.
func take() things {
	all := things{}
	openFiles(all)
	goroutines(all)
	bpfObjects(all)
	return all
}

// subtract returns what is in now and not in before. A descriptor that is another file's by now is new; a goroutine that
// is elsewhere in its code is not.
func subtract(now, before things) things {
	left := things{}
	for key, what := range now {
		old, known := before[key]
		if !known || old != what && strings.HasPrefix(key, "fd ") {
			left[key] = what
		}
	}
	removeForeign(left)
	return left
}

// openPoller makes the runtime open the files of its network poller, which stay.
func openPoller() {
	if r, w, err := os.Pipe(); err == nil {
		_ = r.Close()
		_ = w.Close()
	}
}

// openFiles adds the descriptors of this process, with what they are.
func openFiles(all things) {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue // the folder itself, which is closed by now
		}
		what := fmt.Sprintf("open file %s: %s", entry.Name(), target)
		for kind, id := range bpfIDs("/proc/self/fdinfo/" + entry.Name()) {
			what += fmt.Sprintf(" (%s %d)", kind, id)
		}
		all["fd "+entry.Name()] = what
	}
}

// goroutines adds those of this process, but for those that the testing package has started.
func goroutines(all things) {
	for block := range strings.SplitSeq(stacks(), "\n\n") {
		header, stack, ok := strings.Cut(block, "\n")
		name, _, _ := strings.Cut(header, " [")
		if !ok || strings.Contains(stack, "created by testing.") || strings.Contains(stack, "os/signal.loop") {
			continue
		}
		where, _, _ := strings.Cut(stack, "\n")
		what := fmt.Sprintf("%s in %s", name, where)
		if _, by, ok := strings.Cut(stack, "created by "); ok {
			by, _, _ = strings.Cut(strings.ReplaceAll(by, "\n\t", " at "), " +0x")
			what += ", created by " + by
		}
		all[name] = what
	}
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	for size := 1 << 16; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return string(buf[:n])
		}
	}
}

// bpfIDs reads the ids of BPF objects from a file of /proc/PID/fdinfo, by kind: program, map or link.
func bpfIDs(path string) map[string]uint32 {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var ids map[string]uint32
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(line, ":")
		kind, ok := map[string]string{"prog_id": program, "map_id": bpfMap, "link_id": bpfLink}[key]
		if !ok {
			continue
		}
		if id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil {
			if ids == nil {
				ids = map[string]uint32{}
			}
			ids[kind] = uint32(id)
		}
	}
	return ids
}

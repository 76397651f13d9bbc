package tracefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Prefix begins the names of all instances and of all groups of events that bench makes, so that what one left that was
// killed is known for its own.
const Prefix = "bench_"

// Instance is a trace buffer of our own, so that neither its settings nor what is enabled in it are anyone else's.
type Instance struct{ dir string }

// NewInstance makes an instance whose name, after Prefix, is name. Its ring buffer has size bytes for each CPU, and its clock
// is the kernel's default, which other tracers cannot have changed here.
func NewInstance(name string, size int) (*Instance, error) {
	i := &Instance{dir: filepath.Join(path, "instances", Prefix+name)}
	if err := os.Mkdir(i.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make trace instance: %w", err)
	}
	if err := i.write("buffer_size_kb", strconv.Itoa((size+1023)/1024)); err != nil {
		return nil, errors.Join(fmt.Errorf("size trace buffer: %w", err), i.Remove())
	}
	return i, nil
}

func (i *Instance) write(file, value string) error {
	return os.WriteFile(filepath.Join(i.dir, file), []byte(value), 0)
}

// Enable switches an event on or off in the instance.
func (i *Instance) Enable(group, event string, on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	if err := i.write(filepath.Join("events", group, event, "enable"), value); err != nil {
		return fmt.Errorf("enable event %s/%s: %w", group, event, err)
	}
	return nil
}

// HasOption reports whether the kernel knows a trace option.
func (i *Instance) HasOption(name string) bool {
	_, err := os.Stat(filepath.Join(i.dir, "options", name))
	return err == nil
}

// SetOption switches a trace option on or off, in the instance.
func (i *Instance) SetOption(name string, on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	if err := i.write(filepath.Join("options", name), value); err != nil {
		return fmt.Errorf("set trace option %s: %w", name, err)
	}
	return nil
}

// Clear empties the buffer and sets its counts to zero.
func (i *Instance) Clear() error {
	f, err := os.OpenFile(filepath.Join(i.dir, "trace"), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("clear trace: %w", err)
	}
	return f.Close()
}

// Hits is how many events came to the buffer since it was cleared: those that are in it, that were overwritten, and that were
// dropped. They are summed over the CPUs.
func (i *Instance) Hits() (uint64, error) {
	files, err := filepath.Glob(filepath.Join(i.dir, "per_cpu", "cpu*", "stats"))
	if err != nil {
		return 0, err
	}
	var hits uint64
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, fmt.Errorf("count events: %w", err)
		}
		n, err := countHits(string(text))
		if err != nil {
			return 0, fmt.Errorf("count events: %s: %w", file, err)
		}
		hits += n
	}
	return hits, nil
}

// countHits reads the stats of one CPU's buffer, lines of "name: number" (kernel/trace/trace.c: tracing_stats_read).
func countHits(text string) (uint64, error) {
	var hits uint64
	found := 0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "entries", "overrun", "commit overrun", "dropped events":
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			hits += n
			found++
		}
	}
	if found != 4 {
		return 0, fmt.Errorf("%d of 4 counts found", found)
	}
	return hits, nil
}

// Text is what is in the buffer, as text: a line an event, the oldest first.
func (i *Instance) Text() (string, error) {
	text, err := os.ReadFile(filepath.Join(i.dir, "trace"))
	if err != nil {
		return "", fmt.Errorf("read trace: %w", err)
	}
	return string(text), nil
}

// Remove takes the instance away. Events that are enabled in it are switched off first.
func (i *Instance) Remove() error {
	if err := i.write("events/enable", "0"); err != nil {
		return fmt.Errorf("disable events: %w", err)
	}
	return busy(func() error { return os.Remove(i.dir) })
}

// busy tries again for a moment what is refused while the kernel still has the thing in use.
func busy(f func() error) error {
	for tries := 0; ; tries++ {
		err := f()
		if err == nil || !errors.Is(err, fs.ErrExist) && !isBusy(err) || tries == 50 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

package tracefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func isBusy(err error) bool { return errors.Is(err, unix.EBUSY) }

// AddEvent defines a dynamic event by its line (Documentation/trace/kprobetrace.rst and its like). Where the kernel
// refuses it, the error holds what it says about that.
func AddEvent(definition string) error {
	if err := appendTo("dynamic_events", definition); err != nil {
		return fmt.Errorf("define event %q: %w%s", definition, err, lastError(definition))
	}
	return nil
}

// RemoveEvent takes away a dynamic event.
func RemoveEvent(group, name string) error {
	err := busy(func() error { return appendTo("dynamic_events", "-:"+group+"/"+name) })
	if err != nil {
		return fmt.Errorf("remove event %s/%s: %w", group, name, err)
	}
	return nil
}

// appendTo writes a line to a file of tracefs, in one write and without emptying the file, which would remove all events.
func appendTo(file, line string) error {
	f, err := os.OpenFile(filepath.Join(path, file), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// lastError is what the kernel's error log says of a definition, which is in it as "Command: …": empty where the last entry
// is of another.
func lastError(definition string) string {
	text, err := os.ReadFile(filepath.Join(path, "error_log"))
	if err != nil {
		return ""
	}
	return parseErrorLog(string(text), definition)
}

func parseErrorLog(log, definition string) string {
	head, _, ok := strings.Cut(log[strings.LastIndex(log, "\n[")+1:], "\n")
	if !ok || !strings.Contains(log[strings.LastIndex(log, "\n[")+1:], "Command: "+definition+"\n") {
		return ""
	}
	if _, said, ok := strings.Cut(head, "error: "); ok {
		return ": " + strings.TrimSpace(said)
	}
	return ""
}

// Format is an event's format file.
func Format(group, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(path, "events", group, name, "format"))
	if err != nil {
		return "", fmt.Errorf("read the format of event %s/%s: %w", group, name, err)
	}
	return string(text), nil
}

// Events are the dynamic events there are, by their definitions.
func Events() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(path, "dynamic_events"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // no kind of dynamic event in this kernel
	}
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
}

// CleanUp removes the instances and the events that a bench left that is dead. Who calls it holds the measuring lock, so
// no other is alive that has any. It returns what it removed.
func CleanUp() (removed []string, err error) {
	if mounted, err := isTracefs(path); err != nil || !mounted {
		return nil, nil // there was no way to leave anything
	}
	var errs []error
	dirs, _ := filepath.Glob(filepath.Join(path, "instances", Prefix+"*"))
	for _, dir := range dirs {
		if err := (&Instance{dir: dir}).Remove(); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, "trace instance "+filepath.Base(dir))
	}
	events, err := Events()
	if !errors.Is(err, fs.ErrPermission) { // who may not look has left nothing, and cannot remove what others have
		errs = append(errs, err)
	}
	for _, definition := range events {
		group, name, ok := eventName(definition)
		if !ok || !strings.HasPrefix(group, Prefix) {
			continue
		}
		if err := RemoveEvent(group, name); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, "event "+group+"/"+name)
	}
	return removed, errors.Join(errs...)
}

// eventName is the group and the name in a definition such as "p:group/name symbol".
func eventName(definition string) (group, name string, ok bool) {
	head, _, _ := strings.Cut(definition, " ")
	_, full, ok := strings.Cut(head, ":")
	if !ok {
		return "", "", false
	}
	return strings.Cut(full, "/")
}

// Tracers is what ftrace already has on a function, as its list of them says: empty for nothing, or where it cannot be known.
func Tracers(function string) string {
	text, err := os.ReadFile(filepath.Join(path, "enabled_functions"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, what, ok := strings.Cut(line, " "); ok && name == function {
			return strings.Join(strings.Fields(what), " ")
		}
	}
	return ""
}

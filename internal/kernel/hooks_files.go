package kernel

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/internal/tracefs"
)

// event returns a probe that defines a probe event of a kind at a place, in the words of dynamic_events
// (Documentation/trace/kprobetrace.rst), enables it in an instance of its own, and removes both.
func event(kind, place string) func() error {
	return func() error {
		return withTracefs(func() error {
			name := fmt.Sprintf("probe_%d", os.Getpid())
			group := tracefs.Prefix + name
			definition := kind + ":" + group + "/x " + place
			if err := tracefs.AddEvent(definition); err != nil {
				if errors.Is(err, unix.EINVAL) && !logged(definition) {
					return fmt.Errorf("%w (%w)", ebpf.ErrNotSupported, err)
				}
				return err
			}
			return errors.Join(enable(name, group), tracefs.RemoveEvent(group, "x"))
		})
	}
}

// enable enables the event x of a group in an instance of tracefs.
func enable(name, group string) error {
	instance, err := tracefs.NewInstance(name, os.Getpagesize())
	if err != nil {
		return err
	}
	err = instance.Enable(group, "x", true)
	if err == nil {
		err = instance.Enable(group, "x", false)
	}
	return errors.Join(err, instance.Remove())
}

// logged reports whether the kernel's log of errors has a definition of an event. It has those that are faulty; what is an
// event of no kind that the kernel knows does not get there.
func logged(definition string) bool {
	log, err := os.ReadFile("/sys/kernel/tracing/error_log")
	return err != nil || strings.Contains(string(log), definition)
}

// switchJIT switches the JIT off and on, and back to what it was.
func switchJIT() error {
	const name = "/proc/sys/net/core/bpf_jit_enable"
	was, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for _, value := range []string{"0", "1", strings.TrimSpace(string(was))} {
		err := write(name, value)
		if errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("%w (%w)", ebpf.ErrNotSupported, err)
		}
		if err != nil {
			return errors.Join(err, write(name, strings.TrimSpace(string(was))))
		}
	}
	return nil
}

// write writes to a file of the kernel's, which has to be there.
func write(name, value string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

package kernel

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Hook is something that programs or probe events attach to, or that is switched for them, and that a kernel may lack or
// refuse although it knows the type of the program.
type Hook struct {
	Name    string   // such as "kprobe.multi"
	Since   string   // the first version of Linux that has it, such as "5.18"
	Options []string // of the kernel's configuration that it needs, such as "CONFIG_FPROBE=y"
	// SetUp is what else it needs of how the system is set up; empty for nothing.
	SetUp string

	caps  []Cap
	probe func() error
}

// Hooks returns all hooks that there are probes of.
func Hooks() []Hook { return slices.Clone(hooks) }

var hooks = []Hook{
	{Name: "raw_tp", Since: "4.17", Options: []string{"CONFIG_BPF_EVENTS=y"}, caps: tracing, probe: attachRawTracepoint},
	{Name: "tracepoint", Since: "4.7", Options: []string{"CONFIG_BPF_EVENTS=y"}, caps: tracing, probe: attachTracepoint},
	// arm64 has the trampolines from 6.0 on.
	{Name: "fentry", Since: "5.5", Options: []string{"CONFIG_DEBUG_INFO_BTF=y", "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y"},
		caps: tracing, probe: attachFentry},
	{Name: "kprobe", Since: "4.1", Options: []string{"CONFIG_KPROBE_EVENTS=y"}, caps: tracing, probe: attachKprobe},
	{Name: "kretprobe", Since: "4.1", Options: []string{"CONFIG_KPROBE_EVENTS=y"}, caps: tracing, probe: attachKretprobe},
	{Name: "kprobe.multi", Since: "5.18", Options: []string{"CONFIG_FPROBE=y"}, caps: tracing, probe: attachKprobeMulti},
	{Name: "uprobe", Since: "4.1", Options: []string{"CONFIG_UPROBE_EVENTS=y"}, caps: tracing, probe: attachUprobe},
	{Name: "uprobe.multi", Since: "6.6", Options: []string{"CONFIG_UPROBE_EVENTS=y"}, caps: tracing, probe: attachUprobeMulti},
	{Name: "kprobe-event", Since: "5.0", Options: []string{"CONFIG_KPROBE_EVENTS=y"}, probe: event("p", target)},
	{Name: "kretprobe-event", Since: "5.0", Options: []string{"CONFIG_KPROBE_EVENTS=y"}, probe: event("r", target)},
	{Name: "fprobe-event", Since: "6.5", Options: []string{"CONFIG_FPROBE_EVENTS=y"}, probe: event("f", target)},
	{Name: "tprobe-event", Since: "6.5", Options: []string{"CONFIG_FPROBE_EVENTS=y"}, probe: event("t", "sys_enter")},
	// The option was split off CONFIG_PROBE_EVENTS after 6.12.
	{Name: "eprobe-event", Since: "5.15", Options: []string{"CONFIG_EPROBE_EVENTS=y"}, probe: event("e", tracepointGroup+"."+tracepointName)},
	{Name: "jit-switch", Since: "4.1", Options: []string{"CONFIG_BPF_JIT=y", "CONFIG_BPF_JIT_ALWAYS_ON=n"}, probe: switchJIT},
	{Name: "cgroup2-memory", Since: "4.5", Options: []string{"CONFIG_MEMCG=y"},
		SetUp: "cgroup2 mounted, and the memory controller not in use by cgroup v1", probe: limitMemory},
	{Name: "ringbuf", Since: "5.8", Options: []string{"CONFIG_BPF_SYSCALL=y"}, caps: tracing, probe: fillRingBuffer},
	{Name: "bpf_loop", Since: "5.17", Options: []string{"CONFIG_BPF_SYSCALL=y"}, caps: tracing, probe: loop},
}

var tracing = []Cap{CapBPF, CapPerfmon}

// Probe attaches to the hook, or switches it, and undoes that. It returns nil, an *Error or *PrivilegeError, or another
// error if the probe failed. Where the JIT can be switched, that probe switches it off for a moment: programs that are
// loaded in that moment are interpreted.
func (h Hook) Probe() error { return h.explain(here(), h.probe()) }

// Expected reports whether the running kernel is new enough for the hook.
func (h Hook) Expected() bool { return h.expected(here()) }

func (h Hook) expected(s system) bool {
	since := parseVersion(h.Since)
	return !s.release.before(since.major, since.minor)
}

// explain sorts the answer of the hook's probe.
func (h Hook) explain(s system, err error) error {
	switch {
	case err == nil:
		return nil
	case denied(err):
	case !h.expected(s), notSupported(err), errors.Is(err, fs.ErrNotExist):
		return &Error{Feature: h.Name, Outcome: Missing, Needs: h.needs(), Err: err}
	}
	return s.explain(err, h.Name, h.caps...)
}

func (h Hook) needs() string {
	needs := append([]string{"Linux " + h.Since + " with " + strings.Join(h.Options, ", ")}, h.SetUp)
	return strings.TrimSuffix(strings.Join(needs, "; "), "; ")
}

// denied reports that permission is what an error is about.
func denied(err error) bool { return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) }

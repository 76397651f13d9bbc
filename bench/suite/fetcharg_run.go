package suite

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"bpfbench/bench/harness"
	"bpfbench/fetcharg"
	"bpfbench/internal/tracefs"
	"bpfbench/producers"
	"bpfbench/report"
)

// fetchRun is a fetcharg benchmark made ready for one run.
type fetchRun struct {
	cfg    *fetchConfig
	target *fetchTarget
	driver *fetchDriver
	engine fetchEngine // nil for the baseline

	off     sync.Once // switches the event off, for the twin
	offErr  error
	enabled atomic.Uint64 // calls while it was on
}

// fetchEngine is an event that is attached and on.
type fetchEngine interface {
	// Hits is how often the event has fired, and Lost what the kernel says of hits that it did not see.
	Hits() (uint64, error)
	// Last are the values that the last event has recorded, as text, by name.
	Last() (map[string]string, error)
	Off() error
	Close() error
}

func (r *fetchRun) setup(env harness.Env) (err error) {
	if r.driver, err = r.target.driver(env.Producers); err != nil {
		return err
	}
	if r.cfg.kind.name == fetchBaseline {
		return nil
	}
	args, err := r.cfg.list(r.target)
	if err != nil {
		return err
	}
	spot, err := r.target.spot()
	if err != nil {
		return err
	}
	legacy, err := newLegacy(r.cfg.kind, spot, args, env.Warn)
	if err != nil {
		return err
	}
	r.engine = legacy
	return nil
}

func (r *fetchRun) close() error {
	var errs []error
	if r.engine != nil {
		errs = append(errs, r.engine.Close())
	}
	if r.driver != nil {
		errs = append(errs, r.driver.close())
	}
	return errors.Join(errs...)
}

func (r *fetchRun) producer(w *harness.Worker) (harness.Producer, error) {
	call, err := r.driver.call(w)
	if err != nil {
		return harness.Producer{}, err
	}
	split := func(call func(first, count, passes uint32) (producers.Done, error)) *producers.Split {
		return &producers.Split{Pass: 1, Passes: r.cfg.nrLoops, Whole: true, Aborted: w.Aborted, Call: call}
	}
	if r.engine == nil {
		return harness.Producer{Batch: split(call).Batch}, nil
	}
	on := split(func(first, count, passes uint32) (producers.Done, error) {
		done, err := call(first, count, passes)
		r.enabled.Add(done.Ops)
		return done, err
	})
	twin := split(func(first, count, passes uint32) (producers.Done, error) {
		if r.off.Do(func() { r.offErr = r.engine.Off() }); r.offErr != nil {
			return producers.Done{}, r.offErr
		}
		return call(first, count, passes)
	})
	return harness.Producer{Batch: on.Batch, Twin: twin.Batch}, nil
}

// check compares the hits with the calls, and the last record with what was passed in: a probe that did not fire, or
// fetched something else, looks fast.
func (r *fetchRun) check(*report.Run) error {
	if r.engine == nil {
		return nil
	}
	hits, err := r.engine.Hits()
	if err != nil {
		return err
	}
	if calls := r.enabled.Load(); hits != calls {
		return fmt.Errorf("the event fired %d times in %d calls", hits, calls)
	}
	last, err := r.engine.Last()
	if err != nil || r.cfg.fetchargs != "" {
		return err
	}
	want, err := r.target.want()
	if err != nil {
		return err
	}
	for i, name := range []string{"a", "b", "c"}[:r.cfg.args] {
		if got, err := parseValue(last[name]); err != nil || !slices.Contains(want[i], got) {
			return fmt.Errorf("the event recorded %s=%s, want %#x", name, last[name], want[i])
		}
	}
	return nil
}

// parseValue reads a number as trace events print it: decimal, or hexadecimal after 0x.
func parseValue(s string) (uint64, error) { return strconv.ParseUint(s, 0, 64) }

// legacy is an event of the kernel's own interpreter, in an instance of tracefs.
type legacy struct {
	unmount     func() error
	instance    *tracefs.Instance
	group, name string
	defined     bool
}

// traceBuffer is the size of the instance's buffer for each CPU in bytes. It is written round and round; one that fits into
// a cache of the second level costs least.
const traceBuffer = 1 << 20

func newLegacy(kind *fetchKind, spot string, args []fetcharg.Arg, warn func(report.Warning)) (_ *legacy, err error) {
	pid := strconv.Itoa(os.Getpid())
	e := &legacy{group: tracefs.Prefix + pid, name: kind.name}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if e.unmount, err = tracefs.Mount(); err != nil {
		return nil, err
	}
	if others := tracefs.Tracers(spot); others != "" {
		warn(report.Warning{What: spot + " has other tracers already, whose cost is in the numbers", Remedy: "switch them off: " + others})
	}
	if e.instance, err = tracefs.NewInstance(pid, traceBuffer); err != nil {
		return nil, err
	}
	definition := strings.TrimSpace(fmt.Sprintf("%s:%s/%s %s %s", kind.letter, e.group, e.name, spot, fetcharg.Join(args)))
	if err := tracefs.AddEvent(definition); err != nil {
		return nil, err
	}
	e.defined = true
	return e, e.instance.Enable(e.group, e.name, true)
}

func (e *legacy) Hits() (uint64, error) { return e.instance.Hits() }
func (e *legacy) Off() error            { return e.instance.Enable(e.group, e.name, false) }

// Last reads the last line of the buffer: … name: (where) a=0x8 b=77.
func (e *legacy) Last() (map[string]string, error) {
	text, err := e.instance.Text()
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	_, event, ok := strings.Cut(lines[len(lines)-1], " "+e.name+": (")
	if !ok {
		return nil, fmt.Errorf("the trace buffer ends in %q, which is no event", lines[len(lines)-1])
	}
	values := make(map[string]string)
	for _, field := range strings.Fields(event) {
		if name, value, ok := strings.Cut(field, "="); ok {
			values[name] = value
		}
	}
	return values, nil
}

func (e *legacy) Close() error {
	var errs []error
	if e.instance != nil {
		errs = append(errs, e.instance.Remove())
	}
	if e.defined {
		errs = append(errs, tracefs.RemoveEvent(e.group, e.name))
	}
	if e.unmount != nil {
		errs = append(errs, e.unmount())
	}
	return errors.Join(errs...)
}

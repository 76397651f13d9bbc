package suite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"bpfbench/bench/harness"
	"bpfbench/fetcharg"
	"bpfbench/internal/host"
	"bpfbench/internal/kernel"
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

	most    uint64    // calls that the driver may make at once; 0 for any number
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
	// Room is how many hits a call may make, 0 for any number; Reset is called before each call.
	Room() uint64
	Reset()
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
	ev, err := r.cfg.event(r.target)
	if err != nil {
		return err
	}
	if others := tracefs.Tracers(ev.Target); others != "" {
		env.Warn(report.Warning{What: ev.Target + " has other tracers already, whose cost is in the numbers", Remedy: "switch them off: " + others})
	}
	if r.engine, err = newEngine(r.cfg, ev); err != nil {
		return err
	}
	if e, ok := r.engine.(*compiled); ok {
		env.Fact(e.reads())
	}
	r.most = r.engine.Room() / uint64(env.Producers) * 2 / 3 // as Split may go half beyond
	return nil
}

func newEngine(c *fetchConfig, ev fetcharg.Event) (fetchEngine, error) {
	if c.engine == engineBPF {
		e, err := newCompiled(c, ev)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	e, err := newLegacy(ev, c.engine)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// event is the event of a configuration on a target.
func (c *fetchConfig) event(t *fetchTarget) (ev fetcharg.Event, err error) {
	ev = fetcharg.Event{Kind: c.kind.kind, Group: tracefs.Prefix + strconv.Itoa(os.Getpid()), Name: c.kind.name}
	if ev.Args, err = c.list(t); err != nil {
		return ev, err
	}
	ev.Target, ev.Offset, err = t.spot()
	return ev, err
}

// Dump prints the program of the bpf engine, if that is what is asked for.
func (c *fetchConfig) Dump(w io.Writer) (asked bool, err error) {
	if !c.dump {
		return false, nil
	}
	t, err := c.kind.target("")
	if err != nil {
		return true, err
	}
	if err := tracefs.Mount(); err != nil {
		return true, err
	}
	ev, err := c.event(t)
	if err != nil {
		return true, err
	}
	compiled, err := c.compile(ev)
	if err != nil {
		return true, err
	}
	return true, compiled.Dump(w)
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
		return &producers.Split{Pass: 1, Passes: r.cfg.nrLoops, Whole: true, Most: r.most, Aborted: w.Aborted, Call: call}
	}
	if r.engine == nil {
		return harness.Producer{Batch: split(call).Batch}, nil
	}
	on := split(func(first, count, passes uint32) (producers.Done, error) {
		r.engine.Reset()
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
	instance    *tracefs.Instance
	group, name string
	defined     bool
}

// traceBuffer is the size of the instance's buffer for each CPU in bytes. It is written round and round; one that fits into
// a cache of the second level costs least.
const traceBuffer = 1 << 20

// nativeOption is the trace option by which a kernel that compiles fetchargs itself is told not to. It is of a patch that
// no released kernel has.
const nativeOption = "disable_bpf"

func newLegacy(ev fetcharg.Event, engine string) (_ *legacy, err error) {
	if err := harmless(ev); err != nil {
		return nil, err
	}
	e := &legacy{group: ev.Group, name: ev.Name}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if err := tracefs.Mount(); err != nil {
		return nil, err
	}
	if e.instance, err = tracefs.NewInstance(strings.TrimPrefix(ev.Group, tracefs.Prefix), traceBuffer); err != nil {
		return nil, err
	}
	if err := chooseEngine(e.instance, engine); err != nil {
		return nil, err
	}
	definition, err := ev.Definition()
	if err != nil {
		return nil, err
	}
	if err := tracefs.AddEvent(definition); err != nil {
		return nil, err
	}
	e.defined = true
	return e, e.instance.Enable(e.group, e.name, true)
}

// harmless refuses an event that the kernel's interpreter must not be asked for, as the kernel would damage its own memory.
func harmless(ev fetcharg.Event) error {
	release := host.Facts().Kernel
	version, err := fetcharg.ParseVersion(release)
	if err != nil {
		return err
	}
	if h := ev.Hazard(fetcharg.HazardOptions{Version: version}); h != nil {
		return fmt.Errorf("kernel %s would damage its own memory: %w, or use --engine=%s", release, h, engineBPF)
	}
	return nil
}

// optioned is an instance of tracefs, as far as options go.
type optioned interface {
	HasOption(name string) bool
	SetOption(name string, on bool) error
}

// chooseEngine sets the kernel's own choice between the two engines, where it has one.
func chooseEngine(i optioned, engine string) error {
	if i.HasOption(nativeOption) {
		return i.SetOption(nativeOption, engine == engineLegacy)
	}
	if engine == engineNative {
		return &kernel.Error{Feature: "compiling fetchargs", Outcome: kernel.Missing, Needs: "a kernel with the trace option " + nativeOption}
	}
	return nil
}

func (e *legacy) Room() uint64 { return 0 }
func (e *legacy) Reset()       {}

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
	return errors.Join(errs...)
}

package suite

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"bpfbench/internal/kernel"
	"bpfbench/report"
)

// mapMemory measures the memory of a map while it is used.
type mapMemory struct {
	m *ebpf.Map
	// group has made the map, and nothing else, so what the map takes is the group's. It is nil where there is none, and
	// noGroup says why.
	group   *kernel.MemoryCgroup
	noGroup error
	// baseline is the bytes that the group used before this process entered it: from then on, the kernel accounts to it in
	// advance, 64 pages for each CPU.
	baseline uint64

	readings []uint64 // bytes, the baseline included
	err      error    // of the readings
}

// memoryGroup is the group's name. It is the same always, so that one which is left behind by a process that was killed goes
// when the next is made.
const memoryGroup = "bpfbench-map"

// newMapMemory makes a map whose memory is measured, by a cgroup where there are any for memory.
func newMapMemory(spec *ebpf.MapSpec) (*mapMemory, error) {
	g := new(mapMemory)
	create := func() (err error) {
		if g.m, err = ebpf.NewMap(spec); err != nil {
			return kernel.ExplainMap(err, spec)
		}
		return nil
	}
	g.group, g.noGroup = kernel.NewMemoryCgroup(memoryGroup)
	if g.noGroup != nil {
		g.group = nil
		return g, create()
	}
	var err error
	if g.baseline, err = g.group.Usage(); err != nil {
		err = fmt.Errorf("read the cgroup's memory: %w", err)
	} else {
		err = g.group.Do(create)
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// from says where the readings come from.
func (g *mapMemory) from() report.Param {
	if g.group == nil {
		return report.Param{Name: "memory_from", Value: "map", Note: "its own accounting: " + g.noGroup.Error()}
	}
	return report.Param{Name: "memory_from", Value: "cgroup", Note: "which accounts in advance, by up to 256 KiB for each CPU"}
}

// sample takes a reading.
func (g *mapMemory) sample() {
	n, err := g.usage()
	if err != nil {
		g.err = fmt.Errorf("read the map's memory: %w", err)
		return
	}
	g.readings = append(g.readings, n)
}

func (g *mapMemory) usage() (uint64, error) {
	if g.group != nil {
		return g.group.Usage()
	}
	info, err := g.m.Info()
	if err != nil {
		return 0, err
	}
	n, ok := info.Memlock()
	if !ok {
		return 0, errors.New("the kernel does not account for it")
	}
	return n, nil
}

// check adds the run's gauges. The peak is the group's since it was made, or else of the readings.
func (g *mapMemory) check(run *report.Run) error {
	if g.err != nil {
		return g.err
	}
	var sum float64
	var peak uint64
	for _, n := range g.readings {
		sum += float64(n)
		peak = max(peak, n)
	}
	if g.group != nil {
		if n, err := g.group.Peak(); err == nil {
			peak = n
		}
	}
	base := float64(g.baseline)
	run.Gauges = append(run.Gauges,
		report.Gauge{Name: "memory_mean", Value: sum/float64(len(g.readings)) - base, Unit: "B"},
		report.Gauge{Name: "memory_peak", Value: float64(peak) - base, Unit: "B"},
		report.Gauge{Name: "memory_baseline", Value: base, Unit: "B"})
	return nil
}

func (g *mapMemory) close() error {
	var errs []error
	if g.m != nil {
		errs = append(errs, g.m.Close())
	}
	if g.group != nil {
		errs = append(errs, g.group.Remove())
	}
	return errors.Join(errs...)
}

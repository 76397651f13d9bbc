package fetcharg

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bpfbench/internal/tracefs"
	"bpfbench/internal/vm"
	"bpfbench/progs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/perf"
)

const exactVar = "FETCHARG_EXACT"

// TestCost shows what the compiled programs cost, in instructions: where the numbers in the documentation come from. It
// takes minutes, so it is asked for by setting the variable FETCHARG_COST.
func TestCost(t *testing.T) {
	if os.Getenv("FETCHARG_COST") == "" {
		t.Skip("set FETCHARG_COST to count instructions in guests")
	}
	kernels, err := vm.CachedKernels("../.cache/kernels")
	if err != nil {
		t.Skip(err)
	}
	for _, k := range kernels {
		t.Run(k.Release, func(t *testing.T) {
			opt := vm.Options{Kernel: k.File, Exact: true, Timeout: 20 * time.Minute}
			task := vm.Task{Args: []string{"-test.run=^TestExactCost", "-test.v"}, Env: []string{exactVar + "=1", guestVar + "=1"}}
			exit, err := vm.Boot(t.Context(), opt, task, vm.Handler{Message: func(line string) { t.Log(line) }})
			if err != nil || exit.Status != 0 {
				t.Errorf("status %d, %v", exit.Status, err)
			}
		})
	}
}

// loops are what one measurement takes: in the exact mode there is nothing to average.
const loops = 2000

// cost is the number of instructions of a loop.
func (d *driver) cost(t testing.TB) float64 {
	d.call(t, 100, probedA, probedB)
	return float64(d.call(t, loops, probedA, probedB)) / loops
}

func TestExactCost(t *testing.T) {
	if os.Getenv(exactVar) == "" {
		t.Skip("it is for guests that count instructions")
	}
	tr := newTracing(t)
	m := &meter{T: t, tr: tr, symbols: symbols(t)}
	for _, kind := range []Kind{Kprobe, Kretprobe, Fprobe, FprobeReturn, Tprobe, Eprobe} {
		m.kind = kind
		if err := m.ready(); err != nil {
			t.Logf("%v: %v", kind, err)
			continue
		}
		t.Logf("%-14v baseline %.1f", kind, m.driver.cost(t))
		m.reference()
	}
	m.kind = Kprobe
	if err := m.ready(); err != nil {
		t.Fatal(err)
	}
	m.single()
}

type meter struct {
	*testing.T
	tr      *tracing
	kind    Kind
	driver  *driver
	symbols func(string) (uint64, error)
	format  *Format
}

// references are the arguments of the benchmark; tprobes have only one parameter.
var references = map[Kind]string{
	Kprobe:       `a=$arg2 b=+0(+0($arg1)):u32 c=+0($arg3):u32`,
	Fprobe:       `a=$arg2 b=+0(+0($arg1)):u32 c=+0($arg3):u32`,
	Kretprobe:    `a=$retval b=+0(+0(@saved_command_line)):u32 c=@linux_banner:u32`,
	FprobeReturn: `a=$retval b=+0(+0(@saved_command_line)):u32 c=@linux_banner:u32`,
	Tprobe:       `a=$arg1 b=+0(@saved_command_line):u32 c=@linux_banner:u32`,
	Eprobe:       `a=$nonce b=+0(@saved_command_line):u32 c=@linux_banner:u32`,
}

func (m *meter) ready() error {
	name := progs.FetchargProgCallStrncmp
	if m.kind == Tprobe || m.kind == Eprobe {
		name = progs.FetchargProgCallTrigger
		text, err := tracefs.Format("bpf_test_run", "bpf_trigger_tp")
		if err != nil {
			return err
		}
		if m.format, err = ParseFormat(strings.NewReader(text)); err != nil {
			return err
		}
	}
	if m.tr.version.Before(m.kind.Since()) {
		return fmt.Errorf("needs %v", m.kind.Since())
	}
	m.driver = newDriver(m, name)
	return nil
}

func (m *meter) event(list string) Event {
	e := Event{Kind: m.kind, Group: m.tr.group, Name: "x", Target: stub}
	switch m.kind {
	case Tprobe:
		e.Target = "bpf_trigger_tp"
	case Eprobe:
		e.Target = "bpf_test_run.bpf_trigger_tp"
	}
	var err error
	if e.Args, err = Parse(list); err != nil {
		m.Fatal(err)
	}
	return e
}

// legacy returns the cost of a loop with the kernel's own event.
func (m *meter) legacy(list string) float64 {
	e := m.event(list)
	line, err := e.Definition()
	if err != nil {
		m.Fatal(err)
	}
	i, err := tracefs.NewInstance("cost", 1<<20)
	if err != nil {
		m.Fatal(err)
	}
	if err := tracefs.AddEvent(line); err != nil {
		m.Error(err)
		_ = i.Remove()
		return 0
	}
	defer func() {
		if err := i.Remove(); err != nil {
			m.Error(err)
		}
		if err := tracefs.RemoveEvent(e.Group, e.Name); err != nil {
			m.Error(err)
		}
	}()
	if err := i.Enable(e.Group, e.Name, true); err != nil {
		m.Fatal(err)
	}
	cost := m.driver.cost(m)
	if hits, err := i.Hits(); err != nil || hits != loops+100 {
		m.Errorf("%s: %d hits, %v", line, hits, err)
	}
	return cost
}

// compiled returns the cost of a loop with a compiled program.
func (m *meter) compiled(list string, record Record, jit bool) float64 {
	e := m.event(list)
	m.jit(jit)
	loads, _ := KernelLoads()
	c, err := Compile(e, CompileOptions{Record: record, Symbols: m.symbols, Format: m.format, Loads: loads})
	if err != nil {
		m.Error(err)
		m.jit(true)
		return 0
	}
	if record == RecordRingbuf {
		c.Spec.Maps[mapRecords].MaxEntries = 1 << 22
	}
	coll, err := ebpf.NewCollection(c.Spec)
	m.jit(true)
	if err != nil {
		m.Error(explain(c, err))
		return 0
	}
	defer coll.Close()
	if record == RecordPerf {
		r, err := perf.NewReader(coll.Maps[mapEvents], 1<<22)
		if err != nil {
			m.Fatal(err)
		}
		defer func() { _ = r.Close() }()
	}
	l, err := attach(e, coll.Programs[ProgramName])
	if err != nil {
		m.Error(err)
		return 0
	}
	cost := m.driver.cost(m)
	if err := l.Close(); err != nil {
		m.Error(err)
	}
	m.check(coll, record)
	return cost
}

// check checks that each call was a hit, and no record was lost.
func (m *meter) check(coll *ebpf.Collection, record Record) {
	if record != RecordRingbuf {
		if hits, _ := lastRecord(m, coll); hits != loops+100 {
			m.Errorf("%d hits", hits)
		}
	}
	if record != RecordNone {
		var lost uint64
		if err := coll.Maps[mapLost].Lookup(uint32(0), &lost); err != nil || lost > 0 {
			m.Errorf("%d lost, %v", lost, err)
		}
	}
}

func (m *meter) jit(on bool) {
	value := "0"
	if on {
		value = "1"
	}
	if err := os.WriteFile("/proc/sys/net/core/bpf_jit_enable", []byte(value), 0); err != nil {
		m.Fatal(err)
	}
}

// reference shows the costs of 0 to 3 of the benchmark's arguments.
func (m *meter) reference() {
	all := strings.Fields(references[m.kind])
	row := func(title string, cost func(list string) float64) {
		line := fmt.Sprintf("%-14v %-22s", m.kind, title)
		first := 0.0
		for n := range len(all) + 1 {
			c := cost(strings.Join(all[:n], " "))
			if n == 0 {
				first = c
			}
			line += fmt.Sprintf(" %8.1f", c)
			if n == len(all) {
				line += fmt.Sprintf("   %d arguments: %.1f", n, c-first)
			}
		}
		m.Log(line)
	}
	row("legacy", m.legacy)
	for _, jit := range []bool{true, false} {
		for _, record := range []Record{RecordNone, RecordRingbuf, RecordPerf} {
			if !jit && record == RecordPerf {
				continue
			}
			row(fmt.Sprintf("bpf %v jit=%v", record, jit), func(list string) float64 { return m.compiled(list, record, jit) })
		}
	}
}

// kindsOfFetch are single arguments, and pairs that share something.
var kindsOfFetch = []string{
	`a=$arg2`, `a=%ax`, `a=$arg2:u8`, `a=$stack`, `a=$stack0`, `a=$stack4`, `a=\5`, `a=\0x123456789abcdef`, `a=\"hello"`, `a=$comm`,
	`a=@linux_banner:u32`, `a=+0($arg3):u8`, `a=+0($arg3):u32`, `a=+0($arg3):x64`, `a=+0($arg3):char`, `a=+0($arg3):u8[4]`, `a=@linux_banner:u8[64]`,
	`a=@linux_banner:u64[8]`, `a=+0(+0($arg1)):u32`, `a=+0(+0(@super_blocks)):x64`, `a=+0(+0($arg1)):u32 b=+0(+0($arg1)):u32`,
	`a=+0(+0($arg1)):u32 b=+4(+0($arg1)):u32`, `a=+0($arg1) b=+0(+0($arg1)):u32`, `a=$arg2:b4@2/32`, `a=+0($arg3):b4@2/32`, `a=+0($arg3):b4@2/8[4]`,
	`a=+0($arg3):string`, `a=@linux_banner:string`, `a=+0(@saved_command_line):string`, `a=@saved_command_line:string[1]`, `a=$arg1:symbol`, `a=$stack0:symstr`, `a=+0(\0):u32`, `a=+0(\0):string`,
	`a=$current`, `a=$current->pid`, `a=this_cpu_ptr(@runqueues)`, `a=this_cpu_read(@runqueues):u32`,
}

// single shows what each kind of argument costs.
func (m *meter) single() {
	type engine struct {
		name string
		cost func(list string) float64
	}
	engines := []engine{
		{"legacy", m.legacy},
		{"jit", func(list string) float64 { return m.compiled(list, RecordNone, true) }},
		{"interpreted", func(list string) float64 { return m.compiled(list, RecordNone, false) }},
	}
	line := fmt.Sprintf("%-50s", "kprobe, over no argument")
	zero := map[string]float64{}
	for _, e := range engines {
		zero[e.name] = e.cost("")
		line += fmt.Sprintf(" %11s", e.name)
	}
	m.Log(line)
	for _, list := range kindsOfFetch {
		line := fmt.Sprintf("%-50s", list)
		args, err := Parse(list)
		if err != nil {
			m.Fatal(err)
		}
		for _, e := range engines {
			// For symstr, kernels up to 6.12 write a zero 511 bytes behind the text, which is sooner or later someone else's memory.
			if e.name == "legacy" && (!m.has(args) || args[0].Type.Base == SymStr) {
				line += fmt.Sprintf(" %11s", "-")
				continue
			}
			line += fmt.Sprintf(" %11.1f", e.cost(list)-zero[e.name])
		}
		m.Log(line)
	}
}

// has reports whether the kernel has the arguments.
func (m *meter) has(args []Arg) bool {
	for _, n := range Needs(args, m.kind) {
		if !n.In(m.tr.version) {
			return false
		}
	}
	return true
}

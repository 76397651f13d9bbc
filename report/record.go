// Package report holds the record of a session (what ran, where, with which parameters, and the raw samples), what is
// computed from it, and the writers that show it. Everything that is printed can be recomputed from the record.
package report

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Schema is the version of the record's layout. It rises when a field changes its meaning or goes; a field that is
// added does not raise it, as readers ignore what they do not know.
const Schema = 1

// Unit is the base unit of every elapsed time of a session.
type Unit string

const (
	// Nanoseconds of the kernel's monotonic clock.
	Nanoseconds Unit = "ns"
	// Instructions of an emulated CPU that executes one in each nanosecond of its clock. Rates are then events in
	// 1e9 instructions. Such a number is never a time.
	Instructions Unit = "insn"
)

// Record is all that one invocation measured.
type Record struct {
	Schema  int       `json:"schema"`
	Session Session   `json:"session"`
	Results []*Result `json:"results"`
}

// Session says where, when and how the results of a record came about.
type Session struct {
	Tool  string    `json:"tool"`           // version of bench
	Args  []string  `json:"args"`           // the command line, without the program's name
	Unit  Unit      `json:"unit"`           // of every elapsed time in the record
	Start time.Time `json:"start,omitzero"` // zero in exact mode
	Plan  Plan      `json:"plan"`
	// Hosts are the kernels that were measured: one, or each of several guests.
	Hosts       []Host    `json:"hosts"`
	Warnings    []Warning `json:"warnings,omitempty"` // of the machine, when the session began
	Interrupted bool      `json:"interrupted,omitempty"`
}

// Plan is how every configuration of the session is measured.
type Plan struct {
	Duration uint64 `json:"duration"` // of measuring a configuration, over all its runs, in the session's unit
	Warmup   uint64 `json:"warmup"`   // likewise, before measuring
	Runs     int    `json:"runs"`     // fresh set-ups of a configuration
	Seed     uint64 `json:"seed"`     // of the order of the runs in each round
}

// Host holds the facts of a machine and its kernel that bear on a measurement. An empty field was not to be found.
type Host struct {
	Kernel      string            `json:"kernel"`                // release: uname -r
	Build       string            `json:"build,omitempty"`       // uname -v
	Arch        string            `json:"arch"`                  // uname -m
	CPUModel    string            `json:"cpu_model,omitempty"`   // as the kernel names it
	CPUs        int               `json:"cpus"`                  // online
	Memory      uint64            `json:"memory,omitempty"`      // bytes
	Hypervisor  string            `json:"hypervisor,omitempty"`  // such as "kvm"; empty on bare metal
	Accel       string            `json:"accel,omitempty"`       // of a guest that bench booted: "kvm" or "tcg"
	ClockSource string            `json:"clocksource,omitempty"` // of the kernel's monotonic clock
	Governor    string            `json:"governor,omitempty"`    // of frequency scaling
	SMT         string            `json:"smt,omitempty"`         // state of simultaneous multithreading
	JIT         string            `json:"jit,omitempty"`         // "on", "off", or "always on"
	Mitigations map[string]string `json:"mitigations,omitempty"` // of each CPU vulnerability that the kernel knows
}

// Status is how a result ended.
type Status string

const (
	OK          Status = "ok"
	Skipped     Status = "skipped"     // this kernel cannot run it; Reason says why
	Failed      Status = "failed"      // Reason is the error
	Interrupted Status = "interrupted" // by the user, before all its runs were done
)

// Result is one benchmark with one set of parameters.
type Result struct {
	Benchmark string    `json:"benchmark"`
	Op        string    `json:"op"`               // what is counted, such as "lookup"
	Form      Form      `json:"form,omitempty"`   // of the line that the kernel's own bench has for it
	Params    []Param   `json:"params"`           // in the benchmark's order
	Facts     []Param   `json:"facts,omitempty"`  // what follows from Params or is known from the set-up; one with a unit reads "6 % full"
	Varied    []string  `json:"varied,omitempty"` // names of the parameters that a sweep varies
	Producers int       `json:"producers"`
	Consumers int       `json:"consumers"`
	Pinned    bool      `json:"pinned"`         // every producer was bound to a CPU of its own
	Host      int       `json:"host,omitempty"` // index into Session.Hosts
	Status    Status    `json:"status"`
	Reason    string    `json:"reason,omitempty"`
	Warnings  []Warning `json:"warnings,omitempty"`
	Runs      []*Run    `json:"runs"`
}

// SetFacts adds what the set-up has found out; a fact of the same name is replaced.
func (r *Result) SetFacts(facts ...Param) {
	for _, p := range facts {
		if i := slices.IndexFunc(r.Facts, func(f Param) bool { return f.Name == p.Name }); i >= 0 {
			r.Facts[i] = p
		} else {
			r.Facts = append(r.Facts, p)
		}
	}
}

// Param is a parameter of a benchmark, or a fact that follows from its parameters.
type Param struct {
	Name  string `json:"name"`
	Value any    `json:"value"`          // a number or a string
	Unit  string `json:"unit,omitempty"` // such as "%"
	Note  string `json:"note,omitempty"` // the value in words, such as the names of flags
}

// Text is p's value as people read it: with its unit and its note.
func (p Param) Text() string {
	s := fmt.Sprint(p.Value)
	if f, ok := p.Value.(float64); ok {
		s = strconv.FormatFloat(f, 'f', -1, 64) // Sprint would give 1e+06
	}
	if p.Unit != "" {
		s += " " + p.Unit
	}
	if p.Note != "" {
		s += " (" + p.Note + ")"
	}
	return s
}

// Warning is something that makes a number less good than it looks.
type Warning struct {
	What   string `json:"what"`
	Remedy string `json:"remedy"` // the flag or the action to try
}

func (w Warning) String() string { return w.What + ": " + w.Remedy }

// Form says which line of the kernel's own bench a result has, beside those that all results have.
type Form string

const (
	FormNone       Form = ""           // none: a line for each CPU, as all results have
	FormHits       Form = "hits"       // Summary: hits … M/s, drops …, total operations …
	FormThroughput Form = "throughput" // Summary: throughput … M ops/s, latency … ns/op
	FormSlow       Form = "slow"       // the same in K ops/s and ms/op
	FormFalseHits  Form = "false_hits" // Summary: … false hits of … total operations
	FormStorage    Form = "storage"    // Summary: hits throughput …, hits latency …, important_hits throughput …
	FormCreates    Form = "creates"    // Summary: creates … k/s
	FormMemory     Form = "memory"     // Summary: per-prod-op … k/s, memory usage … MiB, peak memory usage … MiB
	FormGrace      Form = "grace"      // SUMMARY tasks_trace grace period latency avg … us
	FormTiming     Form = "timing"     // NAME: median … ns/op, stddev …, p99 …
)

// Gauge is something that was measured in a run beside its operations, such as the memory in use.
type Gauge struct {
	Name  string  `json:"name"` // such as "memory_peak"; letters of other alphabets than a-z, 0-9 and _ are not in it
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"` // such as "B" or "%"; none for a number of things
}

// Run is a fresh set-up of a configuration and what was measured on it.
type Run struct {
	Round int    `json:"round"` // counts from 0
	Setup uint64 `json:"setup"` // elapsed while setting up
	// Samples are of the operation with its loop; Twin are of the same loop without the operation.
	Samples []Sample `json:"samples"`
	Twin    []Sample `json:"twin,omitempty"`
	Gauges  []Gauge  `json:"gauges,omitempty"` // in the benchmark's order
}

// Sample is one timed batch, or one tick of a counter.
type Sample struct {
	Worker  int    `json:"worker"`           // the producer, from 0
	CPU     int    `json:"cpu"`              // where the batch ran; -1 for a counter of a worker that was not pinned
	Start   uint64 `json:"start"`            // since the run's measuring began
	Elapsed uint64 `json:"elapsed"`          // time that the operations took
	Ops     uint64 `json:"ops"`              // operations done, counted where they were done
	Drops   uint64 `json:"drops,omitempty"`  // operations whose outcome was lost
	Misses  uint64 `json:"misses,omitempty"` // operations that did not find what they should
}

// Rate is the sample's operations in 1e9 units of elapsed time: events a second, or events in 1e9 instructions.
// It is 0 where nothing was done or no time passed.
func (s Sample) Rate() float64 {
	if s.Ops == 0 || s.Elapsed == 0 {
		return 0
	}
	return float64(s.Ops) * 1e9 / float64(s.Elapsed)
}

// Writer shows a session as it goes on. The record that it is given first grows while the session lasts.
type Writer interface {
	// Begin is called before the first run, with the results that are to come and no runs in them.
	Begin(rec *Record) error
	// Run is called after each run, with the result that it was added to as its last.
	Run(rec *Record, result int) error
	// End is called once, when nothing more comes.
	End(rec *Record) error
}

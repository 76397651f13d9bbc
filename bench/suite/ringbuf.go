package suite

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/consumers"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/report"
)

func init() {
	const timing = "Read at ticks, by the clock of this process: how many records the program has written, which all arrive, as is checked " +
		"in the end, and how many it dropped for lack of room. In it are the call that triggers the program, once in --rb-batch-cnt records, " +
		"and, as far as it slows the writing down, the consumer."
	const rest = " Of a record that is longer than eight bytes, eight are written, or all are copied with --rb-use-output. With " +
		"--rb-bench-producer nothing is read, and what is checked is that the buffer has got each record."
	ring := []func() error{hook("ringbuf"), kernel.RawTracepoint}
	perf := []func() error{kernel.RawTracepoint, func() error { return kernel.Helper(ebpf.RawTracepoint, asm.FnPerfEventOutput) }}
	for _, b := range []*harness.Benchmark{
		{Name: "rb-lib", Aliases: []string{"rb-libbpf"}, Requires: ring, Timing: timing + rest,
			Summary: "Writes records into a ring buffer, from BPF, and reads them by the library's reader, which copies each.",
			New:     func() harness.Config { return &bufferConfig{ring: true} }},
		{Name: "rb-custom", Requires: ring, Timing: timing + rest,
			Summary: "Writes records into a ring buffer, from BPF, and reads them where they are mapped.",
			New:     func() harness.Config { return &bufferConfig{ring: true, custom: true} }},
		{Name: "pb-lib", Aliases: []string{"pb-libbpf"}, Requires: perf, Timing: timing,
			Summary: "Writes records into the perf buffer of the CPU, from BPF, and reads them by the library's reader, which copies each.",
			New:     func() harness.Config { return &bufferConfig{} }},
		{Name: "pb-custom", Requires: perf, Timing: timing,
			Summary: "Writes records into the perf buffer of the CPU, from BPF, and reads them where they are mapped.",
			New:     func() harness.Config { return &bufferConfig{custom: true} }},
	} {
		b.Op, b.Form = "record", report.FormHits
		b.Producers = harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber}
		b.Consumers = harness.Workers{Default: 1, Max: 1}
		harness.Register(b)
	}
}

// bufferConfig is the parameters of the benchmarks of ring and perf buffers.
type bufferConfig struct {
	ring   bool // a ring buffer, and not perf buffers
	custom bool // read by this project's reader, and not the library's

	b2b, useOutput, sampled, overwrite, benchProducer bool

	batchCnt, sampleRate, size, recordSize uint64
	trigger                                trigger
}

const (
	// minRecord is what the program writes of a record, maxRecord what goes into a perf buffer, whose records have a size of 16 bits.
	minRecord, maxRecord = 8, 1 << 15
	// maxBatch keeps the verifier, which follows each record of a batch, within its limit of 8192 branches that wait for it; and
	// maxNotified a call at about 20 ms, where each record of a perf buffer notifies the consumer.
	maxBatch, maxNotified = 4000, 2000
	maxBytes              = 1 << 30
)

var bufferTriggers = []trigger{triggerAuto, triggerFentry, triggerTP, triggerTestRun}

func (c *bufferConfig) Flags(fs *pflag.FlagSet) {
	fs.BoolVar(&c.b2b, "rb-b2b", false, "back to back: the consumer triggers the next batch when it has read the last one")
	fs.BoolVar(&c.useOutput, "rb-use-output", false, "write by bpf_ringbuf_output, which copies, and not by reserve and submit; ring buffers only")
	number.Var(fs, &c.batchCnt, "rb-batch-cnt", 500, "records written at each trigger")
	fs.BoolVar(&c.sampled, "rb-sampled", false, "notify the consumer once in --rb-sample-rate records")
	number.Var(fs, &c.sampleRate, "rb-sample-rate", 500, "records of a notification, with --rb-sampled")
	fs.BoolVar(&c.overwrite, "rb-overwrite", false, "overwrite the oldest records when there is no room; only with --rb-bench-producer (rb-lib)")
	fs.BoolVar(&c.benchProducer, "rb-bench-producer", false, "write and never notify, with no consumer; only with --rb-overwrite (rb-lib)")
	size, of := uint64(512<<10), "the ring buffer"
	if !c.ring {
		size, of = uint64(128*os.Getpagesize()), "the perf buffer of a CPU"
	}
	number.Var(fs, &c.size, "rb-size", size, "bytes of "+of+": a power of two, of whole pages")
	number.Var(fs, &c.recordSize, "rb-record-size", 8, "bytes of a record")
	c.trigger.bind(fs, bufferTriggers...)
}

func (c *bufferConfig) Resolve() error {
	errs := []error{
		c.checkBatch(),
		number.Within("rb-sample-rate", c.sampleRate, 1, 1<<31-1),
		number.Within("rb-record-size", c.recordSize, minRecord, maxRecord),
		c.checkSize(), c.checkKind(), c.checkProducer(),
		c.trigger.check(bufferTriggers...),
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, c.checkRoom())
	}
	return errors.Join(errs...)
}

// checkSize refuses sizes that no buffer can have.
func (c *bufferConfig) checkSize() error {
	page := uint64(os.Getpagesize())
	if bits.OnesCount64(c.size) == 1 && c.size >= page && c.size <= maxBytes {
		return nil
	}
	nearest := strconv.FormatUint(max(page, min(maxBytes, c.size)), 10)
	if c.size > page && c.size < maxBytes {
		below := uint64(1) << (bits.Len64(c.size) - 1)
		nearest = fmt.Sprintf("%d and %d", below, 2*below)
	}
	return fmt.Errorf("--rb-size=%d: must be a power of two times the page (%d bytes), up to 1G: the nearest is %s", c.size, page, nearest)
}

// checkBatch refuses batches that take long.
func (c *bufferConfig) checkBatch() error {
	if !c.ring && !c.sampled && c.batchCnt > maxNotified {
		return fmt.Errorf("--rb-batch-cnt=%d: must be up to %d, as each record of a perf buffer notifies the consumer: lower it, or add --rb-sampled",
			c.batchCnt, maxNotified)
	}
	return number.Within("rb-batch-cnt", c.batchCnt, 1, maxBatch)
}

// checkKind refuses what is for ring buffers only, or for those that the library reads.
func (c *bufferConfig) checkKind() error {
	var errs []error
	refuse := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(!c.ring && c.useOutput, "--rb-use-output: perf buffers have no other way of writing: leave it out")
	refuse(!c.ring && c.overwrite, "--rb-overwrite: is for ring buffers: take rb-lib")
	refuse(!c.ring && c.benchProducer, "--rb-bench-producer: is for ring buffers: take rb-lib")
	refuse(c.ring && c.custom && c.benchProducer, "--rb-bench-producer: without a consumer, none is rb-custom's: take rb-lib")
	return errors.Join(errs...)
}

// checkProducer refuses what does not go with a producer alone, or only with one.
func (c *bufferConfig) checkProducer() error {
	var errs []error
	refuse := func(is bool, why string) {
		if is {
			errs = append(errs, errors.New(why))
		}
	}
	refuse(c.benchProducer && c.b2b, "--rb-b2b: with --rb-bench-producer there is no consumer that could trigger: leave one of them out")
	refuse(c.benchProducer && c.sampled, "--rb-sampled: with --rb-bench-producer there is no consumer to notify: leave one of them out")
	refuse(c.ring && c.benchProducer && !c.overwrite, "--rb-bench-producer: without a consumer, the buffer fills and all else is dropped: add --rb-overwrite")
	refuse(c.ring && c.overwrite && !c.benchProducer, "--rb-overwrite: records would be overwritten before the consumer has read them: add --rb-bench-producer")
	return errors.Join(errs...)
}

// checkRoom refuses what would write nothing, or what would never notify the consumer.
func (c *bufferConfig) checkRoom() error {
	room := c.room()
	switch {
	case room == 0:
		return fmt.Errorf("--rb-record-size=%d: does not fit into --rb-size=%d: lower it or raise that", c.recordSize, c.size)
	case c.sampled && c.sampleRate > room:
		return fmt.Errorf("--rb-sample-rate=%d: would never be reached, as --rb-size=%d has room for %d records of --rb-record-size=%d: "+
			"lower it or raise --rb-size", c.sampleRate, c.size, room, c.recordSize)
	case c.sampled && c.b2b && c.batchCnt < c.sampleRate:
		return fmt.Errorf("--rb-batch-cnt=%d: with --rb-b2b --rb-sampled, the consumer waits for --rb-sample-rate=%d records, and no other batch comes "+
			"before it has read this one: raise it, or lower that", c.batchCnt, c.sampleRate)
	}
	return nil
}

// room is how many records an empty buffer has room for, at least. It is never filled to the last byte.
func (c *bufferConfig) room() uint64 {
	if c.ring {
		return (c.size - 1) / consumers.RecordSize(int(c.recordSize))
	}
	// What was lost before is written first, in a record of its own.
	return (c.size - 1 - consumers.PerfLostSize) / consumers.PerfRecordSize(int(c.recordSize))
}

// Workers bounds the number of producers and consumers.
func (c *bufferConfig) Workers() (producers, consumers harness.Workers) {
	producers = harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber}
	consumers = harness.Workers{Min: 1, Default: 1, Max: 1, Why: "as one reads all records"}
	if c.b2b {
		producers.Max, producers.Why = 1, "with --rb-b2b, as the consumer triggers"
	}
	if c.benchProducer {
		consumers = harness.Workers{Why: "with --rb-bench-producer"}
	}
	return producers, consumers
}

func (c *bufferConfig) Params() []report.Param {
	yes := func(name string, is bool) report.Param {
		return report.Param{Name: name, Value: strconv.FormatBool(is)}
	}
	params := []report.Param{
		yes("rb-b2b", c.b2b),
		{Name: "rb-batch-cnt", Value: c.batchCnt},
		yes("rb-sampled", c.sampled),
		{Name: "rb-sample-rate", Value: c.sampleRate},
		{Name: "rb-size", Value: c.size},
		{Name: "rb-record-size", Value: c.recordSize},
		{Name: "trigger", Value: string(c.trigger)},
	}
	if c.ring {
		params = append(params, yes("rb-use-output", c.useOutput), yes("rb-overwrite", c.overwrite), yes("rb-bench-producer", c.benchProducer))
	}
	return params
}

func (c *bufferConfig) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *bufferConfig) FlagValues() map[string][]string {
	return map[string][]string{"trigger": names(bufferTriggers)}
}

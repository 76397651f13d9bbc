package suite

import (
	"strings"

	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/producers"
	"bpfbench/report"
)

// uprobe is a benchmark of a user probe. It has no parameters.
type uprobe struct {
	name string
	site uprobeSite
	by   attachment
	ret  bool // the probe is on the function's return
}

// attachment is what puts a program on a probe.
type attachment string

const (
	byPerf  attachment = "perf event"
	byMulti attachment = "uprobe_multi link" // it can have many probes; here it has one
	byUSDT  attachment = "USDT"              // what libraries take for USDT probes: the link, where the kernel has it
)

// uprobeSite is an instruction to put a probe on.
type uprobeSite struct {
	producers.Site
	name    string
	words   string
	needs   string      // of a kernel that takes a probe there, where some refuse
	rewrite bool        // some kernels rewrite the instruction into a call
	behind  uint64      // bytes from the begin of its function
	or      *uprobeSite // what is probed where the kernel refuses this one
}

var (
	siteNop  = uprobeSite{Site: producers.Nop, name: "nop", words: "a nop of the least length, which the kernel skips"}
	sitePush = uprobeSite{Site: producers.Push, name: "push", words: "a push of the frame pointer, which the kernel emulates"}
	siteRet  = uprobeSite{Site: producers.Ret, name: "ret", words: "a return, which the CPU executes in another place, as a single step (on x86-64)"}
	siteNop5 = uprobeSite{Site: producers.Nop5, name: "nop5", rewrite: true,
		words: "a nop of 5 bytes, which some kernels rewrite into a call and others single-step"}
	siteNop10 = uprobeSite{Site: producers.Nop10, name: "nop10", rewrite: true, needs: "one that rewrites it into a call",
		words: "a nop of 10 bytes, which some kernels rewrite into a call and others refuse"}

	siteUSDTNop   = uprobeSite{Site: producers.NopNop10, name: "nop", words: "a nop", rewrite: true}
	siteUSDTNop10 = uprobeSite{Site: producers.NopNop10, name: "nop10", rewrite: true, behind: 1, or: &siteUSDTNop,
		words: "a nop of 10 bytes, or on the nop before it where the kernel refuses that"}
)

// maxProbing is MAX_PRODUCERS of the program.
const maxProbing = 8192

func init() {
	for _, site := range []uprobeSite{siteNop, sitePush, siteRet, siteNop5, siteNop10} {
		registerUprobe(uprobe{name: "trig-uprobe-" + site.name, site: site, by: byPerf})
		registerUprobe(uprobe{name: "trig-uprobe-multi-" + site.name, site: site, by: byMulti})
		registerUprobe(uprobe{name: "trig-uretprobe-" + site.name, site: site, by: byPerf, ret: true})
		registerUprobe(uprobe{name: "trig-uretprobe-multi-" + site.name, site: site, by: byMulti, ret: true})
	}
	registerUprobe(uprobe{name: "trig-usdt-nop", site: siteNop, by: byUSDT})
	registerUprobe(uprobe{name: "trig-usdt-nop10", site: siteUSDTNop10, by: byUSDT})

	harness.RegisterSuite(&harness.Suite{
		Name:    "uprobes",
		Ladder:  true,
		Summary: "User probes and USDT probes, by the instruction that they are on, beside a call and a system call without a probe.",
		Lines: func(bool) (lines [][]string) {
			for name := range strings.FieldsSeq("usermode-count syscall-count uprobe-nop uprobe-push uprobe-ret uprobe-nop5 uprobe-nop10 " +
				"uretprobe-nop uretprobe-push uretprobe-ret uretprobe-nop5 uretprobe-nop10 usdt-nop usdt-nop10") {
				lines = append(lines, []string{"trig-" + name})
			}
			return lines
		},
	})
}

func registerUprobe(u uprobe) {
	harness.Register(&harness.Benchmark{
		Name:    u.name,
		Op:      "hit",
		Summary: u.summary(),
		Timing: "Timed in user space: a loop of calls of the probed function, some ms of it as one batch. Each hit runs a program that counts it, " +
			"and the hits of a batch must be its calls. The same loop with the probe taken away is timed, too, so that the cost of a hit is " +
			"also given net of it. Not timed: attaching. The probe is in this process alone.",
		Form:      report.FormHits,
		Requires:  u.requires(),
		Producers: harness.Workers{Min: 1, Default: 1, Max: maxProbing},
		New:       func() harness.Config { return &u },
	})
}

func (u *uprobe) summary() string {
	switch {
	case u.by == byUSDT:
		// The counter of tracers that such a probe may have changes when one comes or goes, and is nothing to a hit.
		return "Hits a USDT probe, which to the kernel is a uprobe, on " + u.site.words + "; it has no counter of tracers."
	case u.ret:
		return "Hits a return probe of a function whose first instruction is " + u.site.words + "; attached by a " + string(u.by) + "."
	}
	return "Hits a uprobe on " + u.site.words + "; attached by a " + string(u.by) + "."
}

func (u *uprobe) requires() []func() error {
	exists := func() error {
		if u.site.Exists() {
			return nil
		}
		return &kernel.Error{Feature: "a probe on " + u.site.words, Outcome: kernel.Missing, Needs: "x86-64"}
	}
	if u.by == byMulti {
		return []func() error{exists, hasUprobeMulti}
	}
	return []func() error{exists, hasUprobe}
}

var hasUprobe, hasUprobeMulti = hook("uprobe"), hook("uprobe.multi")

func (u *uprobe) Flags(*pflag.FlagSet)            {}
func (u *uprobe) Resolve() error                  { return nil }
func (u *uprobe) Params() []report.Param          { return nil }
func (u *uprobe) Facts() []report.Param           { return nil }
func (u *uprobe) FlagValues() map[string][]string { return nil }

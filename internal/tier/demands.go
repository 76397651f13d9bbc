package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// demand is a test that must pass in guests: to skip it there is a failure.
type demand struct {
	pkg   string // import path, without the module's
	test  string
	since string // the first kernel on which it must, such as "6.12"
}

const (
	kernelPackage = "bpfbench/internal/kernel"
	suitePackage  = "bpfbench/bench/suite"

	fetchargPackage = "bpfbench/fetcharg"
)

// demands are for the kernels that `make kernels` fetches. What a kernel could have, but Debian's does not, is not in it:
// kprobe.multi came with 5.18, and is not in 6.1.
var demands = []demand{
	{kernelPackage, "TestHooks/raw_tp", "6.1"},
	{kernelPackage, "TestHooks/tracepoint", "6.1"},
	{kernelPackage, "TestHooks/fentry", "6.1"},
	{kernelPackage, "TestHooks/kprobe", "6.1"},
	{kernelPackage, "TestHooks/kretprobe", "6.1"},
	{kernelPackage, "TestHooks/kprobe.multi", "6.12"},
	{kernelPackage, "TestHooks/uprobe", "6.1"},
	{kernelPackage, "TestHooks/uprobe.multi", "6.6"},
	{kernelPackage, "TestHooks/kprobe-event", "6.1"},
	{kernelPackage, "TestHooks/kretprobe-event", "6.1"},
	{kernelPackage, "TestHooks/fprobe-event", "6.12"},
	{kernelPackage, "TestHooks/tprobe-event", "6.12"},
	{kernelPackage, "TestHooks/eprobe-event", "6.1"},
	{kernelPackage, "TestHooks/jit-switch", "6.1"},
	{kernelPackage, "TestHooks/cgroup2-memory", "6.1"},
	{kernelPackage, "TestHooks/ringbuf", "6.1"},
	{kernelPackage, "TestHooks/bpf_loop", "6.1"},
	{suitePackage, "TestHashmapTracepoint", "6.1"},
	{suitePackage, "TestFetchargs/kprobe/legacy/3", "6.1"},
	{suitePackage, "TestFetchargs/kprobe/bpf/3", "6.1"},
	{suitePackage, "TestFetchargs/kprobe/interpreted/3", "6.1"},
	{suitePackage, "TestFetchargs/kretprobe/legacy/3", "6.1"},
	{suitePackage, "TestFetchargs/fprobe/legacy/3", "6.12"},
	{suitePackage, "TestFetchargs/fprobe/bpf/3", "6.12"},
	{suitePackage, "TestFetchargs/tprobe/legacy/3", "6.12"},
	{suitePackage, "TestFetchargs/eprobe/legacy/3", "6.1"},
	{suitePackage, "TestFetchargs/eprobe/bpf/3", "6.12"},
	{suitePackage, "TestFetchargs/uprobe/legacy/3", "6.1"},
	{suitePackage, "TestMemoryCgroup", "6.1"},
	{fetchargPackage, "TestKernelCorpus", "6.1"},
	{fetchargPackage, "TestKernelRecords", "6.1"},
	{fetchargPackage, "TestKernelCompileValues", "6.1"},
}

// everyBenchmark is the test that has a part for each benchmark. None may be skipped but on the kernels that partial names.
const everyBenchmark = "TestEveryBenchmark/"

// partial are benchmarks that need not run on all of the kernels, by patterns of path.Match of which the first counts: they
// must run from one kernel on and, where that is not empty, before another.
var partial = []struct{ pattern, from, before string }{
	{"trig-usdt-*", "6.1", ""},
	{"trig-u*-nop10", "7.3", ""},
	{"trig-*-multi*", "6.12", ""},
	{"trig-fmodret", "6.12", ""},
	{"trig-tp", "6.12", ""},
	{"trig-rawtp", "6.12", ""},
	{"bpf-for", "6.12", ""},
	{"bpf-nop", "6.12", ""},
	{"crypto-*", "6.12", ""},
	{"fetcharg-fprobe", "6.12", ""},
	{"fetcharg-tprobe", "6.12", ""},
	{"bpf-rhashmap-*", "7.3", ""},
	{"rhtab-mem", "7.3", ""},
	{"local-storage-tasks-trace", "6.1", "7.0"},
}

// mustRun reports whether a benchmark must run on a kernel.
func mustRun(benchmark, release string) bool {
	for _, p := range partial {
		if matched, err := path.Match(p.pattern, benchmark); err == nil && matched {
			return !older(release, p.from) && (p.before == "" || older(release, p.before))
		}
	}
	return true
}

// unmet says which demands a place does not meet. Of packages that did not run there, nothing is demanded.
func unmet(demands []demand, release string, p *place) []string {
	var missing []string
	for _, d := range demands {
		ran := slices.ContainsFunc(p.suites, func(s *suite) bool { return s.pkg == d.pkg })
		if !ran || older(release, d.since) {
			continue
		}
		switch state, reason := p.state(d.pkg, d.test); state {
		case "pass", "fail", "run": // a failure is one already
		case "skip":
			missing = append(missing, fmt.Sprintf("%s %s was skipped, but must pass on this kernel: %s", d.pkg, d.test, reason))
		default:
			missing = append(missing, fmt.Sprintf("%s %s did not run, but must pass on this kernel", d.pkg, d.test))
		}
	}
	for _, s := range p.suites {
		for _, name := range s.inState("skip") {
			if benchmark, ok := strings.CutPrefix(name, everyBenchmark); ok && s.pkg == suitePackage && mustRun(benchmark, release) {
				missing = append(missing, fmt.Sprintf("%s %s was skipped, but must pass on this kernel: %s", s.pkg, name, s.tests[name].reason()))
			}
		}
	}
	return missing
}

// older reports whether a kernel's release, such as "6.12.9-amd64", is before a version. One that is not known is not.
func older(release, version string) bool {
	major, minor, ok := numbers(release)
	wantMajor, wantMinor, _ := numbers(version)
	return ok && (major < wantMajor || major == wantMajor && minor < wantMinor)
}

func numbers(release string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(strings.ReplaceAll(release, "-", " "), "%d.%d", &major, &minor)
	return major, minor, n == 2
}

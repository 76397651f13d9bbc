package report

import (
	"fmt"
	"slices"
	"strings"
)

// heading writes what is about to be measured: where, with which parameters, and how long it takes.
func heading(p *page, rec *Record) {
	var names []string
	for _, r := range rec.Results {
		if !slices.Contains(names, "'"+r.Benchmark+"'") {
			names = append(names, "'"+r.Benchmark+"'")
		}
	}
	what := "benchmark "
	if len(names) > 1 {
		what = "benchmarks "
	}
	list := separated(names, ",")
	p.line("Setting up " + what + strings.Join(list, " ") + "...")
	for _, h := range rec.Session.Hosts {
		p.pieces(separated(hostFacts(h), ","))
	}
	if note := emulation(&rec.Session); note != "" {
		p.line(note)
	}
	p.pieces(constants(rec.Results))
	p.pieces(separated(plan(rec), ","))
	p.line(strings.ToUpper(what[:1]) + what[1:] + strings.Join(list, " ") + " started.")
}

func hostFacts(h Host) []string {
	facts := []string{strings.TrimSpace("Linux " + h.Kernel + " " + h.Arch)}
	if h.CPUs > 0 {
		facts = append(facts, count(h.CPUs, "CPU"))
	}
	if h.CPUModel != "" {
		facts = append(facts, h.CPUModel)
	}
	switch {
	case h.Accel != "":
		facts = append(facts, "guest under "+h.Accel)
	case h.Hypervisor != "":
		facts = append(facts, "guest under "+h.Hypervisor)
	}
	if h.JIT == "off" {
		facts = append(facts, "JIT off")
	}
	return facts
}

// emulation says what the numbers of an emulated CPU are not.
func emulation(s *Session) string {
	if s.Unit == Instructions {
		return "Exact mode: instructions are counted, and no time is measured."
	}
	for _, h := range s.Hosts {
		if h.Accel == "tcg" {
			return "Emulated by tcg: these times are not those of hardware."
		}
	}
	return ""
}

// constants are the parameters, and behind them the facts, that all the results have in common.
func constants(results []*Result) []string {
	if len(results) == 0 {
		return nil
	}
	var params []string
	for _, q := range results[0].Params {
		if !varies(results, paramsOf, q.Name) {
			params = append(params, q.Name+"="+q.Text())
		}
	}
	facts := factTexts(commonFacts(results))
	if len(params) > 0 && len(facts) > 0 {
		params[len(params)-1] += ";"
	}
	return append(params, separated(facts, ",")...)
}

// commonFacts are the facts that all the results have in common.
func commonFacts(results []*Result) []Param {
	var common []Param
	for _, r := range results {
		for _, q := range r.Facts {
			if _, seen := lookup(common, q.Name); !seen && !factVaries(results, q.Name) {
				common = append(common, q)
			}
		}
	}
	return common
}

// factVaries is varies of a fact, which results that came to nothing need not have: it may be known from the set-up only.
func factVaries(results []*Result, name string) bool {
	have := slices.DeleteFunc(slices.Clone(results), func(r *Result) bool {
		_, ok := lookup(r.Facts, name)
		return !ok && r.Status != "" && r.Status != OK
	})
	return varies(have, factsOf, name)
}

func factTexts(facts []Param) []string {
	var texts []string
	for _, q := range facts {
		texts = append(texts, factText(q))
	}
	return texts
}

// factText writes a fact that has a unit as 6 % full, and another like a parameter.
func factText(p Param) string {
	if p.Unit == "" {
		return p.Name + "=" + p.Text()
	}
	s := bare(p) + " " + p.Unit + " " + p.Name
	if p.Note != "" {
		s += " (" + p.Note + ")"
	}
	return s
}

// bare is the text of p's value alone.
func bare(p Param) string { return Param{Value: p.Value}.Text() }

func paramsOf(r *Result) []Param { return r.Params }
func factsOf(r *Result) []Param  { return r.Facts }

// lookup is the parameter of that name.
func lookup(params []Param, name string) (Param, bool) {
	i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return params[i], true
}

// varies says whether a parameter is for the columns of a table: because it differs, or because a sweep varies it.
func varies(results []*Result, of func(*Result) []Param, name string) bool {
	if len(results) < 2 {
		return false
	}
	first, _ := lookup(of(results[0]), name)
	for _, r := range results {
		q, ok := lookup(of(r), name)
		if !ok || q.Text() != first.Text() || slices.Contains(r.Varied, name) {
			return true
		}
	}
	return false
}

func plan(rec *Record) []string {
	var pieces []string
	pl, elapsed := rec.Session.Plan, wordingOf(rec.Session.Unit).elapsed
	n := uint64(len(rec.Results))
	if n > 1 {
		pieces = append(pieces, count(len(rec.Results), "configuration"))
	}
	if pl.Runs > 0 {
		runs := uint64(pl.Runs)
		s := fmt.Sprintf("%s of %s", count(pl.Runs, "run"), elapsed(float64(pl.Duration/runs)))
		if n > 1 || pl.Runs > 1 {
			s += " each"
		}
		if pl.Warmup > 0 {
			s += fmt.Sprintf(" after %s of warm-up", elapsed(float64(pl.Warmup/runs)))
		}
		pieces = append(pieces, s)
	}
	if w := workers(rec.Results); w != "" {
		pieces = append(pieces, w)
	}
	if total := float64(n) * (float64(pl.Duration) + float64(pl.Warmup)); total > 0 {
		pieces = append(pieces, "about "+elapsed(total)+" in all")
	}
	return pieces
}

// workers says who does the work, if that is the same for all results.
func workers(results []*Result) string {
	if len(results) == 0 {
		return ""
	}
	first := results[0]
	for _, r := range results {
		if r.Producers != first.Producers || r.Consumers != first.Consumers || r.Pinned != first.Pinned {
			return ""
		}
	}
	var s string
	if first.Producers > 0 {
		s = count(first.Producers, "producer")
		if !first.Pinned {
			s += " not"
		}
		s += " pinned"
	}
	if first.Consumers > 0 {
		s = strings.Join(append(strings.Fields(s), "with", count(first.Consumers, "consumer")), " ")
	}
	return s
}

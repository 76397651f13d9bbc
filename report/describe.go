package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// What follows is for packages that show records in other forms, such as plots.

// Text is h as headings have it: Linux 6.12.117 x86_64, 2 CPUs, AMD Ryzen 9 3950X, guest under kvm.
func (h Host) Text() string { return flat(strings.Join(hostFacts(h), ", ")) }

// Number is the value of p, if it is a finite one. Strings are numbers where they are written as such, in any base: 0x40.
func (p Param) Number() (v float64, ok bool) {
	s := bare(p)
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	n, err := strconv.ParseInt(s, 0, 64)
	return float64(n), err == nil
}

// Param is the parameter of that name.
func (r *Result) Param(name string) (p Param, ok bool) { return lookup(r.Params, name) }

// Measured reports whether the samples of r stand for a speed: it was neither skipped nor did it fail.
func (r *Result) Measured() bool { return unfit(r) == "" && Summarize(r).Rate != nil }

// Kernel is the release of the kernel that r ran on, with a number where another kernel of rec has the same release.
func (rec *Record) Kernel(r *Result) string { return kernelOf(rec, r) }

// Common are the parameters and facts that all results of rec have in common, in words.
func (rec *Record) Common() string { return flat(strings.Join(constants(rec.Results), " ")) }

// Varying are the names of the parameters that have several values in rec, of those results that have them: first the
// swept ones, then the others in their order.
func (rec *Record) Varying() []string {
	return slices.DeleteFunc(variedNames(rec.Results, paramsOf), func(name string) bool {
		first, seen := "", false
		for _, r := range rec.Results {
			p, ok := lookup(r.Params, name)
			if ok && seen && p.Text() != first {
				return false
			}
			if ok {
				first, seen = p.Text(), true
			}
		}
		return true
	})
}

// RateUnit and CostUnit are the units of rates and costs of u, unscaled: "events/s" and "ns/op".
func (u Unit) RateUnit() string { return rateUnit(u) }
func (u Unit) CostUnit() string { return costUnit(u) }

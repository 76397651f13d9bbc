package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/number"
)

// setting is one parameter's value at one point of a sweep.
type setting struct{ name, value string }

// maxConfigs bounds the product of the sweeps.
const maxConfigs = 10000

// configurations returns the configurations of b that the flags ask for: one, or each point of the sweeps.
func configurations(b *harness.Benchmark, flags *pflag.FlagSet, sweeps []string) (entries []entry, err error) {
	points, varied, err := sweepPoints(b, sweeps)
	if err != nil {
		return nil, err
	}
	var errs []error
	seen := make(map[string]bool) // as points have mistakes in common
	for _, point := range points {
		cfg, err := configure(b, flags, point)
		if err == nil {
			entries = append(entries, entry{benchmark: b, config: cfg, varied: varied})
			continue
		}
		for _, problem := range flatten(err) {
			if !seen[problem] {
				seen[problem] = true
				errs = append(errs, errors.New(problem))
			}
		}
	}
	return entries, about(b, errors.Join(errs...))
}

// about is err with the name of b in front of each of the errors that it joins.
func about(b *harness.Benchmark, err error) error {
	if err == nil {
		return nil
	}
	var errs []error
	for _, problem := range flatten(err) {
		errs = append(errs, fmt.Errorf("%s: %s", b.Name, problem))
	}
	return errors.Join(errs...)
}

// configure returns one configuration: what is set in flags, and then the settings of a point.
func configure(b *harness.Benchmark, flags *pflag.FlagSet, point []setting) (harness.Config, error) {
	cfg := b.New()
	own := pflag.NewFlagSet(b.Name, pflag.ContinueOnError)
	cfg.Flags(own)
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		if own.Lookup(f.Name) != nil {
			errs = append(errs, own.Set(f.Name, f.Value.String()))
		}
	})
	for _, s := range point {
		errs = append(errs, own.Set(s.name, s.value))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return cfg, cfg.Resolve()
}

// sweepPoints returns the product of the sweeps, the last one changing fastest, and the names of their parameters. Without
// sweeps there is one point that sets nothing.
func sweepPoints(b *harness.Benchmark, sweeps []string) (points [][]setting, varied []string, err error) {
	own := pflag.NewFlagSet(b.Name, pflag.ContinueOnError)
	b.New().Flags(own)
	params := names(own)
	own.SetNormalizeFunc(eitherDash())
	points = [][]setting{nil}
	for _, s := range sweeps {
		name, list, ok := strings.Cut(s, "=")
		f := own.Lookup(name)
		switch {
		case !ok:
			return nil, nil, fmt.Errorf("--sweep=%s: must be PARAM=VALUES, such as nr_entries=4096:65536:4096", s)
		case f == nil:
			return nil, nil, fmt.Errorf("--sweep=%s: %s has no parameter %q; it has %s", s, b.Name, name, strings.Join(params, ", "))
		case slices.Contains(varied, f.Name):
			return nil, nil, fmt.Errorf("--sweep=%s: %s is swept twice", s, f.Name)
		}
		values, err := sweepValues(list)
		if err != nil {
			return nil, nil, fmt.Errorf("--sweep=%s: %w", s, err)
		}
		varied = append(varied, f.Name)
		if len(points)*len(values) > maxConfigs {
			return nil, nil, fmt.Errorf("--sweep=%s: more than %d configurations", s, maxConfigs)
		}
		var product [][]setting
		for _, p := range points {
			for _, v := range values {
				product = append(product, append(slices.Clone(p), setting{f.Name, v}))
			}
		}
		points = product
	}
	return points, varied, nil
}

// sweepValues are the values of a list (1,10,100) or a range (4096:65536:4096, 4:1024:x2).
func sweepValues(list string) ([]string, error) {
	if !strings.Contains(list, ":") {
		values := strings.Split(list, ",")
		if slices.Contains(values, "") {
			return nil, errors.New("a value is empty")
		}
		return values, nil
	}
	numbers, err := number.Range(list)
	values := make([]string, len(numbers))
	for i, n := range numbers {
		values[i] = fmt.Sprint(n)
	}
	return values, err
}

// Package cpuset reads CPU lists as users and the kernel write them, finds the CPUs that this process may run on, and
// binds threads to them.
package cpuset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// Max is the highest CPU number that is taken: no kernel is built for more than 8192 CPUs (NR_CPUS in arch/x86/Kconfig;
// arm64 has 4096).
const Max = 8191

const want = "a list such as 0,2-3 of CPU numbers from 0 to 8191"

// Parse reads a CPU list such as "0,2-3". The CPUs come in ascending order, each once. Whatever is no list of CPU
// numbers from 0 to Max, or names none, is an error that holds the value.
func Parse(s string) ([]int, error) {
	if s == "" {
		return nil, fmt.Errorf("cpu list is empty: want %s", want)
	}
	// The library builds what it is told to, so that it must not see a number that has not been checked. Lists that
	// name a CPU over and over are bounded by the count.
	named := 0
	for item := range strings.SplitSeq(s, ",") {
		n, err := count(item)
		if err != nil {
			return nil, fmt.Errorf("cpu list %q: %w: want %s", shorten(s), err, want)
		}
		if named += n; named > Max+1 {
			return nil, fmt.Errorf("cpu list %q: names more than %d CPUs: want %s", shorten(s), Max+1, want)
		}
	}
	set, err := cpuset.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("cpu list %q: %w: want %s", shorten(s), err, want)
	}
	return set.List(), nil
}

// count returns how many CPUs an item of a list names.
func count(item string) (int, error) {
	if item == "" {
		return 0, errors.New("empty item")
	}
	from, to, isRange := strings.Cut(item, "-")
	first, err := number(from)
	if err != nil {
		return 0, fmt.Errorf("item %q: %w", shorten(item), err)
	}
	if !isRange {
		return 1, nil
	}
	last, err := number(to)
	if err != nil {
		return 0, fmt.Errorf("item %q: %w", shorten(item), err)
	}
	if first > last {
		return 0, fmt.Errorf("item %q: %d is above %d", item, first, last)
	}
	return last - first + 1, nil
}

// number reads a CPU number. It takes digits only, as strconv would accept a sign.
func number(s string) (int, error) {
	if s == "" {
		return 0, errors.New("a number is missing")
	}
	if strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("%q is no number", shorten(s))
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > Max {
		return 0, fmt.Errorf("%s is above %d", shorten(s), Max)
	}
	return int(n), nil
}

// shorten bounds what a message repeats of the input.
func shorten(s string) string {
	const limit = 64
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}

// Format writes CPUs as a list such as "0,2-3", which Parse reads. It is "" for no CPUs.
func Format(cpus []int) string { return cpuset.New(cpus...).String() }

// List is a CPU list that a flag of github.com/spf13/pflag sets. A flag that is given twice keeps the last list.
type List []int

// Set implements pflag.Value.
func (l *List) Set(s string) error {
	cpus, err := Parse(s)
	if err != nil {
		return err
	}
	*l = cpus
	return nil
}

// String implements pflag.Value.
func (l *List) String() string {
	if l == nil {
		return ""
	}
	return Format(*l)
}

// Type implements pflag.Value: the name of the value in a help text.
func (l *List) Type() string { return "cpus" }

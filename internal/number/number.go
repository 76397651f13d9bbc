// Package number reads numbers as users write them: 500, 0x40, 1e6, 64K.
package number

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Parse reads an unsigned number: decimal, hexadecimal after 0x, or with an exponent, and then one of the suffixes K, M
// and G of 1024, 1024² and 1024³, as in the kernel's memparse. All of s is read: what is left over is an error, and so
// are a fraction and a number that does not fit into 64 bits.
func Parse(s string) (uint64, error) {
	digits, factor := s, int64(1)
	if n := len(s); n > 0 {
		if i := strings.IndexByte("kmg", s[n-1]|0x20); i >= 0 {
			digits, factor = s[:n-1], 1<<(10*(i+1))
		}
	}
	value := new(big.Rat)
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "0x"); ok {
		n, err := strconv.ParseUint(hex, 16, 64)
		if err != nil {
			return 0, wrong(s)
		}
		value.SetInt(new(big.Int).SetUint64(n))
	} else if !decimal(digits) {
		return 0, wrong(s)
	} else if _, ok := value.SetString(digits); !ok {
		return 0, wrong(s)
	}
	value.Mul(value, new(big.Rat).SetInt64(factor))
	if !value.IsInt() {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	if !value.Num().IsUint64() {
		return 0, fmt.Errorf("%q is above 2^64-1", s)
	}
	return value.Num().Uint64(), nil
}

// decimal reports whether s is digits, with a fraction and an exponent of up to two digits if need be: longer exponents
// could only ask for numbers that take long to compute and do not fit.
func decimal(s string) bool {
	mantissa, exponent, has := strings.Cut(strings.ToLower(s), "e")
	exponent = strings.TrimPrefix(exponent, "+")
	if has && (len(exponent) > 2 || !allDigits(exponent)) {
		return false
	}
	whole, fraction, has := strings.Cut(mantissa, ".")
	return len(s) <= 40 && allDigits(whole) && (!has || allDigits(fraction))
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func wrong(s string) error {
	return fmt.Errorf("%q is not a number such as 500, 0x40, 1e6 or 64K (K, M, G are 1024, 1024², 1024³)", s)
}

// flag is the pflag.Value of a number.
type flag struct{ n *uint64 }

func (f flag) Set(s string) error {
	n, err := Parse(s)
	if err == nil {
		*f.n = n
	}
	return err
}

func (f flag) String() string { return strconv.FormatUint(*f.n, 10) }
func (f flag) Type() string   { return "number" }

// Value is the pflag.Value that sets *p.
func Value(p *uint64) pflag.Value { return flag{p} }

// Var defines a flag for a number, with its default.
func Var(fs *pflag.FlagSet, p *uint64, name string, value uint64, usage string) {
	*p = value
	fs.Var(Value(p), name, usage)
}

// Within returns an error that names the flag when its value is not from low to high.
func Within(name string, value, low, high uint64) error {
	if value < low || value > high {
		return fmt.Errorf("--%s=%d: must be from %d to %d", name, value, low, high)
	}
	return nil
}

// maxSweep bounds what a range can ask for.
const maxSweep = 10000

var errStep = errors.New("the step must be a number above 0 (4096:65536:4096), or x and a factor above 1 (4:1024:x2)")

// Range reads the values of a sweep: start:stop:step, with the stop included where a step meets it, or start:stop:xFACTOR.
func Range(s string) ([]uint64, error) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return nil, fmt.Errorf("%q is not start:stop:step", s)
	}
	start, err := Parse(parts[0])
	if err != nil {
		return nil, err
	}
	stop, err := Parse(parts[1])
	if err != nil {
		return nil, err
	}
	if start > stop {
		return nil, fmt.Errorf("%q: the start is above the stop", s)
	}
	step, geometric := strings.CutPrefix(parts[2], "x")
	by, err := Parse(step)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", s, errStep)
	}
	if by == 0 || geometric && (by == 1 || start == 0) {
		return nil, fmt.Errorf("%q: %w", s, errStep)
	}
	var values []uint64
	for v := start; ; {
		if len(values) == maxSweep {
			return nil, fmt.Errorf("%q has more than %d values", s, maxSweep)
		}
		values = append(values, v)
		next := v + by
		if geometric {
			next = v * by
		}
		if next > stop || next < v || geometric && next/by != v {
			return values, nil
		}
		v = next
	}
}

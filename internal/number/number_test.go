package number

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The values of case 6: a number is read whole or refused.
func TestParse(t *testing.T) {
	for s, want := range map[string]uint64{
		"0": 0, "500": 500, "0x40": 64, "0X4f": 79, "1e6": 1000000, "1E6": 1000000, "1e+3": 1000, "1.5e3": 1500, "64K": 65536,
		"64k": 65536, "1.5K": 1536, "2M": 2 << 20, "1G": 1 << 30, "0x10K": 16384, "010": 10, "18446744073709551615": 1<<64 - 1,
	} {
		if got, err := Parse(s); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "16x", "x16", "-1", "+1", "1.5", "0x", "0xg", "1e", "1e-3", "1e999999999", "K", "1KK", "1 000", " 1", "1_000",
		"18446744073709551616", "1e20", "99999999999G", "0x1ffffffffffffffff", "1/2", "inf", "NaN", ".5", "5."} {
		if got, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", s, got)
		} else if s != "" && !strings.Contains(err.Error(), strconv.Quote(s)) {
			t.Errorf("Parse(%q): the error does not name the value: %v", s, err)
		}
	}
}

func TestRange(t *testing.T) {
	for s, want := range map[string][]uint64{
		"4096:16384:4096": {4096, 8192, 12288, 16384}, "1:4:2": {1, 3}, "5:5:1": {5}, "4:64:x2": {4, 8, 16, 32, 64}, "1K:3K:1K": {1024, 2048, 3072},
		"1:18446744073709551615:x18446744073709551615":   {1, 1<<64 - 1},
		"18446744073709551615:18446744073709551615:1":    {1<<64 - 1},
		"9223372036854775808:18446744073709551615:x3":    {1 << 63},
		"18446744073709551614:18446744073709551615:0xff": {1<<64 - 2},
	} {
		if got, err := Range(s); err != nil || !slices.Equal(got, want) {
			t.Errorf("Range(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "1", "1:2", "1:2:3:4", "2:1:1", "1:2:0", "1:2:x1", "0:8:x2", "a:2:1", "1:b:1", "1:2:c", "1:2:x", "0:18446744073709551615:1"} {
		if got, err := Range(s); err == nil {
			t.Errorf("Range(%q) = %d, want an error", s, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0x40", "1e6", "64K", "1.5K", "16x", "1e99", "999999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(strconv.FormatUint(n, 10)); err != nil || again != n {
			t.Errorf("Parse(%q) = %d, which reads back as %d, %v", s, n, again, err)
		}
	})
}

func FuzzRange(f *testing.F) {
	f.Add("4096:65536:4096")
	f.Add("4:1024:x2")
	f.Fuzz(func(t *testing.T, s string) {
		values, err := Range(s)
		if err == nil && (len(values) == 0 || !slices.IsSorted(values)) {
			t.Errorf("Range(%q) = %d", s, values)
		}
	})
}

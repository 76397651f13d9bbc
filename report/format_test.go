package report

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFormatElapsed(t *testing.T) {
	for _, tt := range []struct {
		v            float64
		time, instrs string
	}{
		{0, "0ns", "0 insn"},
		{1.5, "1.5ns", "1.5 insn"},
		{85, "85ns", "85 insn"},
		{999.4, "999ns", "999 insn"},
		{999.6, "1us", "1K insn"},
		{1500, "1.5us", "1.5K insn"},
		{9949, "9.9us", "9.9K insn"},
		{9951, "10us", "10K insn"},
		{250e3, "250us", "250K insn"},
		{999.6e3, "1ms", "1M insn"},
		{19.4e6, "19ms", "19M insn"},
		{333333333, "333ms", "333M insn"},
		{1.234e9, "1.2s", "1.2G insn"},
		{96e9, "96s", "96G insn"},
		{5400e9, "5400s", "5400G insn"},
	} {
		if got := formatTime(tt.v); got != tt.time {
			t.Errorf("%v: %s, want %s", tt.v, got, tt.time)
		}
		if got := formatInstructions(tt.v); got != tt.instrs {
			t.Errorf("%v: %s, want %s", tt.v, got, tt.instrs)
		}
	}
}

func TestFixed(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", -0.001: "0.00", -0.006: "-0.01", 1234.567: "1234.57"} {
		if got := fixed(v, 2); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestScaleOf(t *testing.T) {
	for rate, want := range map[float64]string{0: "0.000M", 50e6: "50.000M", 1e5: "0.100M", 99999: "99.999K", 100: "0.100K", 99.5: "99.500", 0.25: "0.250"} {
		if got := scaleOf(rate).text(rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}

func TestParamText(t *testing.T) {
	for want, p := range map[string]Param{
		"65536":            {Value: 65536},
		"1000000":          {Value: 1e6},
		"6.25 %":           {Value: 6.25, Unit: "%"},
		"0x40 (zero_seed)": {Value: "0x40", Note: "zero_seed"},
		"70000000000":      {Value: json.Number("70000000000")},
	} {
		if got := p.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFactText(t *testing.T) {
	for want, p := range map[string]Param{
		"6 % full":               {Name: "full", Value: 6, Unit: "%"},
		"1.5 MiB memory (whole)": {Name: "memory", Value: 1.5, Unit: "MiB", Note: "whole"},
		"preallocated=yes":       {Name: "preallocated", Value: "yes"},
	} {
		if got := factText(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPieces(t *testing.T) {
	long := strings.Repeat("x", 2*columns)
	for _, tt := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"nothing", nil, ""},
		{"short", []string{"a", "b c"}, "a b c\n"},
		{"not inside a piece", []string{long[:70], "map_flags=0x40 (zero_seed)"}, long[:70] + "\n  map_flags=0x40 (zero_seed)\n"},
		{"just fits", []string{long[:78], "y", "z"}, long[:78] + " y\n  z\n"},
		{"inside a long piece", []string{"a", long[:60] + " " + long[:60]}, "a " + long[:60] + "\n  " + long[:60] + "\n"},
		{"never inside a word", []string{"a", long, "b"}, "a\n  " + long + "\n  b\n"},
		{"counts letters", []string{strings.Repeat("±", 78), "y"}, strings.Repeat("±", 78) + " y\n"},
		{"clean", []string{" percpu\x1b[1m\tx\nproblem:\ny\r\n z "}, "percpu [1m x; problem: y; z\n"},
	} {
		var p page
		p.pieces(tt.pieces)
		if p.String() != tt.want {
			t.Errorf("%s:\n%q, want\n%q", tt.name, p.String(), tt.want)
		}
	}
}

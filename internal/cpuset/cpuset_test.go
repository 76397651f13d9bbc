package cpuset

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var _ pflag.Value = (*List)(nil)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []int
	}{
		{"0", []int{0}},
		{"0,2-3", []int{0, 2, 3}},
		{"3,1,2", []int{1, 2, 3}},
		{"1,1-2,2", []int{1, 2}},
		{"7-7", []int{7}},
		{"007", []int{7}},
		{"8191", []int{8191}},
	} {
		got, err := Parse(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Parse(%q) = %v, %v; want %v", c.in, got, err, c.want)
		}
	}
	if got, err := Parse("0-8191"); err != nil || len(got) != 8192 {
		t.Errorf("Parse(0-8191): %d CPUs, %v; want 8192", len(got), err)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ in, say string }{
		{"", "empty"},
		{",", "empty item"},
		{"1,", "empty item"},
		{"1,,2", "empty item"},
		{"5-2", "5 is above 2"},
		{"-1", "missing"},
		{"1-", "missing"},
		{"1--2", "no number"},
		{"1-2-3", "no number"},
		{"+1", "no number"},
		{"0x1", "no number"},
		{" 1", "no number"},
		{"1;2", "no number"},
		{"all", "no number"},
		{"8192", "above 8191"},
		{"0-8192", "above 8191"},
		{"0-4000000000", "above 8191"},
		{"99999999999999999999999999", "above 8191"},
		{"0-8191,0", "more than 8192"},
	} {
		got, err := Parse(c.in)
		if err == nil {
			t.Errorf("Parse(%q) = %v, want an error", c.in, got)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, c.say) || !strings.Contains(msg, "0,2-3") || !strings.Contains(msg, c.in) {
			t.Errorf("Parse(%q): %q: want %q, the value and what is expected in it", c.in, msg, c.say)
		}
	}
	if _, err := Parse(strings.Repeat("x", 1<<20)); err == nil || len(err.Error()) > 500 {
		t.Errorf("a long list makes an error of %d bytes", len(err.Error()))
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		in   []int
		want string
	}{
		{nil, ""},
		{[]int{0}, "0"},
		{[]int{5, 0, 2, 3}, "0,2-3,5"},
	} {
		if got := Format(c.in); got != c.want {
			t.Errorf("Format(%v) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestList(t *testing.T) {
	var l List
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.Var(&l, "cpus", "")
	if got := flags.Lookup("cpus").DefValue; got != "" {
		t.Errorf("default is %q, want none", got)
	}
	if err := flags.Parse([]string{"--cpus=4-5", "--cpus=1,0"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(l, []int{0, 1}) || l.String() != "0-1" {
		t.Errorf("got %v (%s), want the last list given", l, l.String())
	}
	if err := flags.Parse([]string{"--cpus=9-8"}); err == nil {
		t.Error("9-8 was taken")
	}
	if !slices.Equal(l, []int{0, 1}) {
		t.Errorf("an error changed the list to %v", l)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "0,2-3", "5-2", "", "8191", "0-4000000000", "1,,2", "-1", "0-8191,7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := Parse(s)
		if err != nil {
			if cpus != nil {
				t.Errorf("Parse(%q) gives CPUs and an error", s)
			}
			return
		}
		if len(cpus) == 0 || cpus[0] < 0 || cpus[len(cpus)-1] > Max {
			t.Fatalf("Parse(%q) = %v", s, cpus)
		}
		for i := 1; i < len(cpus); i++ {
			if cpus[i-1] >= cpus[i] {
				t.Fatalf("Parse(%q) = %v: not ascending", s, cpus)
			}
		}
		again, err := Parse(Format(cpus))
		if err != nil || !slices.Equal(again, cpus) {
			t.Errorf("Parse(%q) = %v, and %v again, %v", s, cpus, again, err)
		}
	})
}

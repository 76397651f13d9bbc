package report

import (
	"fmt"
	"strconv"
	"strings"
)

// wording is how a session's unit is spoken of. That of instructions has no word of time in it.
type wording struct {
	rate    string // after a rate and its letter
	cost    string // after a cost of one operation
	elapsed func(float64) string
	per     string // what rates are in, where they are short
	micro   string // 1000 units
	milli   string // 1e6 units
}

func wordingOf(u Unit) wording {
	if u == Instructions {
		return wording{rate: "events per 1e9 insn", cost: "insn/op", elapsed: formatInstructions,
			per: "1e9 insn", micro: "K insn", milli: "M insn"}
	}
	return wording{rate: "events/sec", cost: "ns/op", elapsed: formatTime, per: "s", micro: "us", milli: "ms"}
}

// formatTime writes nanoseconds as 85ns, 250us, 19ms or 1.2s: two to four digits, as there is no use for more of them
// in the length of a batch.
func formatTime(ns float64) string { return scale(ns, "ns", "us", "ms", "s") }

// formatInstructions writes a number of instructions as 850 insn, 19M insn or 1.2G insn.
func formatInstructions(n float64) string { return scale(n, "", "K", "M", "G") + " insn" }

// scale writes v with the first of units, each a thousand of the one before, in which it stays below a thousand.
func scale(v float64, units ...string) string {
	digits := func() string {
		if v < 9.95 {
			return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
		}
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	for len(units) > 1 && v >= 999.5 {
		v, units = v/1000, units[1:]
	}
	return digits() + units[0]
}

// rateScale is what rates are divided by, and the letter of that.
type rateScale struct {
	by     float64
	letter string
}

// scaleOf is the scale of rates of which largest is the greatest: millions, unless three decimals of those would not tell slow
// operations apart.
func scaleOf(largest float64) rateScale {
	switch {
	case largest <= 0 || largest >= 1e5:
		return rateScale{1e6, "M"}
	case largest >= 100:
		return rateScale{1e3, "K"}
	}
	return rateScale{1, ""}
}

// cell writes a rate with three decimals, text with the letter behind it.
func (s rateScale) cell(rate float64) string { return fixed(rate/s.by, 3) }
func (s rateScale) text(rate float64) string { return s.cell(rate) + s.letter }

// unit is that of a column of cells.
func (s rateScale) unit(words wording) string { return s.letter + "/" + words.per }

// fixed writes v with a number of decimals, and nothing as -0.
func fixed(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}

// plusMinus writes a mean and one standard deviation, in the same form; the mean alone where fewer than two values
// stand behind it.
func plusMinus(n int, mean, stddev float64, form func(float64) string) string {
	if n < 2 {
		return form(mean)
	}
	return form(mean) + " ± " + form(stddev)
}

func decimals(n int) func(float64) string {
	return func(v float64) string { return fixed(v, n) }
}

// count writes n things: 1 run, 2 runs.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

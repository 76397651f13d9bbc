package report

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// columns is the width that text is laid out for.
const columns = 80

// page is text as it is put together. People filter it by `grep cpu`, so that these letters are in the lines of single
// CPUs' results and in no other, unless it says percpu_hash or the like: those come by cpuLine, all else by line or pieces.
type page struct{ strings.Builder }

// cpuLine adds a line of one CPU's result.
func (p *page) cpuLine(s string) {
	p.WriteString(s)
	p.WriteByte('\n')
}

// line adds s, wrapped between words.
func (p *page) line(s string) { p.pieces([]string{s}) }

// pieces adds what is to stand in a row, with spaces between, wrapped between pieces where possible, and inside one only
// where it is longer than a line. A word is never cut. Lines that continue one are indented.
func (p *page) pieces(pieces []string) {
	if len(pieces) == 0 {
		return
	}
	const indent = "  "
	room := columns
	start := true // of a line
	put := func(s string) {
		n := utf8.RuneCountInString(s)
		switch {
		case start:
		case n+1 > room:
			p.WriteString("\n" + indent)
			room = columns - len(indent)
		default:
			p.WriteByte(' ')
			room--
		}
		p.WriteString(s)
		room -= n
		start = false
	}
	for _, piece := range pieces {
		piece = clean(piece)
		if utf8.RuneCountInString(piece) <= columns-len(indent) {
			put(piece)
			continue
		}
		for word := range strings.FieldsSeq(piece) {
			put(word)
		}
	}
	p.WriteByte('\n')
}

// clean makes s, which may be anything that a kernel, an error or a file says, fit for a line that is not a CPU's result:
// without line breaks and control characters, and with CPU in capitals where a word begins with it.
func clean(s string) string { return wordCPU.ReplaceAllString(flat(s), "CPU") }

var wordCPU = regexp.MustCompile(`\bcpu`)

// flat is s without line breaks and control characters.
func flat(s string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(s)) {
		if b.Len() > 0 && !strings.ContainsAny(b.String()[b.Len()-1:], ",:;") {
			b.WriteByte(';')
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.TrimSpace(line))
	}
	return printable(b.String())
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// separated puts sep behind each of the pieces but the last.
func separated(pieces []string, sep string) []string {
	for i := range pieces[:max(len(pieces)-1, 0)] {
		pieces[i] += sep
	}
	return pieces
}

package fetcharg

import (
	"fmt"
	"strings"
)

// Error says what is wrong with an argument, and where.
type Error struct {
	Col  int    // in the text that was parsed, in bytes from 1; 0 if the argument does not come from a text
	Text string // what is there; may be empty
	Arg  string // the whole argument
	Msg  string // what was expected, or why it cannot be
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Col > 0 {
		fmt.Fprintf(&b, "column %d: ", e.Col)
	}
	b.WriteString(e.Arg)
	if e.Text != "" && e.Text != e.Arg {
		fmt.Fprintf(&b, ": %q", e.Text)
	}
	b.WriteString(": " + e.Msg)
	return b.String()
}

package fetcharg

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Dump writes the program as text: what it is, where the fields of its record are, and its instructions, with a comment on
// those that begin an argument.
func (c *Compiled) Dump(w io.Writer) error {
	b := bufio.NewWriter(w)
	spec := c.Spec.Programs[ProgramName]
	fmt.Fprintf(b, "%v program for a %v, record %v\n\n", spec.Type, c.event.Kind, c.record)
	fmt.Fprintf(b, "record of %d bytes\n%6d: u64 faults[%d]\n", c.Layout.Size, 0, c.Layout.Faults)
	for _, f := range c.Layout.Fields {
		fmt.Fprintf(b, "%6d: %s\n", f.Offset, f.describe())
	}
	for _, err := range c.Skipped {
		fmt.Fprintf(b, "left out: %v\n", err)
	}
	fmt.Fprintf(b, "\n%d instructions\n", spec.Instructions.Size()/8)
	fmt.Fprintf(b, "%v", spec.Instructions)
	return b.Flush()
}

// describe is a field as a declaration of C.
func (f LayoutField) describe() string {
	array := ""
	if f.Len > 0 {
		array = fmt.Sprintf("[%d]", f.Len)
	}
	decl := f.Type + " " + f.Name + array
	switch {
	case f.Room > 0:
		decl = fmt.Sprintf("struct { u32 len; char text[%d]; } %s%s", f.Room, f.Name, array)
	case f.Type == "char":
		decl = fmt.Sprintf("char %s[%d]", f.Name, f.Size)
	}
	return fmt.Sprintf("%s = %s", decl, strings.TrimSpace(f.Arg.body()))
}

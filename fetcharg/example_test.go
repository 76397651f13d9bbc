package fetcharg_test

import (
	"fmt"
	"strings"

	"bpfbench/fetcharg"
)

// A list of arguments is read, checked for a kind of probe, and made into the line that defines the event.
func Example() {
	args, err := fetcharg.Parse("a=$arg2 b=+0x0(+0x0($arg1)):u32 name=$retval:string")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := fetcharg.Check(args, fetcharg.Fprobe); err != nil {
		fmt.Println(err)
	}
	event := fetcharg.Event{Kind: fetcharg.Fprobe, Group: "mine", Name: "compare", Target: "bpf_strncmp", Args: args[:2]}
	line, err := event.Definition()
	fmt.Println(line, err)
	for _, need := range event.Needs() {
		fmt.Println(need)
	}
	// Output:
	// column 38: name=$retval:string: "$retval": an fprobe has no returned value: expected a return probe
	// f:mine/compare bpf_strncmp a=$arg2 b=+0(+0($arg1)):u32 <nil>
	// fprobe events (CONFIG_FPROBE_EVENTS): kernels have it since 6.5
}

// Parse says what it expected, and where.
func ExampleParse() {
	_, err := fetcharg.Parse(`a=%di b=+8(%si:u32 c=\"two words"`)
	fmt.Println(err)
	// Output:
	// column 15: b=+8(%si:u32: expected ), found the type
	// column 27: c=\"two: expected " at the end of the string (which can hold no blank and no colon), found the end
	// column 33: words": "\"": expected nothing more, or : and a type
}

// A record of an event is taken apart with the event's format file, and printed as the kernel prints it.
func ExampleFormat_Decode() {
	format, err := fetcharg.ParseFormat(strings.NewReader(`name: x
ID: 7
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:u32 a;	offset:4;	size:4;	signed:0;
	field:s8 b[2];	offset:8;	size:2;	signed:1;

print fmt: "(%lx) a=0x%x b={%d,%d}", REC->__probe_ip, REC->a, REC->b[0], REC->b[1]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	values, err := format.Decode([]byte{7, 0, 0, 0, 77, 77, 77, 77, 1, 0xff})
	fmt.Printf("x:%s %v\n", fetcharg.FormatLine(values, nil), err)
	// Output: x: a=0x4d4d4d4d b={1,-1} <nil>
}

package fetcharg

import (
	"slices"
	"strings"
	"testing"
)

// valueDifference are arguments of the cases whose values differ by design, or that are not compiled.
type valueDifference struct {
	kinds       []Kind
	args        string
	since, from Version // as in difference
	reason      string
	target      string // the only one that it is about; empty: all
	byChance    bool   // they may be the same
}

func (d valueDifference) holds(v Version, kind Kind) bool {
	return difference{kinds: d.kinds, since: d.since, from: d.from}.holds(v, kind)
}

var ofKernelKinds = []Kind{Kprobe, Kretprobe, Fprobe, FprobeReturn, Tprobe, Eprobe}

// valueDifferences are all that there are between what the kernel records and what compiled programs do.
var valueDifferences = []valueDifference{
	// Faults.
	{Kinds, badNumbers, Version{}, Version{}, "of a number that cannot be read the kernel records what was in the buffer", "", false},
	{[]Kind{Kprobe, Fprobe}, `+u0($arg3):u32 +u0(+0($arg1)):u32`, Version{}, Version{}, "of a number that cannot be read the kernel records what was in the buffer", "", false},
	{ofKernelKinds[:5], `+0($current->comm) this_cpu_read(\16):x8`, v7_3, Version{}, "of a number that cannot be read the kernel records what was in the buffer", "", false},
	{ofKernelKinds, `+0(+0(\0)):string +0(+8(\0)):ustring +0(+0(+0(\8))):string +0(\0):string[2]`, Version{}, Version{}, "of a text behind a pointer that cannot be read the kernel records that of the next argument", "", false},
	{ofUser, `+0(\0):string[2]`, Version{}, Version{}, "of pointers that cannot be read the kernel records what was in the buffer, as places of texts", "", true},
	{ofUser, `\"hello,{x}=y" \"" \"abc" \"abcd" \"abc":string \"one":string \"two":string \"three":string \"four":string \"five":string`, Version{}, Version{}, "the kernel takes its own text for memory of the process, and cannot read it", "", false},

	// Old kernels.
	{[]Kind{Kretprobe}, `$retval`, Version{}, v6_6, "the kernel does not take its type from BTF, and prints it as hexadecimal", "", false},
	{[]Kind{Eprobe}, `$filename $filename:string $filename:ustring +0($filename):string +u0($filename):string +0($filename):ustring +0($filename):u8 +0($filename):u8[4] +u0($filename):x32`,
		Version{}, Version{6, 12}, "the kernel takes the first byte of a char * for the pointer (seen in 6.1)", "syscalls.sys_enter_openat", false},

	// Not compiled.
	{returns, `$arg1`, v6_9, Version{}, "a program at the return does not see the entry", "", false},
	{[]Kind{Kretprobe}, `+0($arg3):u32 dfd +0($arg2):ustring`, v6_9, Version{}, "a program at the return does not see the entry", "", false},
	{[]Kind{Tprobe}, `$stack0 $stack`, v6_5, Version{}, "a raw tracepoint has no registers", "", false},
	{[]Kind{Tprobe}, `$arg2`, v6_5, Version{}, "the tracepoint has no such parameter: the kernel records a register", "", false},
	{[]Kind{Eprobe}, `\"hi"`, v6_10, Version{}, "each engine has the text at another address", "", false},
	{[]Kind{Eprobe}, `$newcomm $newcomm:b4@0/8 $filename:x64 $filename:symstr`, Version{}, Version{}, "each engine has the record at another address", "", false},
	{[]Kind{Eprobe}, `$filename:string[2]`, Version{}, Version{}, "there are no pointers", "", false},
	{[]Kind{Uprobe}, `@+1:u8`, Version{}, Version{}, "where the file is mapped is not known", "", false},
}

// TestValueDifferences: what is in the table is in the cases. (That it differs, TestKernelCompileValues finds.)
func TestValueDifferences(t *testing.T) {
	for _, d := range valueDifferences {
		for _, body := range strings.Fields(d.args) {
			for _, kind := range d.kinds {
				if !slices.ContainsFunc(valueCases, func(c valueCase) bool {
					return c.kind == kind && (d.target == "" || d.target == c.target) && slices.Contains(strings.Fields(c.args), body)
				}) {
					t.Errorf("%v %s: it is in the table of differences, but not in the cases", kind, body)
				}
			}
		}
	}
}

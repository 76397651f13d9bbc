package fetcharg

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// noPos leaves the columns out of a comparison.
var noPos = cmpopts.IgnoreTypes(Pos(0))

func mustParse(t *testing.T, list string) []Arg {
	t.Helper()
	args, err := Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return args
}

// documented are the examples of the kernel's documentation and others of its own. The canonical list is given if it differs.
var documented = []struct {
	kind      Kind
	list      string
	canonical string
}{
	// Documentation/trace/kprobetrace.rst; the registers are those of amd64
	{Kprobe, "dfd=%ax filename=%dx flags=%cx mode=+4($stack)", ""},
	{Kretprobe, "$retval", ""},
	{Kprobe, "+8($stack):x8[8]", ""},
	{Kprobe, "+0(%di):x32[1] a=+0(%di):x32", ""},
	{Kprobe, "+0(%di):string[1] +0(+0(%di)):string", ""},
	{Kprobe, "+u4(%si) +u0(%si):string +0(%si):ustring", ""},
	// fprobetrace.rst
	{Fprobe, "count pos", ""},
	{Fprobe, "$arg*", ""},
	{FprobeReturn, "$retval", ""},
	{Tprobe, "preempt prev_pid=prev->pid next_pid=next->pid", ""},
	{Tprobe, "prev->comm:string", ""},
	{FprobeReturn, "$retval->name:string", ""},
	{FprobeReturn, "+0($retval->name):string", ""},
	{Tprobe, "comm=next->comm:string next->start_time", ""},
	{Tprobe, "next=next->pid vruntime=next->se.vruntime", ""},
	// eprobetrace.rst
	{Eprobe, "prev=$prev_pid:u32 next=$next_pid:u32", ""},
	{Eprobe, "nr=$id filename=+8($args):ustring", ""},
	{Eprobe, "filename=+0($file):ustring", ""},
	// uprobetracer.rst
	{Uprobe, "%ip %ax", ""},
	{Uretprobe, "%ip %ax", ""},
	// the selftest btf_typecast_accepted.tc of 7.3
	{Fprobe, "name=(file)file->f_path.dentry->d_name.name:string", ""},
	{Fprobe, "name=(file)(file)->f_path.dentry->d_name.name:string", "name=(file)file->f_path.dentry->d_name.name:string"},
	{Fprobe, "name=(dentry)((file)file->f_path.dentry)->d_name.name:string", ""},
	{Fprobe, "name=(file,f_path)file->f_mode", ""},
	{FprobeReturn, "name=(file)$retval->f_path.dentry->d_name.name:string", ""},
	{Kprobe, "pid=$current->pid a=(task_struct)$current->pid b=(task_struct,group_leader)$current->pid", ""},
	{Fprobe, "name=(foo_timer_data,timer)t->name:string count=this_cpu_read((foo_timer_data,timer)t->counter)", ""},
	{Fprobe, "ptr=this_cpu_ptr((foo_timer_data,timer)t->counter)", ""},
	// what fetcharg.md says 6.12 accepted
	{Kprobe, `a=%di b=$stack0 c=$stack d=$comm e=\5 f=\"hi" g=@jiffies h=$arg1:x64 i=$arg2:b4@0/32 j=+0($arg3):u8[4] k=$arg1:symbol`, ""},
	{Kprobe, "a=$arg2 b=+0(+0($arg1)):u32 c=+0($arg3):u32", ""},
	{Eprobe, "a=$nonce b=+0(@saved_command_line):u32 c=@linux_banner:u32", ""},
	{Eprobe, "a=$fd b=+u0(+u0($buf)):u32 c=+u0($count):u32", ""},
	{Kprobe, "s1=+0($arg1):string", ""},
	{FprobeReturn, "r=$retval a=$arg2", ""},
}

func TestDocumented(t *testing.T) {
	for _, c := range documented {

		args, err := Parse(c.list)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := check(args, c.kind, true); err != nil && !foreignRegister(err) {
			t.Errorf("%v %s: %v", c.kind, c.list, err)
		}
		want := c.canonical
		if want == "" {
			want = c.list
		}
		if got := Join(args); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// foreignRegister reports whether the registers of another architecture are the only problem.
func foreignRegister(err error) bool {
	for line := range strings.Lines(err.Error()) {
		if !strings.Contains(line, "expected a register of") {
			return false
		}
	}
	return true
}

func TestParse(t *testing.T) {
	di, one := Register{0, "di"}, Type{Base: U8}
	for _, c := range []struct {
		list      string
		want      []Arg
		canonical string
	}{
		{"", nil, ""},
		{" \t\n", nil, ""},
		{"%di\v\f\r x=%di\xa0%di", []Arg{{Expr: di}, {Name: "x", Expr: di}, {Expr: di}}, "%di x=%di %di"},
		{"$arg1 $arg2049 $stack0 $stack", []Arg{{Expr: Param{N: 1}}, {Expr: Param{N: 2049}}, {Expr: StackEntry{N: 0}}, {Expr: StackPointer{}}}, ""},
		{"$arg01 $stack007 $args $arg $stack0x", []Arg{{Expr: Field{Name: "arg01"}}, {Expr: Field{Name: "stack007"}}, {Expr: Field{Name: "args"}}, {Expr: Field{Name: "arg"}}, {Expr: Field{Name: "stack0x"}}}, ""},
		{"$comm $COMM $Comm $retval $current $arg*", []Arg{{Expr: Comm{}}, {Expr: Comm{Upper: true}}, {Expr: Field{Name: "Comm"}}, {Expr: RetVal{}}, {Expr: Current{}}, {Expr: AllParams{}}}, ""},
		{"@10 @0x10 @0xffffffff81000000", []Arg{{Expr: Memory{Addr: 10}}, {Expr: Memory{Addr: 16}}, {Expr: Memory{Addr: 0xffffffff81000000}}}, "@10 @16 @0xffffffff81000000"},
		{"@a.isra.0 @a+8 @a-010 @a+0", []Arg{{Expr: Symbol{Name: "a.isra.0"}}, {Expr: Symbol{Name: "a", Offset: 8}}, {Expr: Symbol{Name: "a", Offset: -8}}, {Expr: Symbol{Name: "a"}}}, "@a.isra.0 @a+8 @a-8 @a"},
		{"@+0x10 @+-1 @++1", []Arg{{Expr: FileMemory{Offset: 16}}, {Expr: FileMemory{Offset: -1}}, {Expr: FileMemory{Offset: 1}}}, "@+16 @+-1 @+1"},
		{`\1 \-1 \+1 \++1 \+-1 \0x7f \18446744073709551615 \-9223372036854775808`, []Arg{{Expr: Imm{Value: 1}}, {Expr: Imm{Value: -1}}, {Expr: Imm{Value: 1}}, {Expr: Imm{Value: 1}}, {Expr: Imm{Value: -1}}, {Expr: Imm{Value: 127}}, {Expr: Imm{Value: -1}}, {Expr: Imm{Value: math.MinInt64}}},
			`\1 \-1 \1 \1 \-1 \127 \-1 \-0x8000000000000000`},
		{`\"" \"a"b" a=\"a=b" \"$x(":string`, []Arg{{Expr: ImmString{}}, {Expr: ImmString{Value: `a"b`}}, {Name: "a", Expr: ImmString{Value: "a=b"}}, {Expr: ImmString{Value: "$x("}, Type: Type{Base: String}}}, ""},
		{"+0(%di) -0(%di) ++8(%di) +-8(%di) +u8(%di) -u8(%di) +u-8(%di) +0X10(%di)", []Arg{{Expr: Deref{Base: di}}, {Expr: Deref{Base: di}}, {Expr: Deref{Offset: 8, Base: di}}, {Expr: Deref{Offset: -8, Base: di}}, {Expr: Deref{User: true, Offset: 8, Base: di}}, {Expr: Deref{User: true, Offset: -8, Base: di}}, {Expr: Deref{User: true, Offset: -8, Base: di}}, {Expr: Deref{Offset: 16, Base: di}}},
			"+0(%di) +0(%di) +8(%di) -8(%di) +u8(%di) -u8(%di) -u8(%di) +16(%di)"},
		{"x=+8(-0x10(%di)):u8", []Arg{{Name: "x", Expr: Deref{Offset: 8, Base: Deref{Offset: -16, Base: di}}, Type: one}}, "x=+8(-16(%di)):u8"},
		{"a->b.c->d a _", []Arg{{Expr: Member{Base: Var{Name: "a"}, Path: []Step{{false, "b"}, {true, "c"}, {false, "d"}}}}, {Expr: Var{Name: "a"}}, {Expr: Var{Name: "_"}}}, ""},
		{"$retval->a $current->a.b", []Arg{{Expr: Member{Base: RetVal{}, Path: []Step{{false, "a"}}}}, {Expr: Member{Base: Current{}, Path: []Step{{false, "a"}, {true, "b"}}}}}, ""},
		{"(s)%di->a (s,t.u)(a->b)->c.d", []Arg{{Expr: Member{Base: Cast{Struct: "s", Base: di}, Path: []Step{{false, "a"}}}}, {Expr: Member{Base: Cast{Struct: "s", Via: []string{"t", "u"}, Base: Member{Base: Var{Name: "a"}, Path: []Step{{false, "b"}}}}, Path: []Step{{false, "c"}, {true, "d"}}}}}, ""},
		{`(s)(@a+8)->a (s)(@a)->a (s)+8(a->b)->c (s)(\-1)->a (s)\1->a`, []Arg{
			{Expr: Member{Base: Cast{Struct: "s", Base: Symbol{Name: "a", Offset: 8}}, Path: []Step{{false, "a"}}}},
			{Expr: Member{Base: Cast{Struct: "s", Base: Symbol{Name: "a"}}, Path: []Step{{false, "a"}}}},
			{Expr: Member{Base: Cast{Struct: "s", Base: Deref{Offset: 8, Base: Member{Base: Var{Name: "a"}, Path: []Step{{false, "b"}}}}}, Path: []Step{{false, "c"}}}},
			{Expr: Member{Base: Cast{Struct: "s", Base: Imm{Value: -1}}, Path: []Step{{false, "a"}}}},
			{Expr: Member{Base: Cast{Struct: "s", Base: Imm{Value: 1}}, Path: []Step{{false, "a"}}}},
		}, `(s)(@a+8)->a (s)@a->a (s)+8(a->b)->c (s)(\-1)->a (s)\1->a`},
		{"this_cpu_read(@a) this_cpu_ptr(+0(a)) this_cpu_ptr (s)this_cpu_ptr(a)->b", []Arg{{Expr: PerCPU{Read: true, Base: Symbol{Name: "a"}}}, {Expr: PerCPU{Base: Deref{Base: Var{Name: "a"}}}}, {Expr: Var{Name: "this_cpu_ptr"}}, {Expr: Member{Base: Cast{Struct: "s", Base: PerCPU{Base: Var{Name: "a"}}}, Path: []Step{{false, "b"}}}}}, ""},
		{"a:u8[0x4] a:b4@0/010 a:b0x8@16/+32[2] a:%pd a:string[64]", []Arg{
			{Expr: Var{Name: "a"}, Type: Type{Base: U8, Len: 4}},
			{Expr: Var{Name: "a"}, Type: Type{Base: BitField, Width: 4, Size: 8}},
			{Expr: Var{Name: "a"}, Type: Type{Base: BitField, Width: 8, Shift: 16, Size: 32, Len: 2}},
			{Expr: Var{Name: "a"}, Type: Type{Base: Dentry}},
			{Expr: Var{Name: "a"}, Type: Type{Base: String, Len: 64}},
		}, "a:u8[4] a:b4@0/8 a:b8@16/32[2] a:%pd a:string[64]"},
	} {
		got, err := Parse(c.list)
		if err != nil {
			t.Errorf("%q: %v", c.list, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, noPos); diff != "" {
			t.Errorf("%q: %s", c.list, diff)
		}
		want := c.canonical
		if want == "" {
			want = strings.TrimSpace(c.list)
		}
		if text := Join(got); text != want {
			t.Errorf("%q: got %q, want %q", c.list, text, want)
		}
	}
}

func TestParseTypes(t *testing.T) {
	for b := U8; b < BitField; b++ {
		args := mustParse(t, "a:"+bases[b].name)
		if args[0].Type.Base != b || args[0].Type.String() != bases[b].name || args[0].Type.ElemSize() != bases[b].size {
			t.Errorf("%s: %+v", bases[b].name, args[0].Type)
		}
	}
}

func TestColumns(t *testing.T) {
	args := mustParse(t, "  ab=+8(-16(%di)):u8[2] (s)+0(b->c)->d")
	var got []int
	for _, a := range args {
		got = append(got, a.Column(), a.TypePos.Column())
		Walk(a.Expr, func(e Expr) bool {
			got = append(got, e.Column())
			return true
		})
	}
	if diff := cmp.Diff([]int{3, 19, 6, 9, 13, 25, 0, 25, 25, 28, 31, 31}, got); diff != "" {
		t.Error(diff)
	}
}

// unreadable are lists, where they cannot be read, and what was expected.
var unreadable = []struct {
	list string
	col  int
	want string
}{
	{"a=%di =%si", 7, "expected a name before ="},
	{"1a=%di", 1, "expected a name"},
	{"a-b=%di", 1, "expected a name"},
	{"é=%di", 1, "expected a name"},
	{`\"a=b"`, 1, "an unnamed string cannot have = in it"},
	{"a=", 3, "expected an expression"},
	{"a=:u8", 3, "expected an expression, found the type"},
	{"a==%di", 3, "expected an expression: %REGISTER"},
	{"a=%di=%si", 6, "expected nothing more, or : and a type"},
	{"a=%", 4, "expected the name of a register, found the end"},
	{"a=%pd:u8 b=%-", 13, "expected the name of a register"},
	{"a=$", 3, "expected $ and a name"},
	{"a=$1", 3, "expected $ and a name"},
	{"$arg+1", 5, "expected nothing more"},
	{"$arg*x", 6, "expected nothing more"},
	{"$stack-1", 7, "expected nothing more"},
	{"a=@", 4, "expected an address, a symbol or +OFFSET after @, found the end"},
	{"a=@0xg", 3, "expected @ and an address of 64 bits"},
	{"a=@018", 3, "expected @ and an address of 64 bits"},
	{"a=@0x10000000000000000", 3, "expected @ and an address of 64 bits"},
	{"a=@-5", 4, "expected an address, a symbol"},
	{"a=@+x", 3, "expected @+ and an offset in the file"},
	{"a=@j+", 5, "expected an offset from the symbol"},
	{"a=@j++8", 5, "expected an offset from the symbol"},
	{"a=@j+-8", 5, "expected an offset from the symbol"},
	{"a=@j+8+8", 5, "expected an offset from the symbol"},
	{"a=@j*8", 5, "expected nothing more"},
	{"a=@j-9223372036854775809", 5, "expected an offset from the symbol"},
	{`a=\`, 3, `expected \ and a number`},
	{`a=\x`, 3, `expected \ and a number`},
	{`a=\08`, 3, `expected \ and a number`},
	{`a=\0x`, 3, `expected \ and a number`},
	{`a=\--1`, 3, `expected \ and a number`},
	{`a=\18446744073709551616`, 3, `expected \ and a number`},
	{`a=\-9223372036854775809`, 3, `expected \ and a number`},
	{`a=\1_000`, 3, `expected \ and a number`},
	{`a=\0b1`, 3, `expected \ and a number`},
	{`a=\"hi`, 7, `expected " at the end of the string`},
	{`a=\"`, 5, `expected " at the end of the string`},
	{`a=\"hi there"`, 7, `expected " at the end of the string`},
	{`a=\"à"`, 6, `expected " at the end of the string`}, // its second byte is a blank to the kernel
	{`a=\"a:b"`, 7, "expected a type"},
	{`a=\"a#b"`, 6, "# starts a comment"},
	{"%di a\x00", 6, "a zero byte ends the text"},
	{`a=+0(\"hi")`, 6, "a string has no address"},
	{"a=+0(%di", 9, "expected ), found the end"},
	{"a=+0(%di:u8", 9, "expected ), found the type"},
	{"a=+0(%di))", 10, "expected nothing more"},
	{"a=+0(%di)junk", 10, "expected nothing more"},
	{"a=+0(b)->c", 8, "expected nothing more"},
	{"a=+0%di", 3, "expected a dereference"},
	{"a=+(%di)", 3, "expected a dereference"},
	{"a=+u(%di)", 3, "expected a dereference"},
	{"a=+uu0(%di)", 3, "expected a dereference"},
	{"a=--5(%di)", 3, "expected a dereference"},
	{"a=-+5(%di)", 3, "expected a dereference"},
	{"a=-u-5(%di)", 3, "expected a dereference"},
	{"a=+08(%di)", 3, "expected a dereference"},
	{"a=+0x10000000000000000(%di)", 3, "expected a dereference"},
	{"a=+5", 5, "expected ( after the offset of a dereference"},
	{"a=+0()", 6, "expected an expression"},
	{"a=+0( %di)", 6, "expected an expression"},
	{"a=b-c", 4, "expected -> and a field"},
	{"a=b.c", 4, "expected -> and a field"},
	{"a=b->", 6, "expected the name of a field, found the end"},
	{"a=b->1c", 6, "expected the name of a field"},
	{"a=b->c..d", 8, "expected the name of a field"},
	{"a=b->c->->d", 9, "expected the name of a field"},
	{"a=b->c-d", 7, "expected ->, . or nothing after a field"},
	{"a=$arg1->b", 8, "expected nothing more"},
	{"a=(s)b", 7, "expected -> and a field of the cast's struct"},
	{"a=(s)b.c", 7, "expected -> and a field of the cast's struct"},
	{"a=(s)(b)", 9, "expected -> and a field of the cast's struct"},
	{"a=(s)->b", 6, "expected a dereference"},
	{"a=(s)@j+8->b", 8, "expected -> and a field of the cast's struct (@SYMBOL+OFFSET needs parentheses"},
	{"a=(s)b->", 9, "expected the name of a field"},
	{"a=()b->c", 4, "expected the name of a struct"},
	{"a=(1)b->c", 4, "expected the name of a struct"},
	{"a=(s,)b->c", 6, "expected the name of a field in the parentheses"},
	{"a=(s,t->u)b->c", 7, "expected ) after the struct of a cast"},
	{"a=(s,t.)b->c", 8, "expected the name of a field in the parentheses"},
	{"a=(s", 5, "expected ) after the struct of a cast"},
	{"a=(s)0->b", 6, "expected an expression"},
	{"a=this_cpu_ptr(%di", 19, "expected ), found the end"},
	{"a=this_cpu_ptr()", 16, "expected an expression"},
	{"a=this_cpu_ptr(%di)x", 20, "expected nothing more"},
	{"a=this_cpu(%di)", 11, "expected nothing more"},
	{"a=%di:", 7, "expected a type"},
	{"a=%di:u128", 7, "expected a type"},
	{"a=%di:u32:u8", 7, "expected a type"},
	{"a=%di:[2]", 7, "expected a type"},
	{"a=%di:u8[2", 11, "expected ] at the end"},
	{"a=%di:u8]2[", 12, "expected ] at the end"},
	{"a=%di:u8[2]x", 12, "expected nothing after the array's length"},
	{"a=%di:u8[2][2]", 12, "expected nothing after the array's length"},
	{"a=%di:u8[0]", 10, "expected an array's length from 1 to 64"},
	{"a=%di:u8[65]", 10, "expected an array's length from 1 to 64"},
	{"a=%di:u8[]", 10, "expected an array's length from 1 to 64"},
	{"a=%di:u8[-4]", 10, "expected an array's length from 1 to 64"},
	{"a=%di:u8[18446744073709551617]", 10, "expected an array's length from 1 to 64"},
	{"a=%di:%pd[2]", 7, "expected a type"},
	{"a=%di:%p", 7, "expected a type"},
	{"a=%di:bool", 7, "expected a type"},
	{"a=%di:b1@0/24", 7, "expected a bit field bWIDTH@SHIFT/SIZE"},
	{"a=%di:b1@/8", 7, "expected a bit field bWIDTH@SHIFT/SIZE"},
	{"a=%di:b@0/8", 7, "expected a bit field bWIDTH@SHIFT/SIZE"},
	{"a=%di:b+4@0/8", 7, "expected a bit field bWIDTH@SHIFT/SIZE"},
	{"a=%di:b4@0/8/8", 7, "expected a bit field bWIDTH@SHIFT/SIZE"},
	{"a=%di:b0@0/8", 7, "expected a bit field of at least one bit inside"},
	{"a=%di:b9@0/8", 7, "expected a bit field of at least one bit inside"},
	{"a=%di:b4@5/8", 7, "expected a bit field of at least one bit inside"},
	{"a=%di:b4@18446744073709551615/8", 7, "expected a bit field of at least one bit inside"},
	{`a=\"` + strings.Repeat("x", 253) + `"`, 3, "too long"},
}

func TestParseErrors(t *testing.T) {
	for _, c := range unreadable {

		_, err := Parse(c.list)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: no error", c.list)
			continue
		}
		if e.Col != c.col || !strings.HasPrefix(e.Msg, c.want) && !strings.Contains(e.Msg, c.want) {
			t.Errorf("%q: got column %d, %q, want column %d, %q", c.list, e.Col, e.Msg, c.col, c.want)
		}
	}
}

// TestParseGoesOn: one bad argument does not hide the others.
func TestParseGoesOn(t *testing.T) {
	args, err := Parse("a=% b=$arg1 c=@")
	if len(args) != 1 || args[0].Name != "b" {
		t.Error(args)
	}
	want := "column 4: a=%: expected the name of a register, found the end\n" +
		"column 16: c=@: expected an address, a symbol or +OFFSET after @, found the end"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = Parse("x=+0(%di)junk:u8")
	if want := `column 10: x=+0(%di)junk:u8: "junk": expected nothing more, or : and a type`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

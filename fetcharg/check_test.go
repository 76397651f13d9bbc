package fetcharg

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// problems returns the columns and messages of the errors that err joins.
func problems(err error) (all []*Error) {
	switch e := err.(type) {
	case nil:
	case *Error:
		all = append(all, e)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, problems(err)...)
		}
	default:
		all = append(all, &Error{Msg: err.Error()})
	}
	return all
}

// checked are lists with the one problem that they have in probes of the kinds.
var checked = []struct {
	kinds []Kind
	list  string
	col   int // of the only problem; 0: there is none
	want  string
}{
	{Kinds, ``, 0, ""},
	{Kinds, `\1 \"x" $comm @8 +0(@8):u8 a=@8:string[2]`, 0, ""},
	{[]Kind{Kprobe, Kretprobe, Uprobe, Uretprobe}, "a=%REG", 0, ""},
	{[]Kind{Kprobe, Kretprobe, Uprobe, Uretprobe}, "a=+0(%zz)", 6, "expected a register of " + runtime.GOARCH},
	{[]Kind{Fprobe, FprobeReturn, Tprobe}, "a=%REG", 3, "has no registers: expected $argN or the name of a parameter"},
	{[]Kind{Eprobe}, "a=%REG", 3, "an eprobe has no registers: expected $FIELD"},
	{[]Kind{Kprobe, Kretprobe, Fprobe, FprobeReturn, Tprobe}, "$arg1 a=$arg2048 $arg*", 0, ""},
	{[]Kind{Uprobe, Uretprobe}, "x=$arg1", 3, "does not know the function's parameters"},
	{[]Kind{Uprobe}, "$arg*", 1, "a uprobe does not know any parameters"},
	{[]Kind{Eprobe}, "$arg*", 1, "an eprobe does not know any parameters"},
	{[]Kind{Kprobe}, "a=$arg0", 3, "expected a parameter from $arg1 to $arg2048"},
	{[]Kind{Kprobe}, "a=$arg2049", 3, "expected a parameter from $arg1 to $arg2048"},
	{[]Kind{Kprobe}, "a=$arg*", 3, "expected it alone"},
	{[]Kind{Kprobe}, "$arg*:u8", 1, "expected it alone"},
	{[]Kind{Kprobe}, "+0($arg*)", 4, "expected it alone"},
	{[]Kind{Kprobe}, "$arg* a=\\1 $arg*", 12, "expected it once: argument 1 is the same"},
	{[]Kind{Kprobe}, "$foo", 1, "a kprobe has no such variable: expected $comm, $stack, $stackN, $argN or $current"},
	{[]Kind{Uretprobe}, "$foo", 1, "a uretprobe has no such variable: expected $comm, $stack, $stackN or $retval"},
	{[]Kind{Eprobe}, "$foo $arg1 $retval $stack $stack3 $current $comm foo", 0, ""},
	{[]Kind{Kretprobe, FprobeReturn, Uretprobe}, "$retval", 0, ""},
	{[]Kind{Kprobe, Fprobe, Tprobe, Uprobe}, "a=+0($retval)", 6, "has no returned value: expected a return probe"},
	{[]Kind{Kprobe, Fprobe}, "$stack2049", 1, "expected an entry of the stack from 0 to 2048"},
	{[]Kind{Uprobe}, "$stack4294967296", 1, "expected an entry of the stack from 0 to 4294967295"},
	{[]Kind{Uprobe}, "$current", 1, "a uprobe has no access to the task_struct"},
	{[]Kind{Uprobe}, "@jiffies", 1, "a uprobe has no access to symbols of the kernel"},
	{[]Kind{Kprobe, Eprobe}, "@+8", 1, "has no file"},
	{[]Kind{Uprobe, Uretprobe}, "@+8", 0, ""},
	{[]Kind{Uprobe}, "a=b", 3, "a uprobe has no parameters by name"},
	{[]Kind{Uprobe}, "(s)%REG->f", 1, "a uprobe has no types: expected no cast"},
	{[]Kind{Uretprobe}, "$retval->f", 1, "a uretprobe knows no structs"},
	{[]Kind{Eprobe}, "f->g", 1, "an event's field points to is not known: expected a cast (STRUCT)f->g"},
	{[]Kind{Eprobe}, "(s)f->g (s)$f->g", 0, ""},
	{[]Kind{Eprobe}, "$a if b", 4, "the begin of a filter"},
	{[]Kind{Eprobe}, "$if a=if", 0, ""},
	{[]Kind{Fprobe}, "if", 0, ""},
	{[]Kind{Uprobe, Eprobe}, "this_cpu_ptr(@8)", 1, "has no access to per-CPU variables"},
	{[]Kind{Kprobe}, "this_cpu_ptr($comm)", 14, "the task's name has no address"},
	{[]Kind{Kprobe}, "+0($COMM)", 4, "the task's name has no address"},
	{[]Kind{Eprobe}, "+0($COMM)", 4, "the task's name has no address"},
	{[]Kind{Eprobe}, "+0($comm)", 0, ""},
	{[]Kind{Kprobe}, "+2147483648(@8)", 1, "the lower 32 bits"},
	{[]Kind{Kprobe}, "-2147483648(@8)", 0, ""},
	{[]Kind{Kprobe, Uprobe}, "$comm:u8", 7, "it is a string: expected no type, or string"},
	{[]Kind{Kprobe}, `a=\"x":string[2]`, 8, "it is a string: expected no type, or string"},
	{[]Kind{Eprobe}, `$comm:u8 \"x":u64`, 0, ""},
	{[]Kind{Uprobe}, "@8:symbol", 4, "a uprobe has no symbols"},
	{[]Kind{Uprobe, Eprobe}, "@8:%pd", 4, "cannot have it"},
	{[]Kind{Kprobe}, "$comm:%pd", 7, "it is a string"},
	{[]Kind{Kprobe}, "@8:symstr[2]", 4, "there are no arrays of it"},
	{[]Kind{Kprobe, Fprobe}, "$stack:symstr", 8, "expected a register, an entry of the stack"},
	{[]Kind{Kprobe, Fprobe}, "$arg1:symstr b=$stack0:symstr c=+0($arg1):symstr", 0, ""},
	{[]Kind{Kretprobe, FprobeReturn}, "a=$arg1:symstr", 9, "a parameter (on entry)"},
	{[]Kind{Kprobe}, "a=+u0($arg1):symstr", 14, "memory of the kernel"},
	{[]Kind{Kprobe, Fprobe}, "a=$arg1:string", 9, "text is in memory: expected memory, as of a dereference +0($arg1)"},
	{[]Kind{Kprobe, Fprobe}, "$arg1:string a:string b->c:string", 0, ""},
	{[]Kind{Uretprobe}, "$retval:string", 9, "text is in memory"},
	{[]Kind{Kretprobe}, "$retval:string", 0, ""},
	{[]Kind{Kprobe, Uprobe}, "+u0(@8):u8[2]", 9, "an array is in memory of the kernel"},
	{[]Kind{Kprobe, Fprobe}, "$stack0:u8[2]", 9, "an array is in memory of the kernel"},
	{[]Kind{Kprobe}, "+u0(@8):string[2] +0(@8):b4@0/8[2] this_cpu_read(@8):u8[2]", 0, ""},
	{[]Kind{Kprobe}, "common_pid=@8", 1, "every event has a field of this name"},
	{[]Kind{Kprobe}, "common_x=@8 __probe_nargs=@8", 0, ""},
	{[]Kind{Kprobe}, strings.Repeat("a", 33) + "=@8", 1, "a name has 32 bytes at most, and this one 33"},
	{[]Kind{Kprobe}, "a=@8 b=@8 a=@8", 11, "argument 1 has the name a, too"},
	{[]Kind{Kprobe}, "arg2=@8 @8", 9, "argument 1 has the name arg2, too"},
	{[]Kind{Kprobe}, "f=@8 f", 6, "argument 1 has the name f, too"},
	{[]Kind{Kprobe}, "$arg1 $arg1:u8", 7, "argument 1 has the name $arg1, too"},
	{[]Kind{Kprobe}, "arg1=@8 $arg* arg3=@8 @8", 0, ""},
	{[]Kind{Kprobe}, many(128, "@8:u8"), 0, ""},
	{[]Kind{Kprobe}, many(129, "@8:u8"), 1299, "an event has 128 arguments at most, and this is one of 129"},
	{[]Kind{Kprobe}, many(6, "@8:u64[64]"), 0, ""},
	{[]Kind{Kprobe}, many(6, "@8:u64[64]") + " x=@8:u8 y=@8", 85, "need 3073 bytes of the record, and 3072 is the most"},
	{[]Kind{Kprobe}, many(9, "@8:%pd"), 0, ""},
	{[]Kind{Kprobe}, many(12, "@8:%pd"), 97, "more arguments with %pd and %pD than the kernel can replace"},
	{[]Kind{Kprobe}, nest(14, `\0`), 0, ""},
	{[]Kind{Kprobe}, nest(15, `\0`), 1, "too much is inside each other"},
	{[]Kind{Kprobe}, nest(14, `\0`) + ":u8[2]", 1, "too much is inside each other"},
	{[]Kind{Kprobe}, nest(14, `\0`) + ":b4@0/8", 1, "too much is inside each other"},
	{[]Kind{Kprobe}, nest(12, `@j`), 0, ""},
	{[]Kind{Kprobe}, nest(13, `@j`), 1, "too much is inside each other"},
	{[]Kind{Kprobe}, nest(12, `\0`) + ":%pd", 0, ""},
	{[]Kind{Kprobe}, nest(12, `\0`) + ":%pD", 1, "too much is inside each other"},
	{[]Kind{Kprobe}, nest(8, "$current") + " " + casts(8), 0, ""},
	{[]Kind{Kprobe}, nest(9, "$current"), 1, "too much is inside each other"},
}

func TestCheck(t *testing.T) {
	reg := regs[runtime.GOARCH][0]
	for _, c := range checked {
		args := mustParse(t, strings.ReplaceAll(c.list, "REG", reg))
		for _, kind := range c.kinds {
			got := problems(Check(args, kind))
			switch {
			case c.col == 0 && len(got) > 0:
				t.Errorf("%v %s: %v", kind, c.list, got)
			case c.col > 0 && (len(got) != 1 || got[0].Col != c.col || !strings.Contains(got[0].Msg, c.want)):
				t.Errorf("%v %s: got %v, want column %d, %s", kind, c.list, got, c.col, c.want)
			}
		}
	}
}

// TestCheckAll: all problems are reported at once, each with its column and its argument.
func TestCheckAll(t *testing.T) {
	err := Check(mustParse(t, "a=$retval b=+0($foo):u8 a=@+8 common_pid=$arg0"), Kprobe)
	want := `column 25: a=@+8: argument 1 has the name a, too
column 31: common_pid=$arg0: "common_pid": every event has a field of this name
column 3: a=$retval: "$retval": a kprobe has no returned value: expected a return probe
column 16: b=+0($foo):u8: "$foo": a kprobe has no such variable: expected $comm, $stack, $stackN, $argN or $current
column 27: a=@+8: "@+8": a kprobe has no file: expected @ADDRESS or @SYMBOL
column 42: common_pid=$arg0: "$arg0": expected a parameter from $arg1 to $arg2048`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	var e *Error
	if !errors.As(err, &e) || e.Arg != "a=@+8" {
		t.Error(e)
	}
	if err := Check(nil, Kind(99)); err == nil || err.Error() != "check arguments: there is no kind 99" {
		t.Error(err)
	}
}

// TestCheckMade: arguments that were not parsed are checked for what cannot be written.
func TestCheckMade(t *testing.T) {
	good := Arg{Name: "a", Expr: Deref{Offset: -8, Base: Param{N: 1}}, Type: Type{Base: U32}}
	if err := Check([]Arg{good}, Kprobe); err != nil {
		t.Error(err)
	}
	for name, a := range map[string]Arg{
		"nothing":      {},
		"name":         {Name: "a b", Expr: Comm{}},
		"string":       {Expr: ImmString{Value: "a b"}},
		"colon":        {Expr: ImmString{Value: "a:b"}},
		"comment":      {Expr: ImmString{Value: "a#b"}},
		"register":     {Expr: Register{Name: "d i"}},
		"variable":     {Expr: Field{Name: "a-b"}},
		"parameter":    {Expr: Var{Name: "1"}},
		"symbol":       {Expr: Symbol{Name: "a+1", Offset: 1}},
		"no symbol":    {Expr: Symbol{Name: ""}},
		"no field":     {Expr: Member{Base: Var{Name: "a"}, Path: []Step{{Name: ""}}}},
		"dot":          {Expr: Member{Base: Var{Name: "a"}, Path: []Step{{Name: "b", Dot: true}}}},
		"cast alone":   {Expr: Cast{Struct: "s", Base: Var{Name: "a"}}},
		"no base":      {Expr: Deref{}},
		"no struct":    {Expr: Member{Base: Cast{Base: Var{Name: "a"}}, Path: []Step{{Name: "b"}}}},
		"inner string": {Expr: Deref{Base: ImmString{Value: "a"}}},
		"bits":         {Expr: Comm{}, Type: Type{Base: BitField, Width: 9, Size: 8}},
		"length":       {Expr: Memory{}, Type: Type{Base: U8, Len: 65}},
		"no type":      {Expr: Memory{}, Type: Type{Len: 2}},
		"dentries":     {Expr: Memory{}, Type: Type{Base: Dentry, Len: 2}},
		"long":         {Expr: Symbol{Name: strings.Repeat("a", 300)}},
	} {
		got := problems(Check([]Arg{a}, Kprobe))
		if len(got) != 1 || !strings.HasPrefix(got[0].Msg, "it cannot be written: ") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTyped(t *testing.T) {
	for _, c := range []struct {
		arg     string
		kind    Kind
		want    Type
		fromBTF bool
	}{
		{"%di", Kprobe, Type{Base: X64}, false},
		{"%di:u8[3]", Kprobe, Type{Base: U8, Len: 3}, false},
		{"$comm", Kprobe, Type{Base: String}, false},
		{"$comm", Eprobe, Type{Base: X64}, false},
		{`\"x"`, Uprobe, Type{Base: String}, false},
		{"$arg1", Fprobe, Type{Base: X64}, true},
		{"a=$arg1", Fprobe, Type{Base: X64}, false},
		{"$retval", Kretprobe, Type{Base: X64}, true},
		{"$retval", Uretprobe, Type{Base: X64}, false},
		{"a", Tprobe, Type{Base: X64}, true},
		{"a", Eprobe, Type{Base: X64}, false},
		{"(s)a->b", Eprobe, Type{Base: X64}, true},
		{"(s)a->b:s8", Eprobe, Type{Base: S8}, false},
	} {
		got, fromBTF := mustParse(t, c.arg)[0].Typed(c.kind)
		if got != c.want || fromBTF != c.fromBTF {
			t.Errorf("%s in %v: %v, %v", c.arg, c.kind, got, fromBTF)
		}
	}
	for _, c := range []struct {
		typ    string
		size   int
		signed bool
		text   bool
	}{{"s16", 2, true, false}, {"x64", 8, false, false}, {"b3@1/32", 4, false, false}, {"symstr", 4, false, true}, {"%pD", 4, false, true}, {"symbol", 8, false, false}, {"char", 1, false, false}} {
		typ := mustParse(t, "a:"+c.typ)[0].Type
		if typ.ElemSize() != c.size || typ.Signed() != c.signed || typ.IsString() != c.text {
			t.Errorf("%v: %d %v %v", typ, typ.ElemSize(), typ.Signed(), typ.IsString())
		}
	}
	if (Type{}).ElemSize() != 8 {
		t.Error("the default type has not 8 bytes")
	}
}

func TestNeeds(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		list string
		want []string
	}{
		{Kprobe, `%di $arg1 a=+0(@j):string b=\5:u8[2] $comm`, nil},
		{Fprobe, "a=$arg1", []string{"fprobe events (CONFIG_FPROBE_EVENTS): kernels have it since 6.5"}},
		{Kprobe, "x=@8:char", []string{"column 6: type char: kernels have it since 6.3"}},
		{Kprobe, "@8:symstr", []string{"column 4: type symstr: kernels have it since 6.1"}},
		{Kprobe, "@8:%pD", []string{"column 4: type %pD: kernels have it since 6.10"}},
		{Kprobe, "a $arg*", []string{"column 1: a parameter by its name: kernels have it since 6.5", "column 3: $arg*: kernels have it since 6.5"}},
		{Kretprobe, "a=$arg1", []string{"column 3: a parameter in a return probe: kernels have it since 6.9"}},
		{Kprobe, "$arg1:string", []string{"column 7: text of a char pointer that BTF knows: kernels have it since 6.6"}},
		{Kprobe, "a->b", []string{"column 1: a field of a struct: kernels have it since 6.6", "column 1: a parameter by its name: kernels have it since 6.5"}},
		{Eprobe, "$a b", []string{"column 4: a field without $: kernels have it since 7.3"}},
		{Kprobe, "$current", []string{"column 1: $current: kernels have it since 7.3"}},
		{Eprobe, "$current", nil},
		{Kprobe, "(s)%di->a", []string{"column 1: a field of a struct: kernels have it since 6.6", "column 1: a cast: kernels have it since 7.3"}},
		{Kprobe, "+0(this_cpu_read(%di))", []string{"column 4: this_cpu_read(…): kernels have it since 7.3"}},
		{Kprobe, "a=" + textOf(64), []string{"column 1: an argument of more than 63 bytes: kernels have it since 7.3"}},
		{Kprobe, nest(9, "%di"), []string{"column 1: more than 8 dereferences inside each other: kernels before 7.3 have it"}},
	} {
		var got []string
		for _, n := range Needs(mustParse(t, c.list), c.kind) {
			got = append(got, n.String())
			if v := (Version{6, 1}); n.In(v) != (n.Until != Version{} || !v.Before(n.Since)) {
				t.Errorf("%v: in %v: %v", n, v, n.In(v))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v %s: %s", c.kind, c.list, diff)
		}
	}
}

func TestVersion(t *testing.T) {
	for release, want := range map[string]Version{"6.12.117+deb13-cloud-amd64": {6, 12}, "7.3": {7, 3}, "6.18.44-fc": {6, 18}, "7.0-rc1": {7, 0}} {
		if got, err := ParseVersion(release); got != want || err != nil {
			t.Errorf("%s: %v, %v", release, got, err)
		}
	}
	if _, err := ParseVersion("linux"); err == nil {
		t.Error("linux is a version")
	}
	if (Version{6, 9}).Before(Version{6, 9}) || !(Version{6, 9}).Before(Version{6, 10}) || !(Version{6, 12}).Before(Version{7, 0}) || (Version{7, 0}).Before(Version{6, 12}) {
		t.Error("versions are not in order")
	}
}

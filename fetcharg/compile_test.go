package fetcharg

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// testTypes are types such as the kernel has.
func testTypes(t *testing.T) *btf.Spec {
	t.Helper()
	integer := func(name string, size uint32, e btf.IntEncoding) *btf.Int {
		return &btf.Int{Name: name, Size: size, Encoding: e}
	}
	u8, s32, u32, u64 := integer("char", 1, btf.Unsigned), integer("int", 4, btf.Signed), integer("unsigned int", 4, btf.Unsigned), integer("u64", 8, btf.Unsigned)
	text := &btf.Pointer{Target: &btf.Const{Type: u8}}
	nameOf := &btf.Struct{Name: "qstr", Size: 16, Members: []btf.Member{
		{Name: "", Type: &btf.Union{Size: 8, Members: []btf.Member{{Name: "hash_len", Type: u64}}}},
		{Name: "name", Type: text, Offset: 64},
	}}
	dentry := &btf.Struct{Name: "dentry", Size: 64, Members: []btf.Member{
		{Name: "d_flags", Type: u32}, {Name: "d_name", Type: nameOf, Offset: 32 * 8},
		{Name: "low", Type: u32, Offset: 56 * 8, BitfieldSize: 3}, {Name: "high", Type: u32, Offset: 56*8 + 3, BitfieldSize: 30},
	}}
	path := &btf.Struct{Name: "path", Size: 16, Members: []btf.Member{{Name: "mnt", Type: text}, {Name: "dentry", Type: &btf.Pointer{Target: dentry}, Offset: 64}}}
	file := &btf.Struct{Name: "file", Size: 128, Members: []btf.Member{
		{Name: "f_mode", Type: &btf.Typedef{Name: "fmode_t", Type: u32}, Offset: 8 * 8}, {Name: "f_path", Type: path, Offset: 64 * 8},
	}}
	task := &btf.Struct{Name: "task_struct", Size: 4096, Members: []btf.Member{
		{Name: "pid", Type: s32, Offset: 1000 * 8}, {Name: "comm", Type: &btf.Array{Type: u8, Index: u32, Nelems: 16}, Offset: 2000 * 8},
	}}
	task.Members = append(task.Members, btf.Member{Name: "parent", Type: &btf.Pointer{Target: task}, Offset: 1008 * 8})
	proto := &btf.FuncProto{Return: s32, Params: []btf.FuncParam{
		{Name: "file", Type: &btf.Pointer{Target: file}}, {Name: "name", Type: text}, {Name: "count", Type: u64}, {Name: "flags", Type: &btf.Const{Type: s32}},
	}}
	none := &btf.FuncProto{Return: &btf.Void{}}
	tracepoint := &btf.FuncProto{Return: &btf.Void{}, Params: []btf.FuncParam{{Name: "__data", Type: &btf.Pointer{Target: &btf.Void{}}}, {Name: "task", Type: &btf.Pointer{Target: task}}, {Name: "nonce", Type: s32}}}
	b, err := btf.NewBuilder([]btf.Type{
		task, file, dentry, &btf.Func{Name: "open", Type: proto, Linkage: btf.StaticFunc}, &btf.Func{Name: "nothing", Type: none, Linkage: btf.StaticFunc},
		&btf.Func{Name: "__probestub_event", Type: tracepoint, Linkage: btf.StaticFunc},
		&btf.Typedef{Name: "btf_trace_old", Type: &btf.Pointer{Target: tracepoint}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := b.Spec()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// testEvent returns an event with the arguments, and options that need no kernel.
func testEvent(t *testing.T, kind Kind, list string) (Event, CompileOptions) {
	t.Helper()
	args, err := Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	e := Event{Kind: kind, Target: "open", Args: args}
	if kind == Tprobe {
		e.Target = "event"
	}
	format, err := ParseFormat(strings.NewReader(switchFormat))
	if err != nil {
		t.Fatal(err)
	}
	return e, CompileOptions{Arch: "amd64", BTF: testTypes(t), Symbols: fakeSymbols, Format: format}
}

// compileTest compiles for amd64, without a kernel.
func compileTest(t *testing.T, kind Kind, list string) *Compiled {
	t.Helper()
	e, opt := testEvent(t, kind, list)
	c, err := Compile(e, opt)
	if err != nil {
		t.Fatalf("%v %s: %v", kind, list, err)
	}
	return c
}

func TestCompileGolden(t *testing.T) {
	const reference = `a=$arg2 b=+0(+0($arg1)):u32 c=+0($arg3):u32`
	for _, c := range []struct {
		name, arch string
		kind       Kind
		record     Record
		loads      bool
		list       string
	}{
		{"reference-amd64", "amd64", Kprobe, RecordRingbuf, false, reference},
		{"reference-arm64", "arm64", Fprobe, RecordNone, false, reference},
		{"loads-amd64", "amd64", Kprobe, RecordRingbuf, true, reference + ` d=this_cpu_read(@x):u8 e=$stack1 f=+0($arg3):char[4] g=+0($arg3):char[3] h=+u0($arg3):u8`},
		{"group-amd64", "amd64", Kprobe, RecordNone, true, `a=file->f_mode b=file->f_path.dentry->d_flags c=file->f_path.mnt d=file->f_path.dentry->low`},
		{"loads-arm64", "arm64", Fprobe, RecordNone, true, reference},
		{"shared-amd64", "amd64", Kprobe, RecordNone, false, `a=+0($arg1) b=+8(+0($arg1)):string c=+0($arg1):b4@2/64 d=this_cpu_read(@x):u8 e=this_cpu_ptr(+0($arg1)) f=$current g=$current->pid`},
		{"uprobe-arm64", "arm64", Uprobe, RecordPerf, true, `a=%x0 b=+0(+0(%x1)):u32 c=+0(%x2):string s=$stack1 n=$comm t=\"hello"`},
		{"eprobe-amd64", "amd64", Eprobe, RecordRingbuf, false, `p=$prev_pid q=$prev_pid:s32 n=$next_comm:string b=$prev_state:b3@1/8`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, opt := testEvent(t, c.kind, "")
			opt.Arch, opt.Record = c.arch, c.record
			if c.loads {
				opt.Loads = &Loads{cast: 1001, structure: 77}
			}
			var err error
			if e.Args, err = Parse(c.list); err != nil {
				t.Fatal(err)
			}
			compiled, err := Compile(e, opt)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := compiled.Dump(&got); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "compile", c.name+".txt")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("go test -update rewrites the file:\n%s", diff)
			}
		})
	}
}

func TestCompileTypes(t *testing.T) {
	for kind, spec := range map[Kind]struct {
		program ebpf.ProgramType
		attach  ebpf.AttachType
	}{
		Kprobe: {ebpf.Kprobe, 0}, Kretprobe: {ebpf.Kprobe, 0}, Fprobe: {ebpf.Kprobe, ebpf.AttachTraceKprobeMulti},
		FprobeReturn: {ebpf.Kprobe, ebpf.AttachTraceKprobeMulti}, Tprobe: {ebpf.RawTracepoint, 0}, Eprobe: {ebpf.TracePoint, 0},
		Uprobe: {ebpf.Kprobe, 0}, Uretprobe: {ebpf.Kprobe, 0},
	} {
		p := compileTest(t, kind, `a=\1`).Spec.Programs[ProgramName]
		if p.Type != spec.program || p.AttachType != spec.attach {
			t.Errorf("%v: program of type %v, attach type %v", kind, p.Type, p.AttachType)
		}
	}
}

// TestCompileBTF: names, types and places that come from BTF.
func TestCompileBTF(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		list string
		want string // the fields of the record as Dump shows them, without their arguments
	}{
		{Kprobe, `$arg*`, "u64 file, u64 name, u64 count, s32 flags"},
		{Kprobe, `$arg4 $arg4:u8 a=$arg4`, "s32 flags, u8 flags, u64 a"},
		{Kprobe, `file->f_mode file->f_path.dentry->d_name.hash_len file->f_path.dentry->low file->f_path.dentry->high`, "u32 arg1, u64 arg2, u32 arg3, u32 arg4"},
		{Kprobe, `name:string n=name:ustring d=file->f_path.dentry:%pd f=file:%pD`,
			"struct { u32 len; char text[128]; } name, struct { u32 len; char text[128]; } n, struct { u32 len; char text[128]; } d, struct { u32 len; char text[128]; } f"},
		{Kretprobe, `$retval r=$retval:u8`, "s32 arg1, u8 r"},
		{Tprobe, `$arg* task->pid p=task->parent->parent->pid c=task->comm:string`, "u64 task, s32 nonce, s32 arg3, s32 p, struct { u32 len; char text[128]; } c"},
		{Kprobe, `c=$current->comm:u8[16] p=$current->parent->pid q=(task_struct)$arg3->pid r=(task_struct,parent)$arg3->pid s=(file)(+0($arg1))->f_mode`, "u8 c[16], s32 p, s32 q, s32 r, u32 s"},
		{Eprobe, `c=$comm n=$prev_comm:string p=(task_struct)$prev_state->pid`, "u64 c, struct { u32 len; char text[128]; } n, s32 p"},
	} {
		e, opt := testEvent(t, c.kind, c.list)
		if e.Args[0].Name == "" && len(e.Args) == 3 && c.list[0] == '$' { // two arguments of one name, which Check refuses
			e.Args[1].Name = "flags"
		}
		compiled, err := Compile(e, opt)
		if err != nil {
			t.Errorf("%v %s: %v", c.kind, c.list, err)
			continue
		}
		var got []string
		for _, f := range compiled.Layout.Fields {
			decl, _, _ := strings.Cut(f.describe(), " = ")
			got = append(got, decl)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%v %s: got  %s\nwant %s", c.kind, c.list, strings.Join(got, ", "), c.want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		list string
		want []string // the lines
	}{
		{Kprobe, `$retval %zz`, []string{`has no returned value`, `expected a register of amd64`}},
		{Kprobe, `nosuch file->nosuch (nosuch)$arg1->x file->f_mode->x count:string`, []string{`column 1: nosuch: open has no such parameter`,
			`column 8: file->nosuch: "nosuch": struct file has no such field`, `there is no struct of this name`, `the field before it is no pointer`, `it is no text`}},
		{Kretprobe, `a=$arg1 b=+0(file)`, []string{`column 3: a=$arg1: cannot be compiled: parameters are gone at the return`, `column 14: b=+0(file): cannot be compiled: parameters are gone`}},
		{Uprobe, `a=@+4 b=%di`, []string{`column 3: a=@+4: cannot be compiled: where the file is mapped is only known in the process`}},
		{Tprobe, `$stack a=$stack1 b=$arg3`, []string{`no stack pointer`, `no stack pointer`, `from $arg1 to $arg2`}},
		{Eprobe, `a=\"x" b=$prev_comm c=$prev_comm:symstr d=$nosuch`, []string{`event sched_switch has no such field`}},
		{Eprobe, `a=\"x" b=$prev_comm c=$prev_comm:symstr d=$prev_comm:string[2] e=+0x20000000($next_comm)`, []string{`the kernel's copy`, `that of a copy`, `that of a copy`, `no array of pointers`, `too far away`}},
		{Kprobe, `a=\5:string[2]`, []string{`there is no array of pointers to text: expected memory`}},
	} {
		e, opt := testEvent(t, c.kind, c.list)
		_, err := Compile(e, opt)
		if err == nil {
			t.Errorf("%v %s: no error", c.kind, c.list)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%v %s: %d errors, expected %d: %v", c.kind, c.list, len(lines), len(c.want), err)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%v %s: got %q, expected %q", c.kind, c.list, lines[i], want)
			}
		}
	}
}

func TestCompileOptions(t *testing.T) {
	for want, change := range map[string]func(*Event, *CompileOptions){
		`architecture "mips"`:   func(_ *Event, o *CompileOptions) { o.Arch = "mips" },
		`room for strings of 8`: func(_ *Event, o *CompileOptions) { o.MaxString = 8 },
		`record 7: expected`:    func(_ *Event, o *CompileOptions) { o.Record = 7 },
		`no kind 99`:            func(e *Event, _ *CompileOptions) { e.Kind = 99 },
		`format of the event`:   func(e *Event, o *CompileOptions) { e.Kind, o.Format = Eprobe, nil },
		`inside a function`:     func(e *Event, _ *CompileOptions) { e.Offset = 8 },
		`129`:                   func(e *Event, _ *CompileOptions) { e.Args = make([]Arg, 129) },
		`address of x is not known: hidden`: func(e *Event, o *CompileOptions) {
			e.Args[0].Expr = Symbol{Name: "x"}
			o.Symbols = func(string) (uint64, error) { return 0, errors.New("hidden") }
		},
	} {
		e, opt := testEvent(t, Kprobe, `a=$arg1`)
		change(&e, &opt)
		if _, err := Compile(e, opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q, got %v", want, err)
		}
	}
	e, opt := testEvent(t, Kprobe, `a=$arg9`)
	opt.Arch = "arm64"
	var unsupported *UnsupportedError
	if _, err := Compile(e, opt); !errors.As(err, &unsupported) || !errors.Is(err, errors.ErrUnsupported) || unsupported.Col != 3 {
		t.Error(err)
	}
}

// TestCompileSkip: what cannot be compiled is left out, and the rest stays, with its names.
func TestCompileSkip(t *testing.T) {
	e, opt := testEvent(t, Uretprobe, `%di @+4 %si a=@+8 b=$retval`)
	opt.SkipUnsupported = true
	c, err := Compile(e, opt)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range c.Layout.Fields {
		names = append(names, f.Name)
	}
	if got := fmt.Sprint(names); got != "[arg1 arg3 b]" || len(c.Skipped) != 2 {
		t.Error(got, c.Skipped)
	}
}

// TestCompileMany: as many arguments as there can be, with a word of faults more than one.
func TestCompileMany(t *testing.T) {
	c := compileTest(t, Kprobe, many(128, `+0(+0($arg1)):u64`))
	if c.Layout.Faults != 2 || c.Layout.Size != 130*8 {
		t.Error(c.Layout.Faults, c.Layout.Size)
	}
	e, opt := testEvent(t, Kprobe, many(10, `+0($arg1):string[64]`))
	opt.SkipUnsupported = true
	c, err := Compile(e, opt)
	if err != nil || c.Layout.Size > math.MaxInt16 || len(c.Layout.Fields) != 3 || len(c.Skipped) != 7 {
		t.Error(err, c)
	}
}

func TestLayoutTiles(t *testing.T) {
	format, err := ParseFormat(strings.NewReader(switchFormat))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []Kind{Kprobe, Uprobe, Eprobe} {
		g := newGenerator(kind, 5, Version{6, 12})
		for range 200 {
			e := randomEvent(g, format, 20)
			c, err := Compile(e, CompileOptions{Arch: "amd64", Format: format, Symbols: fakeSymbols, BTF: testTypes(t), SkipUnsupported: true})
			if err != nil {
				continue
			}
			fields := slices.SortedFunc(slices.Values(c.Layout.Fields), func(a, b LayoutField) int { return a.Offset - b.Offset })
			end := 8 * c.Layout.Faults
			for _, f := range fields {
				elem := f.Size / max(f.Len, 1)
				if f.Type == "char" {
					elem = 4
				}
				if f.Offset != end || f.Offset%min(elem, 8) != 0 {
					t.Fatalf("%s: field %s at %d, expected at %d", Join(e.Args), f.Name, f.Offset, end)
				}
				end += f.Size
			}
			if end != c.Layout.Size {
				t.Fatalf("%s: fields end at %d, the record at %d", Join(e.Args), end, c.Layout.Size)
			}
		}
	}
}

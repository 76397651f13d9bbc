package fetcharg

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// allTypes are arguments of all types that need no function of the kernel.
const allTypes = `u1=\-1:u8 u2=\-1:u16 u4=\-1:u32 u8=\-1:u64 s1=\-1:s8 s2=\-1:s16 s4=\-1:s32 s8=\-1:s64 x1=\-1:x8 x2=\-1:x16 x4=\-1:x32 x8=\-1:x64 ` +
	`def=\0x1234 bits=\0xabcd:b4@4/16 bits64=\-1:b63@1/64 comm=$comm text=\"hello,{x}=y" empty=\"" bad=+0(\0):string stack=$stack entry=$stack1 low=\5:s8`

// recorded are events with what makes them happen. Each is hit at least once.
var recorded = []struct {
	kind    Kind
	target  string // of the kernel
	args    string
	trigger func(*testing.T)
}{
	{Kprobe, "vfs_open", allTypes, openFile},
	{Kprobe, "vfs_open", `a=$arg2 b=+0(+0($arg1)):u32 c=+0($arg1):u32`, openFile}, // the three kinds of fetch of the benchmark
	{Kprobe, "vfs_open", `$arg1 dentry=+8($arg1) name=+0(+0x28(+8($arg1))):string c=+0(+0x28(+8($arg1))):x8[5] array=+0($arg1):x64[2] ret=$stack0:symbol sym=$stack0:symstr no=\5:symbol flags=%flags:x16`, openFile},
	{Kprobe, "do_sys_openat2", `dfd=$arg1:s32 name=+0($arg2):ustring name2=+u0($arg2):string flags=+0($arg3):x64 how=+0($arg3):x64[3] ptrs=+0($arg3):string[2]`, openFile},
	{Kprobe, "vfs_open", `c=+0(+0x28(+8($arg1))):char cc=+0(+0x28(+8($arg1))):char[4] z=\0:char high=\200:char`, openFile},
	{Kprobe, "vfs_open", `$arg* m=path->dentry->d_name.name:string n=$arg2:x64`, openFile},
	{Kprobe, "vfs_open", `p=+8($arg1):%pd`, openFile},
	{Kprobe, "vfs_open", `pid=$current->pid comm=$current->comm:string flags=(file)$arg2->f_flags cpu=this_cpu_ptr(\0)`, openFile},
	{Kretprobe, "do_sys_openat2", `$retval r=$retval:s32 x=$retval:x64 comm=$comm`, openFile},
	{Kretprobe, "do_sys_openat2", `name=+0($arg2):ustring dfd r=$retval:s64`, openFile},
	{Fprobe, "vfs_open", `a=$arg1 b=+0(+0($arg1)):u32 c=+0($arg1):u32 name=+0(+0x28(+8($arg1))):string stack=$stack`, openFile},
	{Fprobe, "vfs_open", `$arg* comm=$comm`, openFile},
	{FprobeReturn, "do_sys_openat2", `r=$retval x=$retval:x32 dfd=$arg1:s32 name=+0($arg2):ustring`, openFile},
	{Tprobe, "sched_switch", `$arg* pid=prev->pid comm=next->comm:string state=$arg4`, func(*testing.T) { time.Sleep(10 * time.Millisecond) }},
	{Eprobe, "syscalls.sys_enter_openat", `dfd=$dfd d=$dfd:s32 nr=$__syscall_nr mode=$mode:x16 comm=$comm:string task=$comm text=\"hi":string bad=+0(\0):string`, openFile},
	{Eprobe, "sched.sched_switch", `pid=$prev_pid:s32 comm=$prev_comm:string c=+0($prev_comm):x8[4] prio=$prev_prio s=$prev_comm:symstr`, func(*testing.T) { time.Sleep(10 * time.Millisecond) }},
	{Uprobe, "", `a=%di b=+0(+0(%si)):u32 c=+0(%dx):u32 s=+0(%dx):string t=+0(%dx):u8[4] v=+0(%dx):ustring w=+0(%si):x64[1] elf=@+1:u8 far=@+0x10:x16 ip=%ip`, callLeaf},
	{Uprobe, "", `a=%di ` + strings.ReplaceAll(allTypes, "stack=$stack ", ""), callLeaf},
	{Uprobe, "", `s=+0(%dx):char[4] t=+1(%dx):char`, callLeaf},
	{Uretprobe, "", `r=%ax comm=$comm text=\"x"`, callLeaf},
}

// opened has a name that is short enough for any buffer.
var opened = filepath.Join(os.TempDir(), fmt.Sprintf("fetcharg_%d", os.Getpid()))

func openFile(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(opened, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := os.Remove(opened); err != nil {
		t.Fatal(err)
	}
}

// What the function that uprobes are on is called with.
const probedA, probedB, probedText = 8, 77, "benchmark\x00"

func callLeaf(*testing.T) { newLeaf().Call(1) }

// TestKernelRecords: decoded records print as the kernel prints them.
func TestKernelRecords(t *testing.T) {
	tr := newTracing(t)
	tr.instance()
	for i, c := range recorded {
		t.Run(fmt.Sprintf("%d-%v", i, c.kind), func(t *testing.T) {
			tr := tr.on(t)
			tr.needs(c.kind)
			if c.kind.User() && runtime.GOARCH != "amd64" {
				t.Skip("the registers are those of amd64")
			}
			args := mustParse(t, c.args)
			for _, n := range Needs(args, c.kind) {
				if !n.In(tr.version) {
					t.Skipf("kernel %v: %v", tr.version, n)
				}
			}
			e := tr.event(c.kind)
			if c.target != "" {
				e.Target = c.target
			}
			e.Args = args
			tr.record(e, c.trigger)
		})
	}
}

// instance makes a ring buffer of our own, which is removed with the test.
func (tr *tracing) instance() {
	tr.t.Helper()
	dir := filepath.Join(tr.dir, "instances", tr.group)
	if err := os.Mkdir(dir, 0o755); err != nil {
		tr.t.Skip(err)
	}
	tr.t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			tr.t.Error(err)
		}
	})
}

// record lets the event happen and compares its records with what the kernel prints.
func (tr *tracing) record(e Event, trigger func(*testing.T)) {
	t := tr.t
	t.Helper()
	if err := tr.write("dynamic_events", mustDefine(t, e)); err != nil {
		t.Fatalf("%s: %v", mustDefine(t, e), err)
	}
	defer func() {
		if err := tr.write("dynamic_events", e.Removal()); err != nil {
			t.Error(err)
		}
	}()
	inInstance := filepath.Join("instances", tr.group)
	for _, step := range []func() error{
		func() error { return tr.write(inInstance+"/tracing_on", "1") },
		func() error { return tr.write(inInstance+"/events/"+e.Group+"/x/enable", "1") },
		func() error { trigger(t); return nil },
		func() error { return tr.write(inInstance+"/events/"+e.Group+"/x/enable", "0") },
		func() error { return tr.write(inInstance+"/tracing_on", "0") },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	format := tr.format(e.Group + "/x")
	symbols, err := readKallsyms()
	if err != nil {
		t.Fatal(err)
	}
	format.Symbols = symbols.text
	cpus, err := filepath.Glob(filepath.Join(tr.dir, inInstance, "per_cpu/cpu*"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, cpu := range cpus {
		n += tr.compare(e, format, cpu)
	}
	if n == 0 {
		t.Error("the event did not happen")
	}
	t.Logf("%d records", n)
}

// compare compares the records of one CPU, and returns their number.
func (tr *tracing) compare(e Event, format *Format, cpu string) int {
	t := tr.t
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cpu, "trace"))
	if err != nil {
		t.Fatal(err)
	}
	var printed []string
	for _, part := range strings.Split(string(text), ": x: (")[1:] {
		_, line, _ := strings.Cut(part, ")")
		line, _, _ = strings.Cut(line, "\n")
		printed = append(printed, line)
	}
	var decoded [][]Value
	for _, record := range rawRecords(t, filepath.Join(cpu, "trace_pipe_raw")) {
		if len(record) < 2 || int(binary.NativeEndian.Uint16(record)) != format.ID {
			continue
		}
		values, err := format.Decode(record)
		if err != nil {
			t.Fatal(err)
		}
		decoded = append(decoded, values)
	}
	if len(printed) != len(decoded) {
		t.Fatalf("%d lines, but %d records", len(printed), len(decoded))
	}
	for i, values := range decoded {
		for _, args := range [][]Arg{nil, e.Args} {
			if got := FormatLine(values, args); got != printed[i] {
				t.Errorf("got  %q\nwant %q", got, printed[i])
			}
		}
	}
	if len(printed) > 0 {
		t.Logf("%s%s", e.Name, printed[0])
	}
	if e.Kind == Uprobe {
		tr.checkProbed(decoded)
	}
	return len(decoded)
}

// checkProbed compares values with what the leaf was called with.
func (tr *tracing) checkProbed(decoded [][]Value) {
	text, _, _ := strings.Cut(probedText, "\x00")
	want := map[string]any{"a": uint64(probedA), "b": uint64(probedB), "c": uint64(binary.LittleEndian.Uint32([]byte(probedText))),
		"elf": uint64('E'), "v": text}
	if tr.version.Before(v6_3) { // 6.1 adds the offset of @+OFFSET twice
		want["elf"] = uint64('L')
	}
	for _, values := range decoded {
		for _, v := range values {
			if w, ok := want[v.Field.Name]; ok && v.Data != w {
				tr.t.Errorf("%s is %v, want %v", v.Field.Name, v.Data, w)
			}
		}
	}
}

// TestPageRecords: a page that was put together by hand.
func TestPageRecords(t *testing.T) {
	page := make([]byte, 16)
	add := func(words ...uint32) {
		for _, w := range words {
			page = binary.NativeEndian.AppendUint32(page, w)
		}
	}
	add(2|7<<5, 0x11, 0x12)  // two words
	add(30|1<<5, 99)         // a time
	add(0|1<<5, 8, 0x21)     // one word, and its length
	add(29|1<<5, 8, 0)       // discarded
	add(1, 0x31)             // one word
	add(29, 0xffffffff, 123) // the end
	binary.NativeEndian.PutUint64(page[8:], uint64(len(page)-16)|1<<31)
	records, err := pageRecords(page)
	if err != nil || len(records) != 3 || len(records[0]) != 8 || records[1][0] != 0x21 || records[2][0] != 0x31 {
		t.Error(records, err)
	}
	if _, err := pageRecords(page[:20]); err == nil {
		t.Error("a page that is cut is read")
	}
	if _, err := pageRecords(nil); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
}

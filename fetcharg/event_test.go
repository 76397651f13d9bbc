package fetcharg

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefinition(t *testing.T) {
	for _, c := range []struct {
		e    Event
		args string
		want string
	}{
		{Event{Kind: Kprobe, Group: "g", Name: "x", Target: "bpf_strncmp"}, "a=$arg2 b=+0x0(+0($arg1)):u32", "p:g/x bpf_strncmp a=$arg2 b=+0(+0($arg1)):u32"},
		{Event{Kind: Kprobe, Group: "g", Name: "x", Target: "mod:func", Offset: 20}, "$stack", "p:g/x mod:func+0x14 $stack"},
		{Event{Kind: Kprobe, Group: "g-1", Name: "x", Target: "0xffffffff81000000"}, "", "p:g-1/x 0xffffffff81000000"},
		{Event{Kind: Kretprobe, Group: "g", Name: "x", Target: "f"}, "$retval", "r:g/x f $retval"},
		{Event{Kind: Fprobe, Group: "g", Name: "x", Target: "f"}, "$arg*", "f:g/x f $arg*"},
		{Event{Kind: FprobeReturn, Group: "g", Name: "x", Target: "f"}, "r=$retval", "f:g/x f%return r=$retval"},
		{Event{Kind: Tprobe, Group: "g", Name: "x", Target: "sched_switch"}, "prev", "t:g/x sched_switch prev"},
		{Event{Kind: Eprobe, Group: "g", Name: "x", Target: "bpf_test_run.bpf_trigger_tp"}, "a=$nonce", "e:g/x bpf_test_run.bpf_trigger_tp a=$nonce"},
		{Event{Kind: Uprobe, Group: "g", Name: "x", Target: "/bin/a:b", Offset: 0x1000}, "@+8", "p:g/x /bin/a:b:0x1000 @+8"},
		{Event{Kind: Uretprobe, Group: "g", Name: "x", Target: "/bin/ä"}, "", "r:g/x /bin/ä:0x0"},
	} {
		c.e.Args = mustParse(t, c.args)
		got, err := c.e.Definition()
		if got != c.want || err != nil {
			t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
		}
	}
	e := Event{Group: "g", Name: "x", Kind: Fprobe}
	if got := e.Removal(); got != "-:g/x" {
		t.Error(got)
	}
	if len(e.Needs()) != 1 {
		t.Error(e.Needs())
	}
}

func TestDefinitionErrors(t *testing.T) {
	ok := Event{Kind: Kprobe, Group: "g", Name: "x", Target: "f"}
	for name, c := range map[string]struct {
		change func(*Event)
		want   string
	}{
		"kind":       {func(e *Event) { e.Kind = 50 }, "define event: there is no kind 50"},
		"group":      {func(e *Event) { e.Group = "g/h" }, "define event g/h/x: expected a group of letters"},
		"no group":   {func(e *Event) { e.Group = "" }, "expected a group of letters"},
		"long group": {func(e *Event) { e.Group = strings.Repeat("g", 64) }, "expected a group of letters"},
		"name":       {func(e *Event) { e.Name = "x\np:g/y f" }, "expected a name of letters"},
		"name -":     {func(e *Event) { e.Name = "x-y" }, "expected a name of letters"},
		"long name":  {func(e *Event) { e.Name = strings.Repeat("x", 64) }, "expected a name of letters"},
		"no target":  {func(e *Event) { e.Target = "" }, `target "": expected a function of the kernel`},
		"target":     {func(e *Event) { e.Target = "f a=%di" }, "expected a function of the kernel"},
		"return":     {func(e *Event) { e.Target = "f%return" }, "expected a function of the kernel"},
		"wildcard":   {func(e *Event) { e.Kind, e.Target = Fprobe, "vfs_*" }, "expected a function of the kernel"},
		"address":    {func(e *Event) { e.Kind, e.Target = Fprobe, "0x10" }, "expected a function of the kernel"},
		"bad hex":    {func(e *Event) { e.Target = "0xg" }, "expected a function of the kernel"},
		"offset":     {func(e *Event) { e.Kind, e.Offset = Fprobe, 4 }, "offset 4: expected none for an fprobe"},
		"retoffset":  {func(e *Event) { e.Kind, e.Offset = Kretprobe, 4 }, "offset 4: expected none for a kretprobe"},
		"tracepoint": {func(e *Event) { e.Kind, e.Target = Tprobe, "sched:sched_switch" }, "expected the name of a tracepoint"},
		"event":      {func(e *Event) { e.Kind, e.Target = Eprobe, "sched_switch" }, "expected SYSTEM.EVENT"},
		"event/":     {func(e *Event) { e.Kind, e.Target = Eprobe, "sched/sched_switch" }, "expected SYSTEM.EVENT"},
		"path":       {func(e *Event) { e.Kind, e.Target = Uprobe, "bin/a" }, "expected the absolute path of a file"},
		"blank":      {func(e *Event) { e.Kind, e.Target = Uprobe, "/bin/a b" }, "expected the absolute path of a file"},
		"blank byte": {func(e *Event) { e.Kind, e.Target = Uprobe, "/bin/à" }, "expected the absolute path of a file"},
		"comment":    {func(e *Event) { e.Kind, e.Target = Uprobe, "/bin/#a" }, "expected the absolute path of a file"},
		"inside":     {func(e *Event) { e.Offset, e.Args = 9, mustParse(t, "a=$arg1") }, "define event g/x: column 3: a=$arg1: \"$arg1\": there are no parameters inside a function"},
		"inside BTF": {func(e *Event) { e.Offset, e.Args = 9, mustParse(t, "b") }, "there are no parameters inside a function"},
		"inside all": {func(e *Event) { e.Offset, e.Args = 9, mustParse(t, "$arg*") }, "there are no parameters inside a function"},
		"cast":       {func(e *Event) { e.Offset, e.Args = 9, mustParse(t, "(s)$stack->b") }, "there are no parameters inside a function"},
		"argument":   {func(e *Event) { e.Args = mustParse(t, "$retval") }, "a kprobe has no returned value"},
		"long":       {func(e *Event) { e.Args = mustParse(t, many(120, "@"+strings.Repeat("s", 40))) }, "bytes, and the kernel takes 4094"},
	} {
		e := ok
		c.change(&e)
		line, err := e.Definition()
		if line != "" || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v, want %s", name, line, err, c.want)
		}
	}
	e := Event{Kind: Kprobe, Group: "1", Name: "", Target: "+", Args: mustParse(t, "$foo $retval")}
	if _, err := e.Definition(); strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("want all problems at once, got %v", err)
	}
	e = Event{Kind: Kprobe, Group: "g", Name: "x", Target: "f", Offset: 4, Args: mustParse(t, "$arg1")}
	if _, err := e.Definition(); (err == nil) != (runtime.GOARCH == "amd64") {
		t.Errorf("after an endbr64: %v", err)
	}
}

func TestKinds(t *testing.T) {
	var got []string
	for _, k := range Kinds {
		got = append(got, k.String())
	}
	if diff := cmp.Diff([]string{"kprobe", "kretprobe", "fprobe", "fprobe-return", "tprobe", "eprobe", "uprobe", "uretprobe"}, got); diff != "" {
		t.Error(diff)
	}
	if Fprobe.Since() != (Version{6, 5}) || Eprobe.Option() != "CONFIG_EPROBE_EVENTS" || !Uretprobe.Return() || !Uretprobe.User() || Tprobe.Return() || Tprobe.User() {
		t.Error("a kind says something wrong of itself")
	}
}

func TestRegs(t *testing.T) {
	for arch, want := range map[string][]string{"amd64": {"di", "ip", "r15", "ss"}, "arm64": {"x0", "x30", "lr", "pstate"}, "riscv64": nil} {
		names := strings.Join(Regs(arch), " ") + " "
		for _, name := range want {
			if !strings.Contains(names, name+" ") {
				t.Errorf("%s has no %s: %s", arch, name, names)
			}
		}
	}
	if n := len(Regs("amd64")) + len(Regs("arm64")) + len(Regs("none")); n != 21+35 {
		t.Errorf("%d registers", n)
	}
	Regs("amd64")[0] = "changed"
	if Regs("amd64")[0] == "changed" {
		t.Error("the table can be changed")
	}
}

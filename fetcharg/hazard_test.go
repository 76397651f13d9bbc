package fetcharg

import (
	"errors"
	"strings"
	"testing"
)

// A kernel is not given what it writes beyond the record for, and is given everything else.
func TestHazard(t *testing.T) {
	const bits, symbol, page = "bit field", "511 bytes", "a page"
	types := testTypes(t)
	bounded := func(string) (uint64, error) { return 1, nil }
	old := func(string) (uint64, error) { return 0, errors.New("there is no such symbol") }
	for _, tt := range []struct {
		kind    Kind
		target  string
		args    string
		version Version
		symbols func(string) (uint64, error)
		arg     string // of the hazard; empty: there is none
		why     string
	}{
		// low has 3 bits, high 30 from the third on, both of 4 bytes.
		{Kprobe, "open", "file->f_path.dentry->low", v6_12, nil, "file->f_path.dentry->low", bits},
		{Kprobe, "open", "x=file->f_path.dentry->high y=flags", v7_3, nil, "", ""}, // 4 bytes and 4
		{Kprobe, "open", "x=file->f_path.dentry->high y=flags:u8", v7_3, nil, "x=", bits},
		{Kprobe, "open", "y=flags x=file->f_path.dentry->high", v7_3, nil, "x=", bits},
		{Kprobe, "open", `x=file->f_path.dentry->low pad=\0`, v7_3, nil, "", ""},
		{Kprobe, "open", `x=file->f_path.dentry->low name=$comm`, v7_3, nil, "", ""}, // the place of a text has 4 bytes
		{Kprobe, "open", "x=file->f_path.dentry->low:u32", v7_3, nil, "", ""},
		{Kprobe, "open", "x=file->f_path.dentry->low:b3@0/32", v7_3, nil, "", ""},
		{Kprobe, "open", "file->f_mode count", v7_3, nil, "", ""},
		{Fprobe, "open", "x=(dentry)name->low", v7_3, nil, "x=", bits},
		{FprobeReturn, "open", "x=(dentry)$retval->low", v7_3, nil, "x=", bits},
		{FprobeReturn, "open", "x=file->f_path.dentry->low", v7_3, nil, "x=", bits},
		{FprobeReturn, "open", "x=file->f_mode", v7_3, nil, "", ""},
		{Tprobe, "event", "x=task->pid", v7_3, nil, "", ""},
		{Eprobe, "a.b", "x=(dentry)$field->low", v7_3, nil, "x=", bits},
		{Eprobe, "a.b", "x=(dentry)$field->d_flags", v7_3, nil, "", ""},
		{Kprobe, "open", "x=(of_a_module)name->field", v7_3, nil, "x=", bits}, // nobody knows
		{Kprobe, "open", `x=(of_a_module)name->field pad=\0`, v7_3, nil, "", ""},
		{Kprobe, "of_a_module", "x=arg->field", v6_12, nil, "x=", bits},

		{Kprobe, "open", "a=$arg1 b=$stack0:symstr c=$arg2", v6_12, nil, "b=", symbol},
		{Kprobe, "open", "a=$arg1 b=$stack0:symstr c=$arg2", v7_0, nil, "", ""},

		{Uprobe, "/x", "a=%di s=+0(%si):string", v6_1, old, "s=", page},
		{Uretprobe, "/x", "s=+0($retval):ustring[2]", v6_6, old, "s=", page},
		{Uprobe, "/x", "a=%di s=+0(%si):string", v6_1, bounded, "", ""},
		{Uprobe, "/x", "a=%di s=+0(%si):string", v6_12, old, "", ""},
		{Uprobe, "/x", `a=%di s=$comm t=\"text"`, v6_1, old, "", ""},
		{Uprobe, "/x", strings.Repeat("+0(%di):u64[64] ", 6) + strings.Repeat("$comm ", 60), v6_1, old, "$comm", page},
		{Kprobe, "open", "s=+0($arg1):string", v6_1, old, "", ""}, // the ring buffer refuses what is too long
	} {
		if tt.symbols == nil {
			tt.symbols = bounded
		}
		h := Event{Kind: tt.kind, Target: tt.target, Args: mustParse(t, tt.args)}.Hazard(HazardOptions{tt.version, types, tt.symbols})
		switch {
		case h == nil && tt.arg != "":
			t.Errorf("%v %s: no hazard on %v, want one of %s", tt.kind, tt.args, tt.version, tt.arg)
		case h != nil && (tt.arg == "" || !strings.HasPrefix(h.Arg.String(), tt.arg) || !strings.Contains(h.Error(), tt.why)):
			t.Errorf("%v %s on %v: %v, want %q of %q", tt.kind, tt.args, tt.version, h, tt.why, tt.arg)
		}
	}
}

// TestKernelUprobeBound tells whether the kernel bounds what it puts together for uprobes, as the version alone does not.
func TestKernelUprobeBound(t *testing.T) {
	tr := newTracing(t)
	e := tr.event(Uprobe)
	e.Args = mustParse(t, "s=+0($stack):string")
	_, err := symbols(t)("prepare_uprobe_buffer")
	if h := e.Hazard(HazardOptions{Version: tr.version}); (h != nil) != (err != nil && tr.version.Before(v6_12)) {
		t.Errorf("the symbol on %v: %v; hazard: %v", tr.version, err, h)
	}
	t.Logf("%v: %v", tr.version, err)
}

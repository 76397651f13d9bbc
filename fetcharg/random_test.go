package fetcharg

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// generator makes random arguments, also such as no probe can have. What the kernel has to look up exists.
type generator struct {
	*rand.Rand
	kind Kind
	old  bool // for a kernel before 6.3
}

func newGenerator(kind Kind, seed uint64, version Version) *generator {
	return &generator{rand.New(rand.NewPCG(seed, uint64(kind))), kind, version.Before(v6_3)}
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// list makes some arguments with names.
func (g *generator) list() []Arg {
	args := make([]Arg, 1+g.IntN(3))
	for i := range args {
		for args[i] = g.arg(); g.unknown(args[i]); {
			args[i] = g.arg()
		}
	}
	return args
}

// unknown reports whether the package and some kernel are known to differ on the argument (see differences), or whether
// the kernel's answer depends on BTF.
func (g *generator) unknown(a Arg) bool {
	_, fromBTF := (Arg{Name: a.Name, Expr: a.Expr}).Typed(g.kind)
	isText := a.Type.Base == String || a.Type.Base == UString
	_, all := a.Expr.(AllParams)
	unknown := fromBTF && isText || all && a.Type != (Type{})
	Walk(a.Expr, func(e Expr) bool {
		switch e.(type) {
		case RetVal:
			unknown = unknown || g.kind == Fprobe
		case Comm:
			unknown = unknown || g.kind == Eprobe && g.old && (a.Type.Base == SymStr || a.Expr != e)
		}
		return true
	})
	return unknown || g.old && g.kind.User() && (a.Type.Base == SymbolType || a.Type.Base == SymStr)
}

func (g *generator) arg() Arg {
	a := Arg{Name: pick(g, "", "a", "b", "c", "arg1", "common_pid"), Expr: g.expr(g.IntN(4))}
	if g.IntN(20) == 0 {
		a.Expr = ImmString{Value: pick(g, "", "x", `a"b=c`)}
		if a.Name == "" {
			a.Name = "s"
		}
	}
	if g.IntN(3) > 0 {
		a.Type.Base = U8 + Base(g.IntN(int(BitField-U8)+1))
		if a.Type.Base == BitField {
			a.Type.Size = pick(g, 8, 16, 32, 64)
			a.Type.Width = 1 + g.IntN(a.Type.Size)
			a.Type.Shift = g.IntN(a.Type.Size - a.Type.Width + 1)
		}
		if g.IntN(4) == 0 && a.Type.Base != Dentry && a.Type.Base != File {
			a.Type.Len = 1 + g.IntN(MaxLen)
		}
	}
	return a
}

// expr makes an expression with so many levels of others in it.
func (g *generator) expr(depth int) Expr {
	if depth > 0 {
		switch g.IntN(8) {
		case 0:
			return PerCPU{Read: g.IntN(2) == 0, Base: g.expr(depth - 1)}
		case 1:
			return Member{Base: Cast{Struct: "task_struct", Via: pick(g, nil, []string{"se", "vruntime"}), Base: g.expr(depth - 1)}, Path: g.path()}
		default:
			return Deref{User: g.IntN(4) == 0, Offset: pick(g, 0, 8, -8, 0x7fffffff, int64(g.Int32())), Base: g.expr(depth - 1)}
		}
	}
	return pick[func() Expr](g,
		func() Expr { return Register{Name: pick(g, append(Regs(runtime.GOARCH), "zz")...)} },
		func() Expr { return Param{N: pick(g, 0, 1, 2, 3, uint64(g.IntN(3000)))} },
		func() Expr { return AllParams{} },
		func() Expr { return Var{Name: pick(g, g.names()...)} },
		func() Expr { return Field{Name: pick(g, g.names()...)} },
		func() Expr { return StackEntry{N: uint64(g.IntN(2100))} },
		func() Expr { return StackPointer{} },
		func() Expr { return RetVal{} },
		func() Expr { return Comm{Upper: g.IntN(2) == 0} },
		func() Expr { return Current{} },
		func() Expr { return Memory{Addr: pick(g, 0, 10, g.Uint64())} },
		func() Expr { return Symbol{Name: "jiffies", Offset: pick(g, 0, 8, -8, g.Int64(), -g.Int64())} },
		func() Expr { return FileMemory{Offset: pick[int64](g, 0, 100, -1)} },
		func() Expr { return Imm{Value: pick(g, 0, -1, int64(g.Uint64()))} },
		func() Expr { return Member{Base: Current{}, Path: g.path()} },
	)()
}

// names are those of parameters of vfs_read and sched_switch, and of fields of sched.sched_switch.
func (g *generator) names() []string {
	switch g.kind {
	case Tprobe:
		return []string{"prev", "next"}
	case Eprobe:
		return []string{"prev_comm", "prev_pid", "next_prio"}
	}
	return []string{"file", "buf", "count", "pos"}
}

// path is one of fields of task_struct.
func (g *generator) path() []Step {
	return pick(g, []Step{{Name: "pid"}}, []Step{{Name: "real_parent"}, {Name: "comm"}}, []Step{{Name: "se"}, {Dot: true, Name: "vruntime"}})
}

// TestRandom: what is printed is read as the same.
func TestRandom(t *testing.T) {
	for _, kind := range Kinds {
		g := newGenerator(kind, 1, v7_3)
		accepted := 0
		for range 500 {
			args := g.list()
			got, err := Parse(Join(args))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(args, got, noPos); diff != "" {
				t.Fatalf("%s: %s", Join(args), diff)
			}
			if Check(args, kind) == nil {
				accepted++
			}
		}
		if accepted < 25 {
			t.Errorf("%v: only %d lists are accepted", kind, accepted)
		}
	}
}

// TestKernelRandom compares the package's answers with the running kernel's for random arguments.
func TestKernelRandom(t *testing.T) {
	tr := newTracing(t)
	for _, kind := range Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			tr := tr.on(t)
			tr.needs(kind)
			attached := &Format{}
			if kind == Eprobe {
				attached = tr.format("sched/sched_switch")
			}
			n := 300
			if kind == Fprobe || kind == FprobeReturn || kind == Tprobe {
				n = 100 // it takes the kernel long to define them
			}
			accepted := 0
			for g := newGenerator(kind, 2, tr.version); n > 0; n-- {
				list := Join(g.list())
				want := verdict(kind, list, tr.version, attached)
				got := tr.define(mustDefine(t, tr.event(kind))+" "+list, "x")
				if (want == nil) != (got == nil) {
					t.Errorf("%v on %v: %s: the kernel says %v, the package %v", kind, tr.version, list, got, want)
				}
				if got == nil {
					accepted++
				}
			}
			t.Logf("%d accepted", accepted)
		})
	}
}

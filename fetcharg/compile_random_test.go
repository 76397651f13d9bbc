package fetcharg

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"bpfbench/internal/testutils"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// switchFormat is the format file of sched/sched_switch, as of 6.12.
const switchFormat = `name: sched_switch
ID: 317
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:int prev_prio;	offset:28;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
	field:int next_prio;	offset:60;	size:4;	signed:1;

print fmt: "x"
`

// fakeSymbols has all symbols.
func fakeSymbols(name string) (uint64, error) { return 0xffffffff81000000 + uint64(len(name)), nil }

// randomEvent returns an event of the kind with up to so many random arguments that a kernel can have.
func randomEvent(g *generator, format *Format, most int) Event {
	e := Event{Kind: g.kind, Target: "vfs_read"}
	switch g.kind {
	case Tprobe:
		e.Target = "sched_switch"
	case Eprobe:
		e.Target = "sched.sched_switch"
	}
	for n := 1 + g.IntN(most); len(e.Args) < n; {
		a := g.arg()
		if len(e.Args) > 0 && g.IntN(2) == 0 { // something is fetched again, or gone on from
			a.Expr = pick(g, e.Args...).Expr
			for range g.IntN(3) {
				if inner := base(a.Expr); inner != nil {
					a.Expr = inner
				}
			}
			if g.IntN(3) > 0 {
				a.Expr = Deref{User: g.IntN(4) == 0, Offset: pick[int64](g, 0, 8, -8), Base: a.Expr}
			}
		}
		a.Name = fmt.Sprintf("a%d", len(e.Args))
		if _, ok := a.Expr.(AllParams); ok {
			a.Name = ""
		}
		list := append(slices.Clone(e.Args), a)
		if Check(list, g.kind) == nil && (g.kind != Eprobe || format.CheckFields(list) == nil) {
			e.Args = list
		}
	}
	return e
}

// TestKernelCompileRandom: the verifier takes every program that is compiled from arguments that a kernel can have.
func TestKernelCompileRandom(t *testing.T) {
	testutils.NeedsBPF(t)
	spec := kernelBTF(t)
	format, err := ParseFormat(strings.NewReader(switchFormat))
	if err != nil {
		t.Fatal(err)
	}
	n := 1000
	switch {
	case testing.Short():
		n = 40
	case os.Getenv(guestVar) != "": // where it takes ten times as long
		n = 150
	}
	for _, kind := range Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			r := randomRun{T: t, spec: spec, format: format, loads: kernelLoads(t), generator: newGenerator(kind, 3, v7_3)}
			for range n {
				r.one()
			}
			t.Logf("%d programs, %d arguments, %d of them left out, %d programs refused by Compile", r.loaded, r.args, r.skipped, r.refused)
			if r.loaded < n/2 {
				t.Errorf("only %d of %d were loaded", r.loaded, n)
			}
		})
	}
}

type randomRun struct {
	*testing.T
	*generator
	spec                           *btf.Spec
	format                         *Format
	loads                          *Loads
	loaded, args, skipped, refused int
}

// one compiles and loads one program.
func (r *randomRun) one() {
	e := randomEvent(r.generator, r.format, pick(r.generator, 2, 8, 40))
	c, err := Compile(e, CompileOptions{
		Loads: pick(r.generator, nil, r.loads), Format: r.format, Symbols: fakeSymbols, BTF: r.spec, SkipUnsupported: true,
		Record: Record(r.IntN(3)), MaxString: pick(r.generator, 0, 32, 50, 4096),
	})
	if err != nil {
		if strings.Contains(err.Error(), "instructions, and a jump") {
			r.refused++
			return
		}
		r.refused++
		var unexpected []string
		for line := range strings.Lines(err.Error()) {
			if !isExpected(line) {
				unexpected = append(unexpected, line)
			}
		}
		if len(unexpected) > 0 {
			r.Errorf("%s: %q", Join(e.Args), unexpected)
		}
		return
	}
	r.args += len(c.Layout.Fields)
	r.skipped += len(c.Skipped)
	coll, err := ebpf.NewCollection(c.Spec)
	if err != nil {
		if os.Getenv("FETCHARG_STOP") != "" {
			r.Fatal(Join(e.Args), explain(c, err))
		}
		r.Errorf("%s: %v", Join(e.Args), err)
		return
	}
	coll.Close()
	r.loaded++
}

// isExpected reports whether the error is one that random arguments may have: text of what BTF knows for no text.
func isExpected(line string) bool { return strings.Contains(line, "it is no text") }

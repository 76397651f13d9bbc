package fetcharg

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"bpfbench/internal/testutils"
	"bpfbench/internal/tracefs"

	"github.com/cilium/ebpf"
)

// TestKernelCompileLoads: the verifier takes a program of each argument of the corpus, also where it cannot be attached.
func TestKernelCompileLoads(t *testing.T) {
	testutils.NeedsBPF(t)
	spec := kernelBTF(t)
	for i, c := range valueCases {
		t.Run(fmt.Sprintf("%d-%v", i, c.kind), func(t *testing.T) {
			e, opt := Event{Kind: c.kind, Target: c.target}, CompileOptions{Symbols: fakeSymbols, BTF: spec, SkipUnsupported: true}
			for i, text := range strings.Fields(c.args) {
				if text != "$arg*" && !isName(strings.SplitN(text, "=", 2)[0]) {
					text = fmt.Sprintf("v%d=%s", i, text)
				}
				args, err := Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				if list := append(e.Args[:len(e.Args):len(e.Args)], args...); Check(list, c.kind) == nil {
					e.Args = list
				}
			}
			if c.kind == Eprobe {
				system, event, _ := strings.Cut(c.target, ".")
				text, err := tracefs.Format(system, event)
				if err != nil {
					t.Skip(err)
				}
				if opt.Format, err = ParseFormat(strings.NewReader(text)); err != nil {
					t.Fatal(err)
				}
			}
			for _, record := range Records {
				opt.Record = record
				compiled, err := Compile(e, opt)
				if err != nil {
					t.Skip(err) // the kernel has no such function, or another struct
				}
				coll, err := ebpf.NewCollection(compiled.Spec)
				if err != nil {
					t.Fatal(explain(compiled, err))
				}
				coll.Close()
			}
		})
	}
}

// FuzzCompile: whatever is read, and can be had by a kernel, becomes a program without dangling jumps, or an error.
func FuzzCompile(f *testing.F) {
	for _, c := range valueCases {
		f.Add(uint8(c.kind), c.args)
	}
	f.Fuzz(func(t *testing.T, kind uint8, list string) {
		args, err := Parse(list)
		if err != nil {
			return
		}
		e, opt := testEvent(t, Kind(kind%uint8(len(Kinds))), "")
		e.Args, opt.SkipUnsupported = args, true
		c, err := Compile(e, opt)
		if err != nil {
			return
		}
		if err := c.Spec.Programs[ProgramName].Instructions.Marshal(io.Discard, binary.LittleEndian); err != nil {
			t.Error(explain(c, err))
		}
		if _, err := c.Decode(make([]byte, c.Layout.Size)); err != nil {
			t.Error(explain(c, err))
		}
	})
}

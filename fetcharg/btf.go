package fetcharg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// types are the types of the kernel, loaded when they are needed.
type types struct {
	spec   *btf.Spec // of the kernel
	module *btf.Spec // of the module that the target is in
	event  Event
	err    error // of loading spec

	proto    *btf.FuncProto
	protoErr error
}

// kernel returns the types of the kernel.
func (t *types) kernel() (*btf.Spec, error) {
	if t.spec == nil && t.err == nil {
		if t.spec, t.err = btf.LoadKernelSpec(); t.err != nil {
			t.err = fmt.Errorf("load the kernel's BTF: %w", t.err)
		}
	}
	return t.spec, t.err
}

// find returns the first type of the name that is a T, as the kernel does. ok says whether there is one.
func find[T btf.Type](spec *btf.Spec, name string) (typ T, ok bool) {
	all, _ := spec.AnyTypesByName(name) // fails if there is none
	for _, any := range all {
		if typ, ok = any.(T); ok {
			return typ, true
		}
	}
	return typ, false
}

// function returns the type of the probed function. That of a tracepoint has one more parameter, which is the first.
func (t *types) function() (*btf.FuncProto, error) {
	if t.proto == nil && t.protoErr == nil {
		t.proto, t.protoErr = t.findFunction()
	}
	return t.proto, t.protoErr
}

func (t *types) findFunction() (*btf.FuncProto, error) {
	spec, err := t.kernel()
	if err != nil {
		return nil, err
	}
	if t.event.Kind == Tprobe {
		return findTracepoint(spec, t.event.Target)
	}
	name := t.event.Target
	if module, function, ok := strings.Cut(name, ":"); ok {
		name = function
		if t.module, err = btf.LoadKernelModuleSpec(module); err != nil {
			return nil, fmt.Errorf("load BTF of module %s: %w", module, err)
		}
	}
	for _, spec := range []*btf.Spec{spec, t.module} {
		if spec == nil {
			continue
		}
		if f, ok := find[*btf.Func](spec, name); ok {
			if proto, ok := f.Type.(*btf.FuncProto); ok {
				return proto, nil
			}
		}
	}
	return nil, fmt.Errorf("BTF has no function %s (expected MODULE:FUNCTION for one of a module)", name)
}

// findTracepoint finds a function with the tracepoint's parameters. That of the type btf_trace_… has no names of them.
func findTracepoint(spec *btf.Spec, name string) (*btf.FuncProto, error) {
	for _, prefix := range []string{"__probestub_", "__bpf_trace_"} {
		if f, ok := find[*btf.Func](spec, prefix+name); ok {
			if proto, ok := f.Type.(*btf.FuncProto); ok && len(proto.Params) > 0 {
				return proto, nil
			}
		}
	}
	if def, ok := find[*btf.Typedef](spec, "btf_trace_"+name); ok {
		if p, ok := def.Type.(*btf.Pointer); ok {
			if proto, ok := p.Target.(*btf.FuncProto); ok && len(proto.Params) > 0 {
				return proto, nil
			}
		}
	}
	return nil, fmt.Errorf("BTF has no tracepoint %s", name)
}

// params returns the parameters of the probed function or tracepoint. Only functions and tracepoints have some.
func (t *types) params() ([]btf.FuncParam, error) {
	proto, err := t.function()
	if err != nil {
		return nil, err
	}
	if t.event.Kind == Tprobe {
		return proto.Params[1:], nil
	}
	return proto.Params, nil
}

// paramName returns the name of parameter n, from 1, or "" if it is not known.
func (t *types) paramName(n uint64) string {
	if !t.event.Kind.function() {
		return ""
	}
	params, err := t.params()
	if err != nil || n < 1 || n > uint64(len(params)) {
		return ""
	}
	return params[n-1].Name
}

// tracepointParams returns how many parameters a tracepoint has, or a number that is none's and the reason.
func (t *types) tracepointParams() (int, error) {
	const most = 12 // MAX_BPF_FUNC_ARGS in include/linux/bpf.h
	params, err := t.params()
	if err != nil {
		return most, err
	}
	return min(len(params), most), nil
}

// offsetOf returns the place of a field in a struct of the kernel, in bytes.
func (t *types) offsetOf(structure string, path ...string) (int64, error) {
	spec, err := t.kernel()
	if err != nil {
		return 0, err
	}
	typ, ok := find[*btf.Struct](spec, structure)
	if !ok {
		return 0, fmt.Errorf("BTF has no struct %s", structure)
	}
	var bits btf.Bits
	at := btf.Type(typ)
	for _, name := range path {
		m, offset, ok := member(at, name)
		if !ok {
			return 0, fmt.Errorf("struct %s has no field %s", structure, strings.Join(path, "."))
		}
		bits += offset
		at = btf.UnderlyingType(m.Type)
	}
	if bits%8 != 0 {
		return 0, errors.New("it does not begin at a byte")
	}
	return int64(bits / 8), nil
}

// members returns the fields of a struct or union.
func members(t btf.Type) []btf.Member {
	switch t := t.(type) {
	case *btf.Struct:
		return t.Members
	case *btf.Union:
		return t.Members
	}
	return nil
}

// member finds a field of a struct or union, also in those without a name that it has, and its place from the begin of it.
func member(t btf.Type, name string) (m btf.Member, offset btf.Bits, ok bool) {
	for _, m := range members(t) {
		if m.Name == name {
			return m, m.Offset, true
		}
		if m.Name == "" {
			if inner, offset, ok := member(btf.UnderlyingType(m.Type), name); ok {
				return inner, m.Offset + offset, true
			}
		}
	}
	return m, 0, false
}

// pointee returns what a pointer points to, without const and the like, or nil if t is no pointer.
func pointee(t btf.Type) btf.Type {
	if p, ok := t.(*btf.Pointer); ok {
		return btf.UnderlyingType(p.Target)
	}
	return nil
}

// isChar reports whether the kernel takes a type for that of text: bytes without sign. A char is one of these since 6.2.
func isChar(t btf.Type) bool {
	i, ok := btf.UnderlyingType(t).(*btf.Int)
	return ok && i.Size == 1 && (i.Encoding != btf.Signed || i.Name == "char")
}

func isChars(t btf.Type) bool {
	a, ok := t.(*btf.Array)
	return ok && isChar(a.Type)
}

func isCharPointer(t btf.Type) bool {
	p, ok := t.(*btf.Pointer)
	return ok && isChar(p.Target)
}

// baseOf returns the type that the kernel makes of one of BTF (fetch_type_from_btf_type in trace_probe.c).
func baseOf(t btf.Type) Base {
	switch t := t.(type) {
	case *btf.Enum:
		if t.Size == 8 {
			return S64
		}
		return S32
	case *btf.Int:
		sizes := map[uint32][2]Base{1: {U8, S8}, 2: {U16, S16}, 4: {U32, S32}, 8: {U64, S64}}
		if b, ok := sizes[t.Size]; ok && t.Encoding == btf.Signed {
			return b[1]
		} else if ok {
			return b[0]
		}
	}
	return X64
}

package testutils

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Kinds of BPF objects.
const (
	program = "program"
	bpfMap  = "map"
	bpfLink = "link"
)

// object is a BPF object of the kernel.
type object struct {
	kind string
	id   uint32
}

func (o object) String() string { return fmt.Sprintf("BPF %s %d", o.kind, o.id) }

// bpfObjects adds all BPF objects of the kernel, or none if they may not be listed.
func bpfObjects(all things) {
	for kind, next := range map[string]func(uint32) (uint32, error){
		program: func(id uint32) (uint32, error) {
			n, err := ebpf.ProgramGetNextID(ebpf.ProgramID(id))
			return uint32(n), err
		},
		bpfMap: func(id uint32) (uint32, error) {
			n, err := ebpf.MapGetNextID(ebpf.MapID(id))
			return uint32(n), err
		},
		bpfLink: nextLink,
	} {
		for id, err := next(0); err == nil; id, err = next(id) {
			o := object{kind, id}
			all[o.String()] = o.String()
		}
	}
}

// nextLink returns the id of the link after id. The library has an iterator for it, which opens every link.
func nextLink(id uint32) (uint32, error) {
	attr := struct{ start, next, flags uint32 }{start: id}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_GET_NEXT_ID, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return 0, errno
	}
	return attr.next, nil
}

// parseObject reads what String has written.
func parseObject(s string) (object, bool) {
	var o object
	_, err := fmt.Sscanf(s, "BPF %s %d", &o.kind, &o.id)
	return o, err == nil
}

// removeForeign removes the BPF objects that other processes hold.
func removeForeign(left things) {
	var held map[object]bool // found out when it is needed
	for key := range left {
		o, ok := parseObject(key)
		if !ok {
			continue
		}
		if held == nil {
			held = heldByOthers()
		}
		if held[o] {
			delete(left, key)
		}
	}
}

// heldByOthers returns the objects that open files of other processes hold: also the programs of their links, and the
// maps of their programs.
func heldByOthers() map[object]bool {
	held := map[object]bool{}
	paths, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*") // fails for a bad pattern only
	own := strconv.Itoa(os.Getpid())
	for _, path := range paths {
		if filepath.Base(filepath.Dir(filepath.Dir(path))) == own {
			continue
		}
		for kind, id := range bpfIDs(path) {
			held[object{kind, id}] = true
		}
	}
	for o := range maps.Clone(held) {
		if o.kind == bpfLink {
			if id, ok := programOf(o.id); ok {
				held[object{program, id}] = true
			}
		}
	}
	for o := range maps.Clone(held) {
		if o.kind == program {
			for _, id := range mapsOf(o.id) {
				held[object{bpfMap, id}] = true
			}
		}
	}
	return held
}

// programOf returns the id of a link's program.
func programOf(linkID uint32) (uint32, bool) {
	l, err := link.NewFromID(link.ID(linkID))
	if err != nil {
		return 0, false
	}
	defer func() { _ = l.Close() }()
	info, err := l.Info()
	if err != nil {
		return 0, false
	}
	return uint32(info.Program), true
}

// mapsOf returns the ids of a program's maps.
func mapsOf(programID uint32) []uint32 {
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(programID))
	if err != nil {
		return nil
	}
	defer func() { _ = prog.Close() }()
	info, err := prog.Info()
	if err != nil {
		return nil
	}
	mapIDs, _ := info.MapIDs()
	var ids []uint32
	for _, id := range mapIDs {
		ids = append(ids, uint32(id))
	}
	return ids
}

// describe adds the type and the name of a program or map.
func (o object) describe() string {
	switch o.kind {
	case program:
		if prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(o.id)); err == nil {
			defer func() { _ = prog.Close() }()
			if info, err := prog.Info(); err == nil {
				return fmt.Sprintf("%s (%s %q)", o, info.Type, info.Name)
			}
		}
	case bpfMap:
		if m, err := ebpf.NewMapFromID(ebpf.MapID(o.id)); err == nil {
			defer func() { _ = m.Close() }()
			if info, err := m.Info(); err == nil {
				return fmt.Sprintf("%s (%s %q)", o, info.Type, info.Name)
			}
		}
	}
	return o.String()
}

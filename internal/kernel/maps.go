package kernel

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"bpfbench/internal/host"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

const (
	noPrealloc = unix.BPF_F_NO_PREALLOC
	numaNode   = unix.BPF_F_NUMA_NODE
	access     = unix.BPF_F_RDONLY | unix.BPF_F_WRONLY | unix.BPF_F_RDONLY_PROG | unix.BPF_F_WRONLY_PROG
	tokenFD    = 1 << 16
	overwrite  = 1 << 19 // of a ring buffer
)

// MapError says that the kernel did not make a map as it was asked for, and why.
type MapError struct {
	Asked string // the map's type and parameters
	Why   string // with the limits and what to change
	Err   error  // from the kernel
}

func (e *MapError) Error() string {
	s := "create " + e.Asked + ": " + e.Why
	if name := errnoName(e.Err); name != "" {
		s += " (" + name + ")"
	}
	return s
}

func (e *MapError) Unwrap() error { return e.Err }

// ExplainMap translates an error of creating the map of spec: into a *MapError with the parameters, the limit or the
// memory that they go beyond and what to change, or into what Explain does. ExplainMap of nil is nil.
func ExplainMap(err error, spec *ebpf.MapSpec) error {
	if err == nil {
		return nil
	}
	available, memErr := host.MemAvailable()
	if memErr != nil {
		available = 0
	}
	return here().explainMap(err, spec, available)
}

// explainMap is ExplainMap, where available bytes of memory can be had; 0 if that is not known.
func (s system) explainMap(err error, spec *ebpf.MapSpec, available uint64) error {
	fail := func(why string) error { return &MapError{Asked: describeMap(spec), Why: why, Err: err} }
	what, caps := "create "+describeMap(spec), mapCaps(spec)
	lacking := s.lacking(caps)
	switch {
	case errors.Is(err, unix.E2BIG):
		return fail(s.tooBig(spec))
	case errors.Is(err, unix.EOVERFLOW):
		return fail("its size overflows: lower max_entries or value_size")
	case errors.Is(err, unix.ENOMEM):
		return fail(noMemory(spec, available))
	case errors.Is(err, unix.EINVAL):
		return fail(s.invalid(spec))
	case errors.Is(err, unix.EPERM) && s.release.before(5, 11) && lacking == nil:
		return fail("RLIMIT_MEMLOCK is too low, to which kernels before 5.11 account maps: raise it (ulimit -l unlimited)")
	case notSupported(err) && lacking != nil: // the library takes that for a lack of the feature
		return &PrivilegeError{Feature: what, Missing: lacking, Remedy: s.remedy(), Err: err}
	case notSupported(err) && isLRU(spec.Type) && spec.Flags&noPrealloc != 0:
		return fail("an LRU map always has its elements allocated: drop no_prealloc from map_flags")
	}
	return s.explain(err, what, caps...)
}

// mapCaps returns the capabilities that a map needs. A fixed hash seed is for CAP_SYS_ADMIN only (kernel/bpf/hashtab.c:
// htab_map_alloc_check).
func mapCaps(spec *ebpf.MapSpec) []Cap {
	caps := []Cap{CapBPF}
	if spec.Flags&unix.BPF_F_ZERO_SEED != 0 {
		caps = append(caps, CapSysAdmin)
	}
	return caps
}

func describeMap(spec *ebpf.MapSpec) string {
	return fmt.Sprintf("%s map (max_entries %d, key_size %d, value_size %d, map_flags %#x: %s)", mapType(spec.Type),
		spec.MaxEntries, spec.KeySize, spec.ValueSize, spec.Flags, MapFlagNames(spec.Flags))
}

// tooBig explains E2BIG.
func (s system) tooBig(spec *ebpf.MapSpec) string {
	var why []string
	size := uint64(spec.KeySize) + uint64(spec.ValueSize)
	if isHash(spec.Type) {
		if spec.MaxEntries > MaxHashEntries {
			why = append(why, fmt.Sprintf("%d buckets are more than the kernel's limit of %d (2^27), and the map would "+
				"take about %s: use a max_entries of at most the limit",
				roundUpPow2(uint64(spec.MaxEntries)), MaxHashEntries, bytes(mapMemory(spec))))
		}
		if limit := maxKmalloc() - elemSize; size >= limit {
			why = append(why, fmt.Sprintf("a key and a value of together %d bytes are more than the %d that the kernel "+
				"allocates: lower value_size or key_size", size, limit-1))
		}
		// The limit went with c4c80c5f8f9b ("bpf: Lift hashtab key_size limit").
		if spec.KeySize > 512 && s.release.before(5, 11) {
			why = append(why, "kernels before 5.11 take keys of up to 512 bytes: lower key_size")
		}
	}
	// PCPU_MIN_UNIT_SIZE of include/linux/percpu.h, 32 KiB.
	if isPerCPU(spec.Type) && spec.ValueSize > 32<<10 {
		why = append(why, "a value for each CPU is of up to 32768 bytes: lower value_size")
	}
	if why == nil {
		why = append(why, "it is too big for this kernel: lower max_entries, key_size or value_size")
	}
	return strings.Join(why, "; ")
}

// noMemory explains ENOMEM.
func noMemory(spec *ebpf.MapSpec, available uint64) string {
	why := "not enough memory"
	if size := mapMemory(spec); size > 0 {
		why += fmt.Sprintf(": it takes about %s", bytes(size))
	}
	if available > 0 {
		why += fmt.Sprintf(", %s are available", bytes(available))
	}
	why += ": lower max_entries, value_size or key_size"
	if !isLRU(spec.Type) && isHash(spec.Type) && spec.Flags&noPrealloc == 0 {
		why += ", or set no_prealloc in map_flags, which allocates the entries that are used only"
	}
	return why
}

// invalid explains EINVAL: everything about the parameters that may be the reason.
func (s system) invalid(spec *ebpf.MapSpec) string {
	var why []string
	say := func(is bool, format string, args ...any) {
		if is {
			why = append(why, fmt.Sprintf(format, args...))
		}
	}
	known := isHash(spec.Type) || isArray(spec.Type)
	say(known && spec.MaxEntries == 0, "max_entries is 0: want at least 1")
	say(known && spec.ValueSize == 0, "value_size is 0: want at least 1")
	say(isHash(spec.Type) && spec.KeySize == 0, "key_size is 0: want at least 1")
	say(isArray(spec.Type) && spec.KeySize != 4, "key_size is %d: the key of an array has 4 bytes", spec.KeySize)
	page := uint32(os.Getpagesize())
	say(spec.Type == ebpf.RingBuf && (spec.MaxEntries < page || spec.MaxEntries&(spec.MaxEntries-1) != 0),
		"max_entries is %d: the size of a ring buffer is a power of two of at least %d bytes", spec.MaxEntries, page)

	if allowed, ok := flagsOf(spec.Type); ok {
		bad := spec.Flags &^ allowed
		say(bad != 0, "map_flags %#x (%s) do not go with a %s map, which takes %s: drop them", bad,
			MapFlagNames(bad), mapType(spec.Type), MapFlagNames(allowed&^tokenFD))
	}
	both := func(a, b uint32) bool { return spec.Flags&a != 0 && spec.Flags&b != 0 }
	say(both(unix.BPF_F_RDONLY, unix.BPF_F_WRONLY), "map_flags rdonly and wronly exclude each other")
	say(both(unix.BPF_F_RDONLY_PROG, unix.BPF_F_WRONLY_PROG), "map_flags rdonly_prog and wronly_prog exclude each other")
	if spec.Flags&numaNode != 0 {
		_, err := os.Stat(fmt.Sprintf("%s/sys/devices/system/node/node%d", s.root, spec.NumaNode))
		say(err != nil, "map_flags numa_node is set, and there is no NUMA node %d", spec.NumaNode)
	}
	if why == nil && errors.Is(features.HaveMapType(spec.Type), ebpf.ErrNotSupported) {
		why = append(why, "this kernel has no maps of this type")
	}
	if why == nil {
		why = append(why, "the kernel takes these parameters as invalid, and does not say which: try without map_flags, "+
			"or another type")
	}
	return strings.Join(why, "; ")
}

// flagsOf returns the flags that maps of a type can be created with, as of Linux 6.18; ok is false if that is not known.
func flagsOf(typ ebpf.MapType) (flags uint32, ok bool) {
	const hash = noPrealloc | access | unix.BPF_F_ZERO_SEED | tokenFD // HTAB_CREATE_FLAG_MASK
	const array = access | unix.BPF_F_PRESERVE_ELEMS | tokenFD        // ARRAY_CREATE_FLAG_MASK
	switch typ {
	case ebpf.Hash:
		return hash | numaNode, true
	case ebpf.LRUHash:
		return hash&^noPrealloc | numaNode | unix.BPF_F_NO_COMMON_LRU, true
	case ebpf.PerCPUHash:
		return hash, true
	case ebpf.LRUCPUHash:
		return hash&^noPrealloc | unix.BPF_F_NO_COMMON_LRU, true
	case ebpf.Array:
		return array | numaNode | unix.BPF_F_MMAPABLE | unix.BPF_F_INNER_MAP, true
	case ebpf.PerCPUArray:
		return array, true
	case ebpf.RingBuf:
		return numaNode | overwrite | tokenFD, true
	}
	return 0, false
}

func isLRU(t ebpf.MapType) bool   { return t == ebpf.LRUHash || t == ebpf.LRUCPUHash }
func isArray(t ebpf.MapType) bool { return t == ebpf.Array || t == ebpf.PerCPUArray }
func isHash(t ebpf.MapType) bool  { return t == ebpf.Hash || t == ebpf.PerCPUHash || isLRU(t) }
func isPerCPU(t ebpf.MapType) bool {
	return t == ebpf.PerCPUHash || t == ebpf.LRUCPUHash || t == ebpf.PerCPUArray
}

// mapType is a type's name as bpftool writes it.
func mapType(t ebpf.MapType) string {
	switch t {
	case ebpf.LRUHash:
		return "lru_hash"
	case ebpf.PerCPUHash:
		return "percpu_hash"
	case ebpf.LRUCPUHash:
		return "lru_percpu_hash"
	case ebpf.PerCPUArray:
		return "percpu_array"
	}
	return strings.ToLower(t.String())
}

// maxKmalloc is the largest block of kmalloc in bytes, KMALLOC_MAX_SIZE: MAX_PAGE_ORDER is 10 with pages of 4 KiB, and
// 11 and 13 with those of 16 and 64 KiB (arch/arm64/Kconfig: ARCH_FORCE_MAX_ORDER).
func maxKmalloc() uint64 {
	switch page := uint64(os.Getpagesize()); page {
	case 16 << 10:
		return page << 11
	case 64 << 10:
		return page << 13
	default:
		return page << 10
	}
}

// bytes writes a size with a unit that leaves it readable.
func bytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	value, unit := float64(n)/(1<<10), 0
	for value >= 1<<10 && unit < len("KMGTPE")-1 {
		value /= 1 << 10
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[unit])
}

package producers

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MapElem does operations on single elements of a map by bpf(2), with one key and one value: those in the memory that it was
// made with. The library's methods make allocations a call; here a call is a measurement.
type MapElem struct {
	attr elemAttr
	gone elemAttr // for deletes, which have no value
}

// elemAttr is the part of union bpf_attr that BPF_MAP_*_ELEM read (<linux/bpf.h>).
type elemAttr struct {
	mapFD      uint32
	_          uint32
	key, value unsafe.Pointer
	flags      uint64
}

// NewMapElem returns what does operations on the map with descriptor fd. For a map with a value for each CPU, value has room
// for all of them.
func NewMapElem(fd int, key, value []byte) *MapElem {
	e := &MapElem{gone: elemAttr{mapFD: uint32(fd), key: unsafe.Pointer(&key[0])}}
	e.attr = e.gone
	e.attr.value = unsafe.Pointer(&value[0])
	return e
}

// Lookup reads the value of the key.
func (e *MapElem) Lookup() unix.Errno {
	e.attr.flags = 0
	return e.call(unix.BPF_MAP_LOOKUP_ELEM, &e.attr)
}

// Update writes the value of the key; flags are BPF_ANY, BPF_NOEXIST or BPF_EXIST.
func (e *MapElem) Update(flags uint64) unix.Errno {
	e.attr.flags = flags
	return e.call(unix.BPF_MAP_UPDATE_ELEM, &e.attr)
}

// Delete deletes the key.
func (e *MapElem) Delete() unix.Errno { return e.call(unix.BPF_MAP_DELETE_ELEM, &e.gone) }

// call does not tell Go's scheduler, which would take a good part of the time: these commands do not block.
func (e *MapElem) call(cmd uintptr, attr *elemAttr) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_BPF, cmd, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
	runtime.KeepAlive(e)
	return errno
}

// MapBatch does operations on many elements of a map by one bpf(2): on the first of those keys and values in the memory that
// it was made with.
type MapBatch struct {
	attr  batchAttr
	token []byte
}

// batchAttr is the part of union bpf_attr that BPF_MAP_*_BATCH read.
type batchAttr struct {
	inBatch, outBatch unsafe.Pointer
	keys, values      unsafe.Pointer
	count, mapFD      uint32
	elemFlags, flags  uint64
}

// NewMapBatch returns what does operations on the map with descriptor fd, whose keys have keySize bytes. keys and values have
// room for the elements of a call.
func NewMapBatch(fd, keySize int, keys, values []byte) *MapBatch {
	b := &MapBatch{token: make([]byte, max(keySize, 4))} // where a lookup was: a bucket, or a key
	b.attr = batchAttr{mapFD: uint32(fd), outBatch: unsafe.Pointer(&b.token[0]), keys: unsafe.Pointer(&keys[0]), values: unsafe.Pointer(&values[0])}
	return b
}

// Rewind makes Lookup begin with the map's first element.
func (b *MapBatch) Rewind() { b.attr.inBatch = nil }

// Lookup reads the next elements of the map, n at most, in the map's own order, and says how many that were. After the last
// it returns ENOENT.
func (b *MapBatch) Lookup(n uint32) (uint32, unix.Errno) {
	done, errno := b.call(unix.BPF_MAP_LOOKUP_BATCH, n)
	b.attr.inBatch = b.attr.outBatch
	return done, errno
}

// Update writes n elements, whether they are there or not, and says how many it wrote.
func (b *MapBatch) Update(n uint32) (uint32, unix.Errno) { return b.call(unix.BPF_MAP_UPDATE_BATCH, n) }

// Delete deletes n elements, and says how many it deleted.
func (b *MapBatch) Delete(n uint32) (uint32, unix.Errno) { return b.call(unix.BPF_MAP_DELETE_BATCH, n) }

func (b *MapBatch) call(cmd uintptr, n uint32) (uint32, unix.Errno) {
	b.attr.count = n
	_, _, errno := unix.Syscall(unix.SYS_BPF, cmd, uintptr(unsafe.Pointer(&b.attr)), unsafe.Sizeof(b.attr))
	runtime.KeepAlive(b)
	return b.attr.count, errno
}

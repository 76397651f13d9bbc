package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

func TestHashMapMemory(t *testing.T) {
	cpus := possibleCPUs()
	for _, c := range []struct {
		max, key, value uint32
		prealloc        bool
		entries         uint32
		want            uint64
	}{
		{65536, 4, 8, true, 0, 1024 + 65536*16 + (65536+cpus)*64},
		{1000, 4, 8, true, 1000, 1024 + 1024*16 + (1000+cpus)*64},
		{65536, 4, 8, false, 0, 1024 + 65536*16},
		{65536, 4, 8, false, 4096, 1024 + 65536*16 + 4096*(96+8)}, // 64 and a list node come from kmalloc-96
		{10, 9, 1, false, 99, 1024 + 16*16 + 10*(96+8)},
		{10, 1024, 8, false, 1, 1024 + 16*16 + 2048 + 8},
		{0, 4, 8, false, 0, 1024 + 16},
		{math.MaxUint32, math.MaxUint32, math.MaxUint32, true, 0, math.MaxUint64},
		{math.MaxUint32, math.MaxUint32, math.MaxUint32, false, math.MaxUint32, math.MaxUint64},
	} {
		if got := HashMapMemory(c.max, c.key, c.value, c.prealloc, c.entries); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

func TestKmallocSize(t *testing.T) {
	for n, want := range map[uint64]uint64{
		1: 8, 8: 8, 9: 16, 64: 64, 65: 96, 97: 128, 129: 192, 193: 256, 8192: 8192, 8193: 16384,
	} {
		if got := kmallocSize(n); got != want {
			t.Errorf("kmallocSize(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestMemoryOfKernel compares the estimate with what the kernel accounts to a preallocated map.
func TestMemoryOfKernel(t *testing.T) {
	needsBPF(t)
	if release().before(6, 4) {
		t.Skip("kernels before 6.4 show a rougher estimate of their own")
	}
	for _, c := range []struct{ max, key, value uint32 }{
		{1000, 4, 8}, {65536, 4, 8}, {65537, 8, 16}, {1000000, 4, 8}, {100000, 1, 1}, {20000, 1024, 8}, {10000, 4, 4096},
	} {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: c.key, ValueSize: c.value, MaxEntries: c.max})
		if err != nil {
			t.Fatal(err)
		}
		got, want := HashMapMemory(c.max, c.key, c.value, true, 0), fdinfo(t, m, "memlock")
		t.Logf("%+v: estimated %d, accounted %d", c, got, want)
		if off := float64(got)/float64(want) - 1; math.Abs(off) > 0.01 {
			t.Errorf("%+v: the estimate is off by %.1f %%", c, 100*off)
		}
		_ = m.Close()
	}
}

// fdinfo returns a number of /proc/self/fdinfo.
func fdinfo(t *testing.T, m *ebpf.Map, key string) uint64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", m.FD()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var n uint64
		if _, err := fmt.Sscanf(line, key+":\t%d", &n); err == nil {
			return n
		}
	}
	t.Fatalf("no %s in %q", key, content)
	return 0
}

// TestSlabOfKernel compares the estimate with what kmalloc gives for the entries of a map that is not preallocated.
func TestSlabOfKernel(t *testing.T) {
	needsBPF(t)
	if release().before(6, 1) {
		t.Skip("kernels before 6.1 do not have the BPF memory allocator")
	}
	if _, ok := slab(); !ok {
		t.Skip("/proc/slabinfo is not there or not for this user")
	}
	for _, c := range []struct{ max, key, value, entries uint32 }{
		{100000, 4, 8, 100000}, {1 << 20, 8, 16, 100000}, {100000, 4, 64, 100000}, {100000, 64, 64, 50000},
		{20000, 1024, 8, 20000},
	} {
		// Others allocate, too: the best of some tries counts.
		best := math.Inf(1)
		for try := 0; try < 4 && math.Abs(best) > 0.15; try++ {
			if off := slabOff(t, c.max, c.key, c.value, c.entries); math.Abs(off) < math.Abs(best) {
				best = off
			}
		}
		t.Logf("%+v: the estimate is off by %.1f %%", c, 100*best)
		if math.Abs(best) > 0.15 {
			t.Errorf("%+v: the estimate is off by %.1f %%", c, 100*best)
		}
	}
}

// slabOff makes and fills a map, and returns how far the estimate for its entries is off.
func slabOff(t *testing.T, maxEntries, keySize, valueSize, entries uint32) float64 {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Type: ebpf.Hash, KeySize: keySize, ValueSize: valueSize, MaxEntries: maxEntries, Flags: noPrealloc,
	})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := slab()
	key, value := make([]byte, keySize), make([]byte, valueSize)
	for i := range entries {
		binary.NativeEndian.PutUint32(key, i)
		if err := m.Update(key, value, ebpf.UpdateNoExist); err != nil {
			t.Fatal(err)
		}
	}
	after, _ := slab()
	// It stays until the test is over: elements that were freed would serve the next map, and not count.
	t.Cleanup(func() { _ = m.Close() })
	empty := HashMapMemory(maxEntries, keySize, valueSize, false, 0)
	estimate := HashMapMemory(maxEntries, keySize, valueSize, false, entries) - empty
	return float64(estimate)/float64(after-before) - 1
}

// slab returns the bytes that the caches of kmalloc hold.
func slab() (bytes uint64, ok bool) {
	content, err := os.ReadFile("/proc/slabinfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "kmalloc-") {
			continue
		}
		// Of slabinfo(5). The last but one are tunables.
		var name string
		var active, all, size, inSlab, pages, a, b, c, activeSlabs, slabs uint64
		if _, err := fmt.Sscanf(line, "%s %d %d %d %d %d : tunables %d %d %d : slabdata %d %d", &name, &active, &all, &size,
			&inSlab, &pages, &a, &b, &c, &activeSlabs, &slabs); err != nil {
			return 0, false
		}
		bytes += slabs * pages * uint64(os.Getpagesize())
	}
	return bytes, bytes > 0
}

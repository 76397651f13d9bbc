package fetcharg

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"bpfbench/internal/testutils"
	"bpfbench/progs"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestKernelLoadFaults: whatever is at an address, a load reads what the helper reads, or is marked as a fault where that is,
// and the kernel has nothing to say about it.
func TestKernelLoadFaults(t *testing.T) {
	testutils.NeedsBPF(t)
	tr := newTracing(t)
	tr.needs(Kprobe)
	loads := kernelLoads(t)
	if loads == nil {
		t.Skip("this kernel cannot read by loads")
	}
	log := kernelLog(t)
	d := newDriver(t, progs.FetchargProgCallStrncmp)
	// What is fetched is where these point to; of the three, two get a register. The kernel reads them, so they must not move.
	memory, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	pointers := unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), 3)
	e := tr.event(Kprobe)
	e.Target = stub
	for i := range pointers {
		for _, body := range []string{"+0(%s):u8", "+1(%s):x16", "+4(%s):s32", "+8(%s):x64", "-8(%s):x64", "+16(%s):char[4]", "+0(+0(%s))"} {
			pointer := fmt.Sprintf(`+0(\%#x)`, uintptr(unsafe.Pointer(&pointers[i])))
			e.Args = append(e.Args, mustParse(t, fmt.Sprintf("v%d=", len(e.Args))+fmt.Sprintf(body, pointer))...)
		}
	}
	var compiled [2]*Compiled
	var colls [2]*ebpf.Collection
	for i, loads := range []*Loads{nil, loads} {
		var err error
		if compiled[i], err = Compile(e, CompileOptions{Loads: loads}); err != nil {
			t.Fatal(err)
		}
		colls[i] = load(t, compiled[i])
		mustAttach(t, e, colls[i])
	}
	values, faults := 0, 0
	for chunk := range slices.Chunk(oddAddresses(t), len(pointers)) {
		copy(pointers, chunk)
		d.call(t, 1, probedA, probedB)
		var read [2][]Value
		for i, coll := range colls {
			_, record := lastRecord(t, coll)
			var err error
			if read[i], err = compiled[i].Decode(record); err != nil {
				t.Fatal(err)
			}
		}
		for i := range read[0] {
			helper, loaded := read[0][i].Data, read[1][i].Data
			if diff := cmp.Diff(helper, loaded); diff != "" {
				t.Errorf("%s with %#x: by the helper %v, by a load %v", e.Args[i], chunk, helper, loaded)
			}
			if values++; helper == (Fault{}) {
				faults++
			}
		}
	}
	t.Logf("%d values, %d of them faults", values, faults)
	if faults < values/10 || faults > values*9/10 {
		t.Error("the addresses are too much alike")
	}
	if text := log(); text != "" {
		t.Error("the kernel says:", text)
	}
}

// oddAddresses are addresses at which reading may fail, and some at which it does not. What is there does not change.
func oddAddresses(t *testing.T) []uint64 {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	list := []uint64{0, 1, 7, 8, 4095, 4096, 1<<47 - 8, 1<<47 - 4096, 1 << 47, 1<<47 + 4096, 1 << 63, 0xffff7fffffffffff, 1<<64 - 1, 1<<64 - 8, 1<<64 - 4096,
		0xffffffffff600000 - 8, 0xffffffffff600000, 0xffffffffff600ff8, 0xffffffffff600ffd, 0xffffffffff601000} // the page of vsyscalls
	for range 300 { // null, those of the process, none at all
		list = append(list, r.Uint64N(4096), r.Uint64N(1<<47), 1<<47+r.Uint64N(1<<63))
	}
	mapped, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mapped) })
	for i := range 4096 {
		mapped[i] = byte(i % 7) // with zeros among them
	}
	at := uint64(uintptr(unsafe.Pointer(&mapped[0])))
	if err := unix.Mprotect(mapped[4096:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(64) {
		list = append(list, at+i, at+4096-i, at+4096+i)
	}
	text, err := symbols(t)("vprintk") // code of the kernel does not change
	if err != nil || text == 0 {
		t.Fatalf("where vprintk is: %#x, %v", text, err)
	}
	for i := range uint64(200) {
		list = append(list, text+i)
	}
	return append(list, lastBytes(t)...)
}

// lastBytes are addresses around the ends of pages of the kernel behind which nothing is. They are known in guests alone, as
// the kernel must be told to show them.
func lastBytes(t *testing.T) (list []uint64) {
	if os.Getenv(guestVar) == "" {
		return nil
	}
	const restrict = "/proc/sys/kernel/kptr_restrict"
	was, err := os.ReadFile(restrict)
	if err == nil {
		err = os.WriteFile(restrict, []byte("1"), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	areas, err := os.ReadFile("/proc/vmallocinfo")
	if err := errors.Join(err, os.WriteFile(restrict, bytes.TrimSpace(was), 0)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(areas)) {
		var begin, end uint64
		if _, err := fmt.Sscanf(line, "0x%x-0x%x", &begin, &end); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if strings.Contains(line, "kernel_clone") && strings.Contains(line, "pages=") { // a stack, which is zero at its end or at rest
			for i := range uint64(12) {
				list = append(list, end-4096-8+i) // the last page is never there
			}
		}
		if len(list) >= 240 {
			break
		}
	}
	if len(list) == 0 {
		t.Error("no end of a page is known")
	}
	return list
}

// kernelLog returns what returns the lines of the kernel's log that are new since, and warnings at least.
func kernelLog(t *testing.T) func() string {
	t.Helper()
	f, err := os.OpenFile("/dev/kmsg", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Logf("the kernel's log is not looked at: %v", err)
		return func() string { return "" }
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_END); err != nil {
		t.Fatal(err)
	}
	return func() string {
		var text strings.Builder
		line := make([]byte, 8192)
		for {
			n, err := unix.Read(int(f.Fd()), line)
			if err != nil {
				return text.String()
			}
			var priority int
			if _, err := fmt.Sscanf(string(line[:n]), "%d,", &priority); err == nil && priority%8 <= 4 {
				s := bufio.NewScanner(bytes.NewReader(line[:n]))
				s.Scan()
				text.WriteString(s.Text() + "\n")
			}
		}
	}
}

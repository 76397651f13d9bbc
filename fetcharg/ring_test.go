package fetcharg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// rawRecords reads what is left in a trace_pipe_raw: the records of its pages, oldest first.
func rawRecords(t *testing.T, name string) [][]byte {
	t.Helper()
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	var records [][]byte
	for {
		page := make([]byte, os.Getpagesize())
		n, err := unix.Read(fd, page)
		if errors.Is(err, unix.EAGAIN) || n == 0 {
			return records
		}
		if err != nil {
			t.Fatal(err)
		}
		inPage, err := pageRecords(page[:n])
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, inPage...)
	}
}

// pageRecords takes the records out of a page of the ring buffer (events/header_page and header_event in tracefs).
func pageRecords(page []byte) (records [][]byte, err error) {
	const headerLen, commitMask = 16, 0xfffff // a time stamp and the bytes of data; the other bits are flags
	if len(page) < headerLen {
		return nil, io.ErrUnexpectedEOF
	}
	commit := binary.NativeEndian.Uint64(page[8:]) & commitMask
	data := page[headerLen:]
	if commit > uint64(len(data)) {
		return nil, fmt.Errorf("%d bytes of data in a page of %d", commit, len(page))
	}
	for data = data[:commit]; len(data) >= 4; {
		header := binary.NativeEndian.Uint32(data)
		kind, rest := header&31, data[4:] // the time since the last record is in the upper bits
		size := int(kind) * 4
		switch {
		case kind == 30 || kind == 31: // a long time since, or a time stamp
			data = rest[min(4, len(rest)):]
			continue
		case kind == 29 && header>>5 == 0: // nothing more in this page
			return records, nil
		case (kind == 0 || kind == 29) && len(rest) >= 4: // the length comes first, itself included
			size = int(binary.NativeEndian.Uint32(rest))
			rest = rest[4:]
			size -= 4
		}
		if size < 0 || size > len(rest) {
			return nil, fmt.Errorf("a record of %d bytes where %d are left", size, len(rest))
		}
		if kind != 29 {
			records = append(records, bytes.Clone(rest[:size]))
		}
		data = rest[size:]
	}
	return records, nil
}

// kallsyms are the kernel's symbols by address, for the text of type symbol.
type kallsyms struct {
	addresses []uint64
	names     []string
	from, to  uint64 // the kernel's image
}

// readKallsyms reads them once, as it takes long in a guest.
var readKallsyms = sync.OnceValues(func() (*kallsyms, error) {
	data, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		return nil, err
	}
	k := &kallsyms{}
	for line := range strings.Lines(string(data)) {
		parts := strings.Fields(line)
		address, err := strconv.ParseUint(parts[0], 16, 64)
		if err != nil || len(parts) > 3 || address == 0 {
			continue // of a module, or a per-CPU variable
		}
		switch parts[2] {
		case "_stext":
			k.from = address
		case "_end":
			k.to = address
		}
		if n := len(k.addresses); n > 0 && address <= k.addresses[n-1] {
			continue // the first name of an address is the one that is printed
		}
		k.addresses = append(k.addresses, address)
		k.names = append(k.names, parts[2])
	}
	return k, nil
})

// text returns what the kernel's %pS makes of an address in its image, or "".
func (k *kallsyms) text(address uint64) string {
	if address < k.from || address >= k.to {
		return ""
	}
	i, ok := slices.BinarySearch(k.addresses, address)
	if !ok {
		i--
	}
	return fmt.Sprintf("%s+%#x/%#x", k.names[i], address-k.addresses[i], k.addresses[i+1]-k.addresses[i])
}

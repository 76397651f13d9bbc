package fetcharg

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// kallsymsAddress finds a symbol of the running kernel.
func kallsymsAddress(name string) (uint64, error) {
	const path = "/proc/kallsyms"
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("find symbol %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	address, err := findSymbol(bufio.NewScanner(f), name)
	if err != nil {
		return 0, fmt.Errorf("find symbol %s in %s: %w", name, path, err)
	}
	return address, nil
}

// findSymbol finds a symbol in lines of "ADDRESS TYPE NAME [MODULE]". The kernel hides addresses as zeros; one that is really
// zero is that of the first per-CPU variable, and is behind others that are not.
func findSymbol(lines *bufio.Scanner, name string) (uint64, error) {
	hidden := true
	for lines.Scan() {
		at, rest, _ := bytes.Cut(lines.Bytes(), []byte{' '})
		hidden = hidden && len(bytes.Trim(at, "0")) == 0
		if len(rest) < 2 {
			continue
		}
		found, _, _ := bytes.Cut(rest[2:], []byte{'\t'})
		if string(found) != name {
			continue
		}
		address, err := strconv.ParseUint(string(at), 16, 64)
		if err == nil && address == 0 && hidden && !anyAddress(lines) {
			err = errors.New("the kernel hides addresses: root may see them (CAP_SYSLOG), if the sysctl kernel.kptr_restrict is not 2")
		}
		return address, err
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, errors.New("there is no such symbol (variables need CONFIG_KALLSYMS_ALL)")
}

// anyAddress reports whether one of the lines has an address that is not zero.
func anyAddress(lines *bufio.Scanner) bool {
	for lines.Scan() {
		at, _, _ := bytes.Cut(lines.Bytes(), []byte{' '})
		if len(bytes.Trim(at, "0")) > 0 {
			return true
		}
	}
	return false
}

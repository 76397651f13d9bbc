package producers

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"runtime"
	"testing"
)

var sites = map[string]map[Site]string{
	"amd64": {Nop: "90c3", Push: "555dc3", Ret: "c3", Nop5: "0f1f440000c3", Nop10: "662e0f1f840000000000c3", NopNop10: "90662e0f1f840000000000"},
	"arm64": {Nop: "1f2003d5c0035fd6", Push: "fd7bbfa9fd7bc1a8", Ret: "c0035fd6", Nop5: "", Nop10: "", NopNop10: ""},
}

func TestLeaf(t *testing.T) {
	n, text := uint32(77), []byte("bench\x00")
	p := &n
	for site, code := range sites[runtime.GOARCH] {
		if site.Exists() != (code != "") {
			t.Errorf("site %d exists: %v", site, site.Exists())
		}
		if !site.Exists() {
			continue
		}
		l := Leaf{Site: site, A: 8, B: &p, C: &text[0]}
		if d := l.Call(0); d != 0 {
			t.Errorf("no call took %v", d)
		}
		if d := l.Call(1000); d <= 0 {
			t.Errorf("1000 calls took %v", d)
		}
	}
}

// The location is that of the function's first instruction in the file, and what is there is what is in memory.
func TestLocation(t *testing.T) {
	for site, code := range sites[runtime.GOARCH] {
		if !site.Exists() {
			continue
		}
		want, err := hex.DecodeString(code)
		if err != nil {
			t.Fatal(err)
		}
		file, offset, err := site.Location()
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		found := false
		for _, p := range f.Progs {
			if p.Type != elf.PT_LOAD || offset < p.Off || offset >= p.Off+p.Filesz {
				continue
			}
			found = true
			got := make([]byte, len(want))
			if _, err := p.ReadAt(got, int64(offset-p.Off)); err != nil {
				t.Fatal(err)
			}
			if p.Flags&elf.PF_X == 0 || !bytes.Equal(got, want) {
				t.Errorf("at %#x of %s is %x, in a segment with flags %v, want %x", offset, file, got, p.Flags, want)
			}
		}
		if !found {
			t.Errorf("offset %#x is in no segment of %s", offset, file)
		}
		if got := site.Code(); !bytes.HasPrefix(got[:], want) || offset%64 != 0 {
			t.Errorf("at %#x of the memory is %x, want %x", offset, got, want)
		}
	}
}

package producers

import (
	"debug/elf"
	"testing"
)

func TestLeaf(t *testing.T) {
	n, text := uint32(77), []byte("bench\x00")
	p := &n
	l := Leaf{A: 8, B: &p, C: &text[0]}
	if d := l.Call(0); d != 0 {
		t.Errorf("no call took %v", d)
	}
	if d := l.Call(1000); d <= 0 {
		t.Errorf("1000 calls took %v", d)
	}
}

// The offset is that of the function's first instruction in the file.
func TestLeafLocation(t *testing.T) {
	file, offset, err := LeafLocation()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || offset < p.Off || offset >= p.Off+p.Filesz {
			continue
		}
		code := make([]byte, 4)
		if _, err := p.ReadAt(code, int64(offset-p.Off)); err != nil {
			t.Fatal(err)
		}
		want := map[elf.Machine]byte{elf.EM_X86_64: 0x90, elf.EM_AARCH64: 0x1f}[f.Machine]
		if p.Flags&elf.PF_X == 0 || code[0] != want {
			t.Errorf("at %#x of %s is %x, in a segment with flags %v", offset, file, code, p.Flags)
		}
		return
	}
	t.Errorf("offset %#x is in no segment of %s", offset, file)
}

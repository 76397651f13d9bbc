package vm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestDecoder(t *testing.T) {
	good := appendFrame(appendFrame(nil, recordFrame, []byte("payload")), messageFrame, nil)
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	for name, c := range map[string]struct {
		stream []byte
		want   string
	}{
		"good":        {good, `r"payload" m"" `},
		"empty":       {nil, ""},
		"cut":         {good[:len(good)-1], `r"payload" `},
		"magic":       {change(1, 0), `sent what is no frame, at byte 0: "\xb5`},
		"kind":        {change(2, 'x'), "sent a frame with a wrong checksum, at byte 0"},
		"length":      {change(6, 0x80), "sent a frame that claims 2147483655 bytes, at byte 0"},
		"payload":     {change(8, 'x'), "sent a frame with a wrong checksum, at byte 0"},
		"byte lost":   {append(bytes.Clone(good[:9]), good[10:]...), "sent a frame with a wrong checksum, at byte 0"},
		"text":        {[]byte("[   0.1] text"), `sent what is no frame, at byte 0: "[`},
		"text behind": {append(bytes.Clone(good), "x"...), `r"payload" m"" sent what is no frame, at byte 29: "x"`},
	} {
		for _, step := range []int{1, 3, len(c.stream) + 1} {
			t.Run(fmt.Sprint(name, step), func(t *testing.T) {
				if got := decode(c.stream, step); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		}
	}
}

// decode shows the frames of a stream that comes in pieces, and the error.
func decode(stream []byte, step int) string {
	var d decoder
	var got strings.Builder
	for len(stream) > 0 {
		n := min(step, len(stream))
		d.write(stream[:n])
		stream = stream[n:]
		for {
			f, ok, err := d.next()
			if err != nil {
				return got.String() + err.Error()
			}
			if !ok {
				break
			}
			fmt.Fprintf(&got, "%c%q ", f.kind, f.payload)
		}
	}
	return got.String()
}

// FuzzDecoder checks that what is decoded is what was sent, and how it was cut on its way does not matter.
func FuzzDecoder(f *testing.F) {
	f.Add(appendFrame(nil, helloFrame, []byte(`{"protocol":1}`)), 3)
	f.Add(append(appendFrame(nil, recordFrame, bytes.Repeat([]byte("x"), 300)), magic...), 100)
	f.Add([]byte("text"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, step int) {
		var d decoder
		d.write(stream)
		var back []byte
		for {
			fr, ok, err := d.next()
			if err != nil || !ok {
				break
			}
			back = appendFrame(back, fr.kind, fr.payload)
		}
		if !bytes.HasPrefix(stream, back) {
			t.Errorf("frames of %q are %q", stream, back)
		}
		if step < 1 {
			return
		}
		whole, _, _ := strings.Cut(decode(stream, len(stream)+1), "sent what is no frame") // quotes what has come so far
		pieces, _, _ := strings.Cut(decode(stream, step), "sent what is no frame")
		if whole != pieces {
			t.Errorf("in one %s\nin pieces of %d %s", whole, step, pieces)
		}
	})
}

func TestSession(t *testing.T) {
	hi := appendFrame(nil, helloFrame, []byte(`{"protocol":1,"release":"6.1"}`))
	with := func(k kind, payload string) []byte { return appendFrame(bytes.Clone(hi), k, []byte(payload)) }
	for name, c := range map[string]struct {
		stream []byte
		want   string
	}{
		"no hello":      {appendFrame(nil, recordFrame, []byte("x\n")), "sent a frame of kind 'r' first"},
		"hello garbled": {appendFrame(nil, helloFrame, []byte("x")), "sent a first frame that cannot be read: invalid character"},
		"kind":          {with('x', ""), "sent a frame of unknown kind 'x'"},
		"hello twice":   {append(hi, hi...), "sent a frame of unknown kind 'h'"},
		"last garbled":  {with(lastFrame, "x"), "sent a last frame that cannot be read: invalid character"},
		"record cut":    {appendFrame(with(recordFrame, "{}\n{"), lastFrame, []byte("{}")), "sent a last record line that is cut after 1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := newSession(Handler{}, func(hello) {}).feed(c.stream)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	for _, parts := range [][]string{{"a\nbc\n\nd"}, {"a", "\nb", "c\n", "\n", "d"}, {"", "a\nb", "", "c\n\nd"}} {
		var got []string
		l := lines{emit: func(line []byte) error { got = append(got, string(line)); return nil }}
		for _, p := range parts {
			if err := l.write([]byte(p)); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"a", "bc", ""}, got); diff != "" || string(l.buf) != "d" {
			t.Errorf("%q: %s, left %q", parts, diff, l.buf)
		}
	}
	l := lines{buf: make([]byte, maxLine), emit: func([]byte) error { return nil }}
	if err := l.write([]byte("x")); err == nil || err.Error() != "sent a line longer than 64 MiB" {
		t.Error(err)
	}
}

func TestConsole(t *testing.T) {
	c := newConsole(kernelRuns)
	for i := range 100 {
		fmt.Fprintf(c, "line %d\r\n", i)
	}
	io.WriteString(c, "\x1bc\x1b[?7l\x1b[2J\x1b[0mSea\tBIOS\a\x00 \xff\u202eok\r\n\r\n")
	if isClosed(c.seen) {
		t.Error("a kernel was seen")
	}
	io.WriteString(c, "[    0.000000] Linux ver")
	io.WriteString(c, "sion 6.12\nOops: first\nKernel panic - not syncing: second\nend")
	lines, trouble := c.end()
	want := []string{"Sea BIOS ok", "[    0.000000] Linux version 6.12", "Oops: first", "Kernel panic - not syncing: second", "end"}
	if diff := cmp.Diff(want, lines[consoleLines-len(want):]); diff != "" || trouble != "Oops: first" || !isClosed(c.seen) {
		t.Error(diff, trouble)
	}
}

// TestRecordWriter plays the guest's first process to the command.
func TestRecordWriter(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	command, first := os.NewFile(uintptr(pair[0]), "command"), os.NewFile(uintptr(pair[1]), "first")
	done := make(chan string)
	go func() {
		var got []byte
		buf := make([]byte, 5)
		for {
			n, err := first.Read(buf)
			got = append(got, buf[:n]...)
			if err != nil {
				done <- string(got)
				return
			}
			if bytes.HasSuffix(got, []byte("\n")) {
				first.Write([]byte{0})
			}
		}
	}()
	w := &recordWriter{rw: command}
	for _, p := range []string{"a long line\nb\n", "", "no newline", "\n"} {
		if n, err := io.WriteString(w, p); n != len(p) || err != nil {
			t.Errorf("%q: %d, %v", p, n, err)
		}
	}
	command.Close()
	if got := <-done; got != "a long line\nb\nno newline\n" {
		t.Errorf("%q", got)
	}
	if _, err := io.WriteString(w, "x\n"); err == nil || !strings.HasPrefix(err.Error(), "send record line: ") {
		t.Error(err)
	}
}

package lock

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// Holder is what a process that holds the lock says of itself. A field that it does not say is zero.
type Holder struct {
	PID     int       // in the holder's PID namespace
	Since   time.Time // it holds the lock
	What    string    // it measures
	Command string    // line
}

// HeldError says that another process holds the lock.
type HeldError struct {
	Path   string
	Holder Holder
	Waited bool // for it, in vain
}

// Error names the holder and the remedy.
func (e *HeldError) Error() string {
	s := "another measurement is running on this machine: " + e.Holder.text() + ": "
	if e.Waited {
		return s + "stop it, or try again when it has ended"
	}
	return s + "give --wait to wait for its end"
}

func (h Holder) text() string {
	if h.PID == 0 {
		return "it does not say which"
	}
	s := fmt.Sprintf("process %d", h.PID)
	if h.Command != "" {
		s += fmt.Sprintf(" (%s)", h.Command)
	}
	if h.What != "" {
		s += ", measuring " + h.What
	}
	if !h.Since.IsZero() {
		s += ", since " + h.Since.Local().Format(time.DateTime)
	}
	return s
}

// The content of the file is a line for each field: a name, a space, the value.
const (
	keyPID     = "pid"
	keySince   = "since"
	keyWhat    = "measures"
	keyCommand = "command"
)

// maxText bounds what is written and read of a text, in bytes.
const maxText = 400

func (h Holder) encode() []byte {
	return fmt.Appendf(nil, "%s %d\n%s %s\n%s %s\n%s %s\n", keyPID, h.PID, keySince, h.Since.Format(time.RFC3339),
		keyWhat, clean(h.What), keyCommand, clean(h.Command))
}

// decodeHolder reads what it can. The file is anybody's to write: it may hold anything.
func decodeHolder(content string) Holder {
	var h Holder
	for line := range strings.Lines(content) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch key {
		case keyPID:
			if pid, err := strconv.Atoi(value); err == nil && pid > 0 {
				h.PID = pid
			}
		case keySince:
			if since, err := time.Parse(time.RFC3339, value); err == nil {
				h.Since = since
			}
		case keyWhat:
			h.What = clean(value)
		case keyCommand:
			h.Command = clean(value)
		}
	}
	return h
}

// clean makes one short printable line of a text, so that it can neither break the file nor move a terminal's cursor.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, s)
	if len(s) <= maxText {
		return s
	}
	const more = "…"
	return strings.ToValidUTF8(s[:maxText-len(more)], "") + more
}

// readHolder reads who holds the lock. A holder that has just taken it has not said so yet: give it a moment.
func readHolder(path string) Holder {
	for range 5 {
		if h := decodeHolder(readSome(path)); h.PID != 0 {
			return h
		}
		time.Sleep(10 * time.Millisecond)
	}
	return Holder{}
}

func readSome(path string) string {
	fd, err := openAt(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	file := os.NewFile(uintptr(fd), path)
	defer func() { _ = file.Close() }()
	b, _ := io.ReadAll(io.LimitReader(file, 8*maxText))
	return string(b)
}

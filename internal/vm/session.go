package vm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Booted says what runs a guest that has come to its first process.
type Booted struct {
	Accel   string        // "kvm" or "tcg"
	NoKVM   error         // why "auto" did without KVM; nil if it did not
	Release string        // of the kernel: uname -r
	After   time.Duration // since the start of QEMU
}

// Exit is how a guest ended that did its task.
type Exit struct {
	Booted
	Status int // of the command; 128 plus the signal's number if one ended it
}

// Handler takes what comes from a guest. Boot calls its functions one at a time; any may be nil. They may take their
// time, as the guest does not wait for them.
type Handler struct {
	// Booted is called once, before the others.
	Booted func(Booted)
	// Record gets a record line without its newline, valid until it returns. Its error ends the guest.
	Record func(line []byte) error
	// Message gets a line that the command wrote to its standard output or error.
	Message func(line string)
}

// session is the host's end of the protocol.
type session struct {
	booted   func(hello)
	records  lines
	messages lines
	dec      decoder
	hello    bool  // came
	last     *last // nil until it came
}

func newSession(h Handler, booted func(hello)) *session {
	return &session{
		booted: booted,
		records: lines{emit: func(line []byte) error {
			if h.Record == nil {
				return nil
			}
			if err := h.Record(line); err != nil {
				return fmt.Errorf("take record line: %w", err)
			}
			return nil
		}},
		messages: lines{emit: func(line []byte) error {
			if h.Message != nil {
				h.Message(string(line))
			}
			return nil
		}},
	}
}

// feed takes the next bytes that came. Its error is a protocolError or the handler's.
func (s *session) feed(p []byte) error {
	s.dec.write(p)
	for s.last == nil {
		f, ok, err := s.dec.next()
		if err != nil || !ok {
			return err
		}
		if err := s.take(f); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) take(f frame) error {
	if !s.hello {
		return s.takeHello(f)
	}
	switch f.kind {
	case recordFrame:
		return s.records.write(f.payload)
	case messageFrame:
		return s.messages.write(f.payload)
	case lastFrame:
		return s.takeLast(f)
	default:
		return protocolErrorf("sent a frame of unknown kind %q", f.kind)
	}
}

func (s *session) takeHello(f frame) error {
	var h hello
	if f.kind != helloFrame {
		return protocolErrorf("sent a frame of kind %q first", f.kind)
	}
	if err := json.Unmarshal(f.payload, &h); err != nil {
		return protocolErrorf("sent a first frame that cannot be read: %v", err)
	}
	if h.Protocol != protocol {
		return protocolErrorf("speaks version %d of the protocol, not %d: is its binary of another version?", h.Protocol, protocol)
	}
	s.hello = true
	s.booted(h)
	return nil
}

func (s *session) takeLast(f frame) error {
	var l last
	if err := json.Unmarshal(f.payload, &l); err != nil {
		return protocolErrorf("sent a last frame that cannot be read: %v", err)
	}
	if n := len(s.records.buf); n > 0 {
		return protocolErrorf("sent a last record line that is cut after %d bytes", n)
	}
	s.last = &l
	if len(s.messages.buf) > 0 {
		return s.messages.emit(s.messages.buf)
	}
	return nil
}

// maxLine bounds a line, in bytes, so that a stream without newlines is an error before memory ends.
const maxLine = 64 << 20

// lines cuts a stream into lines.
type lines struct {
	buf  []byte // of the line that is not yet ended
	emit func(line []byte) error
}

func (l *lines) write(p []byte) error {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		line := append(l.buf, p[:i]...)
		l.buf, p = line[:0], p[i+1:]
		if err := l.emit(line); err != nil {
			return err
		}
	}
	if len(l.buf)+len(p) > maxLine {
		return protocolErrorf("sent a line longer than %d MiB", maxLine>>20)
	}
	l.buf = append(l.buf, p...)
	return nil
}

package vm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// protocol is the version of what a guest sends. Host and guest run the same binary, unless someone passes another one.
const protocol = 1

// kind says what a frame's payload is.
type kind byte

const (
	helloFrame   kind = 'h' // the first: JSON of a hello
	recordFrame  kind = 'r' // the next bytes of the stream of record lines
	messageFrame kind = 'm' // the next bytes of the stream of messages
	lastFrame    kind = 'l' // JSON of a last; nothing comes after it
)

// hello is the payload of the first frame.
type hello struct {
	Protocol int    `json:"protocol"`
	Release  string `json:"release"` // uname -r
}

// last is the payload of the last frame.
type last struct {
	Status int `json:"status"` // of the command
}

// A frame is two bytes of magic, the kind, the length of the payload, the payload, and a checksum of all that comes
// after the magic.
const (
	magic      = "\xb5\x62"
	headerSize = len(magic) + 1 + 4
	maxPayload = 64 << 10
)

type frame struct {
	kind    kind
	payload []byte
}

// appendFrame adds the frame of at most maxPayload bytes to b.
func appendFrame(b []byte, k kind, payload []byte) []byte {
	start := len(b) + len(magic)
	b = append(b, magic...)
	b = append(b, byte(k))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, payload...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:]))
}

// protocolError says how what a guest sent breaks the protocol.
type protocolError string

func (e protocolError) Error() string { return string(e) }

func protocolErrorf(format string, args ...any) error {
	return protocolError(fmt.Sprintf(format, args...))
}

// decoder takes frames out of a stream. It does not look for the next good frame after a bad one: nothing but PID 1
// writes to the port, so that what is no frame means that results may be lost, and the run has failed.
type decoder struct {
	buf []byte
	off int64 // of buf in the stream
}

func (d *decoder) write(p []byte) { d.buf = append(d.buf, p...) }

// next returns the next frame if all of it is there. Its payload is valid until the next write.
func (d *decoder) next() (f frame, ok bool, err error) {
	for i := range min(len(d.buf), len(magic)) {
		if d.buf[i] != magic[i] {
			return f, false, protocolErrorf("sent what is no frame, at byte %d: %.32q", d.off, d.buf)
		}
	}
	if len(d.buf) < headerSize {
		return f, false, nil
	}
	n := binary.LittleEndian.Uint32(d.buf[len(magic)+1:])
	if n > maxPayload {
		return f, false, protocolErrorf("sent a frame that claims %d bytes, at byte %d", n, d.off)
	}
	end := headerSize + int(n)
	if len(d.buf) < end+4 {
		return f, false, nil
	}
	if crc32.ChecksumIEEE(d.buf[len(magic):end]) != binary.LittleEndian.Uint32(d.buf[end:]) {
		return f, false, protocolErrorf("sent a frame with a wrong checksum, at byte %d", d.off)
	}
	f = frame{kind(d.buf[len(magic)]), d.buf[headerSize:end:end]}
	d.buf = d.buf[end+4:]
	d.off += int64(end + 4)
	return f, true, nil
}

package vm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// guestVar is set in the environment of a guest's command, and of it only.
const guestVar = "BENCH_GUEST"

// recordFD is where the command finds the socket for its record lines.
const recordFD = 3

// Guest returns the task and where to write record lines if this process is the command of a guest. A write has to
// hold whole lines; it returns when they have left the guest, so that sending them does not fall into what is
// measured next.
func Guest() (Task, io.Writer, bool) {
	g := guestOnce()
	return g.task, g.records, g.records != nil
}

var guestOnce = sync.OnceValue(func() (g struct {
	task    Task
	records io.Writer
}) {
	if os.Getenv(guestVar) == "" {
		return g
	}
	os.Unsetenv(guestVar) // processes that this one starts are not the command
	task, err := readTask()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: guest:", err)
		return g
	}
	unix.CloseOnExec(recordFD)
	g.task, g.records = task, &recordWriter{rw: os.NewFile(recordFD, "records")}
	return g
})

// recordWriter writes lines to a socket, and waits after each until it is answered by a byte.
type recordWriter struct {
	mu sync.Mutex
	rw io.ReadWriter
}

func (w *recordWriter) Write(p []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range bytes.Lines(p) {
		done, err := w.rw.Write(line)
		if n += done; err == nil && bytes.HasSuffix(line, []byte("\n")) {
			_, err = io.ReadFull(w.rw, make([]byte, 1))
		}
		if err != nil {
			return n, fmt.Errorf("send record line: %w", err)
		}
	}
	return n, nil
}

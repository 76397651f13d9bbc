package fetcharg_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"bpfbench/fetcharg"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
)

// watchOpens writes a line for each of the first n files that are opened on this machine. It needs root.
func watchOpens(w io.Writer, n int) error {
	args, err := fetcharg.Parse(`dir=$arg1:s32 name=+0($arg2):ustring flags=+0($arg3):x32 task=$comm`)
	if err != nil {
		return err
	}
	event := fetcharg.Event{Kind: fetcharg.Kprobe, Target: "do_sys_openat2", Args: args}
	compiled, err := fetcharg.Compile(event, fetcharg.CompileOptions{Record: fetcharg.RecordRingbuf})
	if err != nil {
		return err
	}
	compiled.Spec.Maps["records"].MaxEntries = 1 << 20
	coll, err := ebpf.NewCollection(compiled.Spec)
	if err != nil {
		return err
	}
	defer coll.Close()
	l, err := link.Kprobe(event.Target, coll.Programs[fetcharg.ProgramName], nil)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	records, err := ringbuf.NewReader(coll.Maps["records"])
	if err != nil {
		return err
	}
	defer func() { _ = records.Close() }()
	for n > 0 {
		records.SetDeadline(time.Now().Add(100 * time.Millisecond)) // the program does not wake readers
		record, err := records.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return err
		}
		values, err := compiled.Decode(record.RawSample)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, event.Target+fetcharg.FormatLine(values, args)); err != nil {
			return err
		}
		n--
	}
	return nil
}

// The arguments of an event are compiled, the program is attached, and its records are printed:
//
//	do_sys_openat2 dir=-100 name="/etc/hostname" flags=0x8000 task="cat"
func ExampleCompile() {
	if err := watchOpens(os.Stdout, 10); err != nil {
		log.Fatal(err)
	}
}

// Command bench measures what BPF maps, BPF programs and kernel probes cost. This package holds flags, verbs and wiring:
// it neither measures nor computes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"bpfbench/internal/vm"
)

// Exit statuses. Any other way out is a crash.
const (
	exitDone        = 0
	exitFailed      = 1 // a run failed, or what was named cannot run here
	exitUsage       = 2
	exitWorse       = 3 // compare found a regression
	exitInterrupted = 130
)

func main() {
	vm.Init() // does not return in the first process of a guest
	// A reader that goes away shall end the session as an error of a write does, not kill it on the spot.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:]))
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitError ends the process with a status; what there is to say has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// run executes the command line and returns the exit status.
func run(ctx context.Context, args []string) int {
	how := runFunc(measure)
	if task, records, ok := vm.Guest(); ok {
		how = measureInGuest(task, records)
	}
	root := newRoot(how)
	root.SetArgs(nameFirst(args))
	err := root.ExecuteContext(ctx)
	var usage usageError
	var exit exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		complain(err)
		return exitUsage
	}
	complain(err)
	return exitFailed
}

// complain tells the user each of the errors that err joins.
func complain(err error) {
	for _, line := range flatten(err) {
		fmt.Fprintf(os.Stderr, "bench: %s\n", line)
	}
}

// flatten is the messages of err, a line for each joined error.
func flatten(err error) []string {
	if usage, ok := err.(usageError); ok {
		return flatten(usage.error)
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, e := range joined.Unwrap() {
			lines = append(lines, flatten(e)...)
		}
		return lines
	}
	return []string{err.Error()}
}

// version is what `make` stamps: the revision and the date of the source. Without it, the module's own version tells.
var version string

func toolVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

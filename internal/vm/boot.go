// Package vm boots a Linux kernel in QEMU, with the running binary as its first process, to do a task there.
//
// The host calls Boot. In the guest, Init makes the binary the first process, which sets up the system and starts the
// binary once more, as the command; that finds its task with Guest. See docs/vm.md.
package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Options say what to boot, and on what.
type Options struct {
	Kernel  string        // for FindKernel; empty: the newest of the cache
	Accel   string        // "kvm", "tcg", or "auto" (also empty): KVM if it can run the guest
	Exact   bool          // emulate one CPU whose clock counts its instructions
	SMP     int           // CPUs; 0 is 1
	Memory  int64         // bytes; 0 is DefaultMemory
	Append  string        // further arguments to the kernel, which may override ours
	Timeout time.Duration // of all of it; 0 is none
	Files   []File        // that the guest gets besides the binary
	Binary  string        // the guest's first process; empty: the one that runs
}

// DiedError says that a guest ended, or was ended, before its task was done.
type DiedError struct {
	Reason  string   // what the host saw
	Trouble string   // the first line with which the guest's kernel reported a failure of its own; may be empty
	Console []string // the last lines of the guest's console
	QEMU    []string // and of what QEMU itself said
}

func (e *DiedError) Error() string {
	var b strings.Builder
	b.WriteString("guest " + e.Reason)
	if e.Trouble != "" {
		b.WriteString(": " + e.Trouble)
	}
	for _, part := range []struct {
		name  string
		lines []string
	}{{"QEMU said", e.QEMU}, {"the end of its console", e.Console}} {
		if len(part.lines) > 0 {
			b.WriteString("; " + part.name + ":\n    " + strings.Join(part.lines, "\n    "))
		}
	}
	return b.String()
}

// Boot boots a guest, has it do the task, hands on what comes from it, and returns when it is gone, whatever happens.
// The error is a *DiedError if the guest did not come to the end of its task.
func Boot(ctx context.Context, opt Options, task Task, h Handler) (Exit, error) {
	accel, noKVM, err := chooseAccel(opt)
	if err != nil {
		return Exit{}, err
	}
	if opt.Binary == "" { // also if its file has been replaced since the start
		opt.Binary = "/proc/self/exe"
	}
	if err := checkStatic(opt.Binary); err != nil {
		return Exit{}, err
	}
	qemu, m, err := findQEMU()
	if err != nil {
		return Exit{}, err
	}
	find := FindKernel
	if opt.Kernel == "" {
		find = func(string) (*Kernel, error) { return CachedKernel() }
	}
	kernel, err := find(opt.Kernel)
	if err != nil {
		return Exit{}, err
	}
	defer kernel.Close()
	if opt.Timeout > 0 {
		var cancel context.CancelFunc
		died := &DiedError{Reason: fmt.Sprintf("did not come to its end within %v", opt.Timeout)}
		ctx, cancel = context.WithTimeoutCause(ctx, opt.Timeout, died)
		defer cancel()
	}
	for {
		task.Accel, task.Exact = accel, opt.Exact
		a := &attempt{auto: opt.Accel != "kvm", exit: Exit{Booted: Booted{Accel: accel, NoKVM: noKVM}}}
		err := a.run(ctx, opt, qemu, qemuArgs(m, opt, kernel.File, accel), task, h)
		if !errors.As(err, new(kvmError)) {
			return a.exit, err
		}
		kvm.set(err)
		accel, noKVM = "tcg", err
	}
}

// kvmPatience is how long a kernel may be silent under KVM before KVM is given up. One that works takes a tenth of it.
var kvmPatience = 1500 * time.Millisecond

// kvmDevice is what QEMU opens for KVM.
var kvmDevice = "/dev/kvm"

// kvmError says why KVM cannot run a guest, to "auto".
type kvmError string

func (e kvmError) Error() string { return string(e) }

// kvm is what "auto" has learnt of KVM, for the boots to come: all of a session's are to be on the same.
var kvm kvmState

type kvmState struct {
	mu    sync.Mutex
	works bool
	err   error
}

func (k *kvmState) get() (works bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.works, k.err
}

func (k *kvmState) set(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.works, k.err = err == nil, err
}

// chooseAccel checks the options, and returns the accelerator to try first.
func chooseAccel(opt Options) (accel string, noKVM, err error) {
	switch opt.Accel {
	case "", "auto", "kvm", "tcg":
	default:
		return "", nil, fmt.Errorf("boot guest: accelerator %q is none of auto, kvm and tcg", opt.Accel)
	}
	if opt.Exact {
		if opt.SMP > 1 {
			return "", nil, fmt.Errorf("boot guest: exact mode counts the instructions of one CPU, but %d CPUs were asked for", opt.SMP)
		}
		if opt.Accel == "kvm" {
			return "", nil, errors.New("boot guest: exact mode emulates the CPU, so it cannot be had with kvm")
		}
		return "tcg", nil, nil
	}
	if opt.Accel == "tcg" {
		return "tcg", nil, nil
	}
	_, err = kvm.get()
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(kvmDevice, os.O_RDWR, 0); err == nil {
			f.Close()
			return "kvm", nil, nil
		}
	}
	if opt.Accel == "kvm" {
		return "", nil, fmt.Errorf("boot guest: %w", err)
	}
	return "tcg", err, nil
}

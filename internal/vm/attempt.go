package vm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// attempt is one try to boot a guest.
type attempt struct {
	auto    bool // KVM may be given up
	exit    Exit
	qemu    *process
	session *session
}

// run starts QEMU and attends to it until it is gone. Its error is a kvmError if the guest is to be tried without KVM.
func (a *attempt) run(ctx context.Context, opt Options, qemu string, args []string, task Task, h Handler) error {
	files, err := initramfs(opt.Binary, opt.Files, task)
	if err != nil {
		return err
	}
	defer files.Close()
	a.session = newSession(h, func(hi hello) {
		a.exit.Release, a.exit.After = hi.Release, time.Since(a.qemu.started)
		if a.onKVM() {
			kvm.set(nil)
		}
		if h.Booted != nil {
			h.Booted(a.exit.Booted)
		}
	})
	if a.qemu, err = startQEMU(qemu, args, files); err != nil {
		return err
	}
	defer a.qemu.kill()
	return a.attend(ctx)
}

func (a *attempt) onKVM() bool { return a.exit.Accel == "kvm" }

func (a *attempt) attend(ctx context.Context) error {
	var patience <-chan time.Time
	if works, _ := kvm.get(); a.onKVM() && a.auto && !works {
		patience = time.After(kvmPatience)
	}
	kernelRuns := a.qemu.console.seen
	for {
		select {
		case <-a.qemu.port.ready:
			data, eof := a.qemu.port.take()
			if err := a.session.feed(data); err != nil {
				if errors.As(err, new(protocolError)) {
					return a.died(err.Error())
				}
				return err
			}
			if a.session.last != nil {
				a.exit.Status = a.session.last.Status
				return nil
			}
			if eof {
				return a.gone()
			}
		case <-kernelRuns:
			kernelRuns, patience = nil, nil
		case <-patience:
			return kvmError(fmt.Sprintf("the kernel gave no sign of life under KVM within %v", kvmPatience))
		case <-a.qemu.stderr.seen:
			return a.gone()
		case <-ctx.Done():
			if died := (*DiedError)(nil); errors.As(context.Cause(ctx), &died) {
				return a.died(died.Reason)
			}
			return fmt.Errorf("run guest: %w", context.Cause(ctx))
		}
	}
}

// gone says why a guest that sent no last frame is gone.
func (a *attempt) gone() error {
	a.qemu.kill()
	console, _ := a.qemu.console.end()
	said, _ := a.qemu.stderr.end()
	kvmFailed := isClosed(a.qemu.stderr.seen)
	booted := a.session.hello
	switch {
	case a.onKVM() && a.auto && !booted && (kvmFailed || !isClosed(a.qemu.console.seen)):
		if len(said) == 0 {
			return kvmError("QEMU ended at once under KVM")
		}
		return kvmError("KVM cannot run the guest: " + said[0])
	case kvmFailed:
		return a.died("was lost as KVM failed")
	case !booted && len(console) == 0 && len(said) > 0:
		return fmt.Errorf("run QEMU: %s", strings.Join(said, "; "))
	case len(a.session.dec.buf) > 0:
		return a.died("stopped in the middle of a frame")
	default:
		return a.died("stopped before its task was done")
	}
}

// died ends the guest and gathers what there is to say of it.
func (a *attempt) died(reason string) error {
	a.qemu.kill()
	e := &DiedError{Reason: reason}
	e.Console, e.Trouble = a.qemu.console.end()
	e.QEMU, _ = a.qemu.stderr.end()
	return e
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

package vm

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pump reads a stream into memory as fast as it comes. A pipe that fills up would make QEMU tell the guest's serial
// port to wait, and the guest's course would depend on the host.
type pump struct {
	ready chan struct{} // has an entry when there is something to take
	mu    sync.Mutex
	buf   []byte
	eof   bool
}

func (p *pump) run(r io.Reader) {
	buf := make([]byte, 64<<10)
	for eof := false; !eof; {
		n, err := r.Read(buf)
		eof = err != nil
		p.mu.Lock()
		p.buf = append(p.buf, buf[:n]...)
		p.eof = eof
		p.mu.Unlock()
		select {
		case p.ready <- struct{}{}:
		default:
		}
	}
}

// take returns what has come since the last call, and whether that was all.
func (p *pump) take() (data []byte, eof bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, p.buf = p.buf, nil
	return data, p.eof
}

// process is a QEMU that runs.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	console *console // the guest's; seen: its kernel runs
	stderr  *console // QEMU's own; seen: KVM has failed
	port    pump     // the guest's frames
	ended   sync.WaitGroup
}

var (
	kernelRuns = regexp.MustCompile(`Linux version |Booting Linux on`)
	kvmFails   = regexp.MustCompile(`KVM internal error|kvm run failed`)
)

func startQEMU(file string, args []string, initramfs *os.File) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{
		cmd: exec.Command(file, args...), started: time.Now(), port: pump{ready: make(chan struct{}, 1)},
		console: newConsole(kernelRuns), stderr: newConsole(kvmFails),
	}
	p.cmd.Stdout, p.cmd.Stderr = p.console, p.stderr
	p.cmd.ExtraFiles = []*os.File{initramfs, w} // see initramfsFD and portFD
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	p.ended.Go(func() {
		// The kernel sends the death signal when the thread ends that started the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		w.Close()
		started <- err
		if err == nil {
			p.wait()
		}
	})
	if err := <-started; err != nil {
		r.Close()
		p.ended.Wait()
		return nil, fmt.Errorf("start QEMU: %w", err)
	}
	p.ended.Go(func() {
		defer r.Close()
		p.port.run(r)
	})
	return p, nil
}

// wait returns when QEMU has ended, and with it whatever it may have started (it may be a script).
func (p *process) wait() {
	pid := p.cmd.Process.Pid
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	_ = unix.Kill(-pid, unix.SIGKILL) // not waited for yet, its number cannot be another's
	_ = p.cmd.Wait()
}

// kill ends QEMU, and returns when nothing is left of it and all that it wrote has been read.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.ended.Wait()
}

package vm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mounts are the guest's file systems. The first makes the port for frames.
var mounts = []struct{ fstype, dir string }{
	{"devtmpfs", "/dev"},
	{"proc", "/proc"},
	{"sysfs", "/sys"},
	{"securityfs", "/sys/kernel/security"},
	{"debugfs", "/sys/kernel/debug"},
	{"tracefs", "/sys/kernel/tracing"},
	{"bpf", "/sys/fs/bpf"},
	{"cgroup2", "/sys/fs/cgroup"},
	{"tmpfs", "/tmp"},
	{"tmpfs", "/run"},
}

// Init is the whole life of the guest's first process: it does the task, reports and ends the guest. In any other
// process it does nothing. Call it first thing in main.
func Init() {
	if os.Getpid() != 1 {
		return
	}
	task, err := readTask()
	if errors.Is(err, fs.ErrNotExist) {
		return // the first process of a container, for example
	}
	if err == nil {
		err = serve(task)
	}
	if err != nil { // standard error is the console, of which the host shows the end
		fmt.Fprintln(os.Stderr, "bench: guest:", err)
	}
	unix.Sync()
	err = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
	panic(fmt.Sprintf("reboot: %v", err)) // the kernel panics when its first process ends, which ends it too
}

func readTask() (Task, error) {
	var t Task
	data, err := os.ReadFile(taskPath)
	if err != nil {
		return t, fmt.Errorf("read task: %w", err)
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return t, fmt.Errorf("read task: %w", err)
	}
	return t, nil
}

// serve sets up the system, runs the command and sends what comes of it. What fails in the set-up is a message:
// a kernel may lack a file system that the command does not need.
func serve(task Task) error {
	p, err := openPort()
	if err != nil {
		return err
	}
	var problems []error
	for _, m := range mounts[1:] {
		if err := mount(m.fstype, m.dir); err != nil {
			problems = append(problems, err)
		}
	}
	// From now on, only errors are to go to the console: it is slow.
	problems = append(problems, raiseLimits(), loopbackUp(), os.WriteFile("/proc/sys/kernel/printk", []byte("4"), 0))
	if task.Exact {
		problems = append(problems, seedRandom())
	}
	if err := errors.Join(problems...); err != nil {
		p.complain(err)
	}
	status, err := p.run(task)
	if err != nil {
		p.complain(err)
	}
	return p.sendJSON(lastFrame, last{status})
}

func mount(fstype, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("mount %s: %w", fstype, err)
	}
	if err := unix.Mount(fstype, dir, fstype, 0, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", fstype, dir, err)
	}
	return nil
}

// raiseLimits lifts what would bound maps (before 5.11), files and their number.
func raiseLimits() error {
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unlimited); err != nil {
		return fmt.Errorf("raise memlock limit: %w", err)
	}
	const files = 1 << 20 // fs.nr_open's default
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files}); err != nil {
		return fmt.Errorf("raise limit of open files: %w", err)
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}

// seedRandom declares the kernel's random numbers to be ready. Without a source of randomness, which exact mode must not
// have, whoever asks for them first waits while the kernel spins for 1e9 instructions to gather some.
func seedRandom() error {
	dev, err := os.OpenFile("/dev/random", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("seed random numbers: %w", err)
	}
	defer dev.Close()
	entropy := struct {
		bits, size int32
		seed       [64]byte
	}{bits: 512, size: 64} // struct rand_pool_info
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dev.Fd(), unix.RNDADDENTROPY, uintptr(unsafe.Pointer(&entropy))); errno != 0 {
		return fmt.Errorf("seed random numbers: %w", errno)
	}
	return nil
}

// port is the guest's end of the protocol.
type port struct {
	mu  sync.Mutex
	dev *os.File
	buf []byte
}

// openPort sends the first frame.
func openPort() (*port, error) {
	if err := mount(mounts[0].fstype, mounts[0].dir); err != nil {
		return nil, err
	}
	name := machines[runtime.GOARCH].port
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open port %s (needs CONFIG_SERIAL_8250 built in): %w", name, err)
	}
	raw := unix.Termios{Cflag: unix.B115200 | unix.CS8 | unix.CREAD | unix.CLOCAL}
	raw.Cc[unix.VMIN] = 1
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return nil, fmt.Errorf("set port %s raw: %w", name, err)
	}
	p := &port{dev: os.NewFile(uintptr(fd), name)}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return nil, fmt.Errorf("uname: %w", err)
	}
	return p, p.sendJSON(helloFrame, hello{protocol, unix.ByteSliceToString(uts.Release[:])})
}

// send sends a frame, and returns when it has left the guest.
func (p *port) send(k kind, payload []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf = appendFrame(p.buf[:0], k, payload)
	if _, err := p.dev.Write(p.buf); err != nil {
		return fmt.Errorf("send frame: %w", err)
	}
	// TCSBRK with a non-zero argument is tcdrain.
	if err := unix.IoctlSetInt(int(p.dev.Fd()), unix.TCSBRK, 1); err != nil {
		return fmt.Errorf("send frame: %w", err)
	}
	return nil
}

// complain sends a message; if that fails too, the last frame's sending fails likewise and is reported.
func (p *port) complain(err error) {
	_ = p.send(messageFrame, fmt.Appendf(nil, "bench: guest: %v\n", err))
}

func (p *port) sendJSON(k kind, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.send(k, payload)
}

// cannotRun is the status of a command that could not be started, as in a shell.
const cannotRun = 127

// run runs the command to its end, and to that of all that it leaves behind.
func (p *port) run(task Task) (status int, err error) {
	messages, out, err := os.Pipe()
	if err != nil {
		return cannotRun, fmt.Errorf("make pipe: %w", err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return cannotRun, fmt.Errorf("make socket pair: %w", err)
	}
	records, in := os.NewFile(uintptr(pair[0]), "records"), os.NewFile(uintptr(pair[1]), "records")
	null, err := os.Open(os.DevNull)
	if err != nil {
		return cannotRun, err
	}
	env := append([]string{guestVar + "=1", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "TERM=dumb"}, task.Env...)
	pid, err := syscall.ForkExec(initPath, append([]string{"bench"}, task.Args...), &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{null.Fd(), out.Fd(), out.Fd(), in.Fd()}, // see recordFD
	})
	if err != nil {
		return cannotRun, fmt.Errorf("start command: %w", err)
	}
	out.Close()
	in.Close()
	var forwards sync.WaitGroup
	forwards.Go(func() { p.forward(messages, messageFrame) })
	forwards.Go(func() { p.forward(records, recordFrame) })
	end := reap(pid)
	_ = unix.Kill(-1, unix.SIGKILL) // who is left would keep the pipes open
	reap(-1)
	forwards.Wait()
	if end.Signaled() {
		return 128 + int(end.Signal()), fmt.Errorf("the command was ended by a signal: %v", end.Signal())
	}
	return end.ExitStatus(), nil
}

// reap waits for processes until it has waited for that one, or there is none.
func reap(pid int) (status unix.WaitStatus) {
	for {
		switch got, err := unix.Wait4(-1, &status, 0, nil); {
		case err == unix.EINTR:
		case err != nil || got == pid:
			return status
		}
	}
}

// forward sends what comes from r until its end. Who writes records waits for a byte of answer to each line.
func (p *port) forward(r io.ReadWriter, k kind) {
	buf := make([]byte, maxPayload)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := p.send(k, buf[:n]); err != nil {
				fmt.Fprintln(os.Stderr, "bench: guest:", err)
			}
		}
		if lines := bytes.Count(buf[:n], []byte("\n")); k == recordFrame && lines > 0 {
			_, _ = r.Write(make([]byte, lines)) // fails if the writer is gone, which is no harm
		}
		if err != nil {
			return
		}
	}
}

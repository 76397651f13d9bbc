// Package lock keeps two measurements from running on one machine at the same time.
//
// The lock is flock(2) on a file, so that the kernel gives it up with the process that holds it, however that ends. What
// the file says of its holder serves messages only. The file is never deleted: a process that had opened it before
// would lock what nobody finds any more.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	fileName = "bpfbench.lock"
	// poll is the time between two attempts at a lock that is held. flock itself would wait without a way to end it.
	poll = 100 * time.Millisecond
)

// Options say which lock to take, and how.
type Options struct {
	Path string // of the lock file; empty for DefaultPath
	Wait bool   // until the lock is free, where it is held
	What string // is measured, for the message of who finds the lock held
}

// Lock is held from Acquire to Release, or to the end of the process.
type Lock struct {
	file *os.File
	once sync.Once
	err  error
}

// DefaultPath is the lock file of the machine: in /run/lock, which all users share, where there is such a folder and this
// user can make the file or finds it there, otherwise in the folder for temporary files.
func DefaultPath() string { return defaultPath("/run/lock", os.TempDir()) }

func defaultPath(shared, temporary string) string {
	path := filepath.Join(shared, fileName)
	if _, err := os.Lstat(path); err == nil || unix.Access(shared, unix.W_OK|unix.X_OK) == nil {
		return path
	}
	return filepath.Join(temporary, fileName)
}

// Acquire takes the machine's measuring lock. If another process holds it, or another Lock of this one, the error is a
// *HeldError; with Wait set it tries until the lock is free or ctx is done, and then the error is that of ctx, too.
func Acquire(ctx context.Context, o Options) (*Lock, error) {
	if o.Path == "" {
		o.Path = DefaultPath()
	}
	for {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("acquire lock %s: %w", o.Path, context.Cause(ctx))
		}
		file, err := attempt(o.Path)
		switch {
		case err == nil:
			describe(file, o.What)
			return &Lock{file: file}, nil
		case errors.Is(err, errReplaced):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("acquire lock %s: %w", o.Path, err)
		case !o.Wait:
			return nil, &HeldError{Path: o.Path, Holder: readHolder(o.Path)}
		}
		select {
		case <-ctx.Done():
			held := &HeldError{Path: o.Path, Holder: readHolder(o.Path), Waited: true}
			return nil, fmt.Errorf("wait for lock: %w: %w", context.Cause(ctx), held)
		case <-time.After(poll):
		}
	}
}

// Release gives the lock back. Only the first call does; the others return what it returned.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	l.once.Do(func() {
		// Empty the file while it is still ours. It may be open for reading only, and nothing depends on it.
		_ = l.file.Truncate(0)
		if err := l.file.Close(); err != nil {
			l.err = fmt.Errorf("release lock: %w", err)
		}
	})
	return l.err
}

// errReplaced says that the file was replaced by another between opening and locking.
var errReplaced = errors.New("lock file was replaced")

// attempt opens the file and tries to lock it. The error is EWOULDBLOCK if it is held.
func attempt(path string) (*os.File, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	if err := usable(file, path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	err = retry(func() error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil && !same(file, path) {
		err = errReplaced
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// open opens the lock file of whichever user, and makes it if there is none.
func open(path string) (*os.File, error) {
	const flags = unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK // not to hang on a FIFO
	// Another user's process may be between making the file and giving it its mode.
	deadline := time.Now().Add(time.Second)
	for {
		// Not O_CREAT at first: fs.protected_regular forbids it on another user's file in a sticky folder.
		fd, err := openAt(path, unix.O_RDWR|flags, 0)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
			fd, err = openAt(path, unix.O_RDONLY|flags, 0) // enough for flock
		}
		if errors.Is(err, unix.ENOENT) {
			fd, err = openAt(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|flags, 0o666)
			if errors.Is(err, unix.EEXIST) {
				err = unix.EAGAIN
			}
		}
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.ELOOP):
			return nil, errors.New("it is a symbolic link, which is not followed: remove it")
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES), time.Now().After(deadline):
			return nil, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func openAt(path string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Open(path, flags, mode)
		return err
	})
	return fd, err
}

// usable refuses a file that is not there for locking, and lets all users in.
func usable(file *os.File, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return errors.New("it is not a regular file: remove it")
	case st.Nlink > 1:
		// The file's content is overwritten. A link may be to any file.
		return fmt.Errorf("it has %d hard links, and one is expected: remove it", st.Nlink)
	}
	if st.Mode&0o666 != 0o666 && (os.Geteuid() == 0 || int(st.Uid) == os.Geteuid()) {
		if err := unix.Fchmod(int(file.Fd()), 0o666); err != nil {
			return fmt.Errorf("chmod: %w", err)
		}
	}
	return nil
}

// same reports whether path still names the file. Someone else may delete it.
func same(file *os.File, path string) bool {
	var opened, named unix.Stat_t
	if unix.Fstat(int(file.Fd()), &opened) != nil || unix.Lstat(path, &named) != nil {
		return false
	}
	return opened.Dev == named.Dev && opened.Ino == named.Ino
}

func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// describe writes who holds the lock into the file, which is locked. It serves messages only: an error is none.
func describe(file *os.File, what string) {
	h := Holder{PID: os.Getpid(), Since: time.Now(), What: what, Command: strings.Join(os.Args, " ")}
	if file.Truncate(0) == nil {
		_, _ = file.WriteAt(h.encode(), 0)
	}
}

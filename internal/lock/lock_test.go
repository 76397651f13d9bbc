package lock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func tempPath(t *testing.T) string { return filepath.Join(t.TempDir(), fileName) }

func acquire(t *testing.T, path string) *Lock {
	t.Helper()
	l, err := Acquire(t.Context(), Options{Path: path, What: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Release() })
	return l
}

func TestAcquireRelease(t *testing.T) {
	path := tempPath(t)
	defer unix.Umask(unix.Umask(0o077))
	l := acquire(t, path)
	st, err := os.Stat(path)
	if err != nil || st.Mode() != 0o666 {
		t.Errorf("the file has mode %v, %v; want 0666 under any umask", st.Mode(), err)
	}

	_, err = Acquire(t.Context(), Options{Path: path})
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatalf("second lock: %v, want a *HeldError", err)
	}
	if h := held.Holder; h.PID != os.Getpid() || h.What != "noop" || h.Command == "" || time.Since(h.Since) > time.Minute {
		t.Errorf("holder %+v is not this process", h)
	}
	if msg := err.Error(); !strings.Contains(msg, "--wait") || !strings.Contains(msg, "measuring noop, since ") {
		t.Errorf("message %q", msg)
	}

	if err := errors.Join(l.Release(), l.Release(), (*Lock)(nil).Release()); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || len(b) != 0 {
		t.Errorf("after release the file holds %q, %v; want nothing, and the file", b, err)
	}
	acquire(t, path)
}

func TestWait(t *testing.T) {
	path := tempPath(t)
	l := acquire(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 3*poll/2)
	defer cancel()
	_, err := Acquire(ctx, Options{Path: path, Wait: true})
	var held *HeldError
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &held) || strings.Contains(err.Error(), "--wait") {
		t.Errorf("waited in vain: %v", err)
	}

	done := make(chan error)
	go func() {
		second, err := Acquire(context.Background(), Options{Path: path, Wait: true})
		done <- errors.Join(err, second.Release())
	}()
	select {
	case err := <-done:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(2 * poll):
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	path := tempPath(t)
	if _, err := Acquire(ctx, Options{Path: path}); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file was made: %v", err)
	}
}

func TestGarbage(t *testing.T) {
	for name, content := range map[string]string{
		"empty":   "",
		"binary":  "\x00\xff\x1b[2J\n\n\n",
		"pid":     "pid -1\npid x\nsince yesterday\ncommand \n",
		"huge":    strings.Repeat("x", 1<<20),
		"hostile": "pid 7\ncommand a\x1b[31mred\r" + strings.Repeat("z", 5000) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := tempPath(t)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			l := acquire(t, path) // what a dead process has left does not hold it
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Acquire(t.Context(), Options{Path: path})
			var held *HeldError
			if !errors.As(err, &held) {
				t.Fatal(err)
			}
			msg := err.Error()
			if len(msg) > 1000 || strings.ContainsAny(msg, "\x1b\r\n\x00") {
				t.Errorf("message %q", msg)
			}
			if known := held.Holder.PID != 0; known != (name == "hostile") {
				t.Errorf("message %q", msg)
			}
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWrongFile(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, say string
		make      func(path string) error
	}{
		{"symlink", "symbolic link", func(p string) error { return os.Symlink(victim, p) }},
		{"dangling", "symbolic link", func(p string) error { return os.Symlink(filepath.Join(dir, "none"), p) }},
		{"hardlink", "2 hard links", func(p string) error { return os.Link(victim, p) }},
		{"fifo", "not a regular file", func(p string) error { return unix.Mkfifo(p, 0o666) }},
		{"folder", "directory", func(p string) error { return os.Mkdir(p, 0o777) }},
		{"nowhere", "no such file", func(string) error { return nil }},
	} {
		path := filepath.Join(dir, c.name)
		if c.name == "nowhere" {
			path = filepath.Join(dir, "no", "folder")
		}
		if err := c.make(path); err != nil {
			t.Fatal(err)
		}
		l, err := Acquire(t.Context(), Options{Path: path})
		if err == nil || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v; want %q and the path in it", c.name, l, err, c.say)
		}
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
		t.Errorf("the file that was linked to holds %q, %v", b, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "none")); err == nil {
		t.Error("a file was made through a dangling link")
	}
}

// TestReplaced: a lock on a file that is not under its name any more keeps nobody out.
func TestReplaced(t *testing.T) {
	path := tempPath(t)
	acquire(t, path)
	file, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if !same(file, path) {
		t.Error("not the same file at first")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if same(file, path) {
		t.Error("the same file, though it is gone")
	}
	acquire(t, path)
	if same(file, path) {
		t.Error("the same file, though it was replaced")
	}
}

func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write to every file")
	}
	path := tempPath(t)
	if err := os.WriteFile(path, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	acquire(t, path)
	if _, err := Acquire(t.Context(), Options{Path: path}); err == nil {
		t.Error("locked twice")
	}
}

func TestDefaultPath(t *testing.T) {
	shared, temporary := t.TempDir(), t.TempDir()
	if got := defaultPath(shared, temporary); got != filepath.Join(shared, fileName) {
		t.Errorf("writable folder: %s", got)
	}
	if got := defaultPath(filepath.Join(shared, "none"), temporary); got != filepath.Join(temporary, fileName) {
		t.Errorf("no folder: %s", got)
	}
	if os.Geteuid() == 0 {
		return
	}
	if err := os.Chmod(shared, 0o555); err != nil {
		t.Fatal(err)
	}
	if got := defaultPath(shared, temporary); got != filepath.Join(temporary, fileName) {
		t.Errorf("folder that is not writable: %s", got)
	}
}

func FuzzDecodeHolder(f *testing.F) {
	f.Add("pid 12\nsince 2026-01-02T03:04:05Z\nmeasures noop\ncommand bench noop\n")
	f.Add("pid\n\x1b")
	f.Fuzz(func(t *testing.T, s string) {
		h := decodeHolder(s)
		if strings.ContainsAny(h.text(), "\x00\x1b\n\r") {
			t.Errorf("%q", h.text())
		}
		again := decodeHolder(string(h.encode()))
		if again.PID != h.PID || again.What != h.What || again.Command != h.Command {
			t.Errorf("%+v, and %+v again", h, again)
		}
	})
}

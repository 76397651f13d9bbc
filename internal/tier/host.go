package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// args are the flags of a test binary.
func (t *tier) args(short bool) []string {
	// What go test passes, too: without paniconexit0, a test that calls os.Exit(0) would have passed.
	args := []string{"-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + t.limit.String()}
	if t.run != "" {
		args = append(args, "-test.run="+t.run)
	}
	if short || t.short {
		args = append(args, "-test.short")
	}
	return args
}

// runHere runs a binary's tests on this machine and reports them.
func (t *tier) runHere(ctx context.Context, p *place, b binary, j job) {
	s := newSuite(b.pkg)
	c, err := convert(t.test2json, s.take)
	if err != nil {
		s.problems = append(s.problems, err.Error())
	} else {
		end := j.run(ctx, t.limit, c)
		t.ended(s, b, end, c.Close())
	}
	t.out.ended(p, s)
}

// ended adds to a suite what its events do not say.
func (t *tier) ended(s *suite, b binary, end ending, err error) {
	s.elapsed = end.Elapsed
	told := strings.HasPrefix(end.Problem, "exit status") && s.count().failed > 0 // by the tests that have failed
	if end.Problem != "" && !told {
		s.problems = append(s.problems, end.Problem)
	}
	if err != nil {
		s.problems = append(s.problems, err.Error())
	}
	if len(s.tests) == 0 && b.tests > 0 && t.run == "" && s.problems == nil {
		s.problems = append(s.problems, "no test ran, although it has some")
	}
}

// host runs the tests where they are, as the user who runs this.
func (t *tier) host(ctx context.Context) error {
	p := t.out.place("host")
	for _, b := range t.bins {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.runHere(ctx, p, b, job{File: b.file, Dir: b.dir, Args: t.args(false)})
	}
	return nil
}

// nobodyID is the user and the group that own nothing.
const nobodyID = 65534

// nobody runs the tests as a user without privilege, from a folder of that user's with no more in it than a guest gets.
func (t *tier) nobody(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return nil // so was the host's run
	}
	p := t.out.place("nobody")
	dir, err := os.MkdirTemp("/tmp", fmt.Sprintf("bench-tests-%d-", os.Getpid())) // a TMPDIR of root's may be closed to others
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	env, err := nobodyEnv(dir)
	if err != nil {
		return err
	}
	for _, b := range t.bins {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		src := filepath.Join(dir, "src")
		if err := errors.Join(copyFiles(t.root, b, src), giveAway(dir)); err != nil {
			return err
		}
		at := filepath.Join(src, b.rel)
		t.runHere(ctx, p, b, job{
			File: filepath.Join(at, b.name()), Dir: at, Args: t.args(true), env: env,
			user: &syscall.Credential{Uid: nobodyID, Gid: nobodyID},
		})
		if err := os.RemoveAll(src); err != nil {
			return err
		}
	}
	return nil
}

// nobodyEnv makes the user's folders, and returns the environment that names them. There is no go command in it: root's
// caches, and what it would download, are not for this user.
func nobodyEnv(dir string) ([]string, error) {
	paths := filepath.SplitList(os.Getenv("PATH"))
	for i, p := range paths {
		if _, err := os.Stat(filepath.Join(p, "go")); err != nil {
			continue
		}
		// The folder may have other programs that tests need.
		paths[i] = filepath.Join(dir, "bin", filepath.Base(filepath.Dir(p)))
		entries, err := os.ReadDir(p)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(paths[i], 0o755); err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Name() == "go" || e.Name() == "gofmt" {
				continue
			}
			err := os.Symlink(filepath.Join(p, e.Name()), filepath.Join(paths[i], e.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "PWD"}, name) ||
			strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "XDG_")
	})
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	return append(env, "PATH="+strings.Join(paths, string(filepath.ListSeparator)), "HOME="+filepath.Join(dir, "home"),
		"TMPDIR="+filepath.Join(dir, "tmp"), "USER=nobody", "LOGNAME=nobody"), nil
}

// copyFiles copies what a binary needs to below dir.
func copyFiles(root string, b binary, dir string) error {
	files, err := b.files()
	if err != nil {
		return err
	}
	docs, err := pages(root)
	if err != nil {
		return err
	}
	maps.Copy(files, docs)
	for from, to := range files {
		if err := copyFile(from, filepath.Join(dir, to)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// giveAway makes all of a folder the user's.
func giveAway(dir string) error {
	return filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(name, nobodyID, nobodyID)
	})
}

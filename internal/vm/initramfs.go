package vm

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/cavaliergopher/cpio"
	"golang.org/x/sys/unix"
)

// Paths in the guest.
const (
	initPath = "/init"
	taskPath = "/bench.task"
)

// Task is what a guest is to do.
type Task struct {
	Args  []string `json:"args"`          // of the binary, without its name
	Env   []string `json:"env,omitempty"` // further variables, as NAME=value
	Round int      `json:"round"`         // the round of runs to do, from 0; -1 for all
	Exact bool     `json:"exact"`         // set by Boot
	Accel string   `json:"accel"`         // set by Boot: "kvm" or "tcg"
}

// File is a file that the guest gets.
type File struct {
	Host  string      // where it is
	Guest string      // where it is to be, from the root
	Mode  fs.FileMode // its permissions; 0 for those that it has on the host
}

// checkStatic refuses a binary that needs a dynamic loader, which the guest has not got.
func checkStatic(binary string) error {
	name := binary
	if target, err := os.Readlink(binary); err == nil { // /proc/self/exe would tell nobody anything
		name = target
	}
	f, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("read %s to run it in a guest: %w", name, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("run %s in a guest: it is linked dynamically: build it with CGO_ENABLED=0", name)
		}
	}
	return nil
}

// initramfs puts the guest's file system in memory, without a name that could be left behind. The same input gives the
// same bytes. They are not compressed: an emulated CPU takes longer to inflate them than QEMU to copy them.
func initramfs(binary string, files []File, task Task) (_ *os.File, err error) {
	fd, err := unix.MemfdCreate("initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "initramfs")
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	data, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	a := &archive{w: cpio.NewWriter(f), have: map[string]bool{"/": true}}
	if err := a.addFile(File{binary, initPath, 0o755}); err != nil {
		return nil, err
	}
	if err := a.add(taskPath, cpio.TypeReg|0o644, int64(len(data))); err != nil {
		return nil, err
	}
	if _, err := a.w.Write(data); err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := a.addFile(file); err != nil {
			return nil, err
		}
	}
	return f, a.w.Close()
}

// archive writes a cpio archive of the format that the kernel unpacks.
type archive struct {
	w    *cpio.Writer
	have map[string]bool
}

// add begins an entry, after those of the folders it is in.
func (a *archive) add(name string, mode cpio.FileMode, size int64) error {
	if a.have[name] {
		return fmt.Errorf("put %s into the guest: there are two of that name", name)
	}
	var dirs []string
	for dir := path.Dir(name); !a.have[dir]; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		a.have[dir] = true
	}
	for _, dir := range slices.Backward(dirs) {
		if err := a.w.WriteHeader(&cpio.Header{Name: dir[1:], Mode: cpio.TypeDir | 0o755}); err != nil {
			return err
		}
	}
	a.have[name] = true
	return a.w.WriteHeader(&cpio.Header{Name: name[1:], Mode: mode, Size: size})
}

func (a *archive) addFile(file File) error {
	f, err := os.Open(file.Host)
	if err != nil {
		return fmt.Errorf("put file into the guest: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("put %s into the guest: it is no regular file", file.Host)
	}
	if file.Mode == 0 {
		file.Mode = info.Mode()
	}
	if err := a.add(path.Clean("/"+file.Guest), cpio.TypeReg|cpio.FileMode(file.Mode.Perm()), info.Size()); err != nil {
		return err
	}
	if _, err := io.CopyN(a.w, f, info.Size()); err != nil {
		return fmt.Errorf("put %s into the guest: %w", file.Host, err)
	}
	return nil
}

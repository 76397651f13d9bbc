package vm

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Kernel is an image that QEMU can boot.
type Kernel struct {
	File    string // its path, which is gone after Close if it came out of a package
	Release string // as uname -r will say; empty if the image does not tell

	mem *os.File // what came out of a package; nil otherwise
}

// Close removes what was unpacked.
func (k *Kernel) Close() error {
	if k.mem == nil {
		return nil
	}
	return k.mem.Close()
}

// imagePaths is where a folder has kernels: of images, of a build, of a system or an unpacked package.
var imagePaths = []string{
	"vmlinuz", "vmlinuz-*", "bzImage", "Image", "boot/vmlinuz-*", "arch/x86/boot/bzImage", "arch/arm64/boot/Image",
	"usr/lib/modules/*/vmlinuz", "lib/modules/*/vmlinuz",
}

// FindKernel finds the kernel that name stands for: an image, or the newest image of a folder (such as a kernel's
// build folder or an unpacked package) or of a Debian package file. Close it after its last boot.
func FindKernel(name string) (*Kernel, error) {
	k, err := findKernel(name)
	if err != nil {
		return nil, fmt.Errorf("find kernel in %s: %w", name, err)
	}
	return k, nil
}

func findKernel(name string) (*Kernel, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err) // name is in the message already
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		kernels, err := kernelsIn(name, imagePaths)
		if len(kernels) == 0 {
			return nil, cmp.Or(err, fmt.Errorf("there is none; looked for %s", strings.Join(imagePaths, ", ")))
		}
		return kernels[len(kernels)-1], nil
	}
	var start [8]byte
	if n, _ := f.ReadAt(start[:], 0); string(start[:n]) == "!<arch>\n" {
		return unpackKernel(name)
	}
	release, err := imageRelease(f, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	return &Kernel{File: name, Release: release}, nil
}

// kernelsIn returns the kernels that match the patterns below dir, the newest last, and the first error with one.
func kernelsIn(dir string, patterns []string) (kernels []*Kernel, first error) {
	for _, p := range patterns {
		names, err := filepath.Glob(filepath.Join(dir, p))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			k, err := FindKernel(name)
			if err != nil {
				first = cmp.Or(first, err)
				continue
			}
			kernels = append(kernels, k)
		}
	}
	slices.SortStableFunc(kernels, func(a, b *Kernel) int { return compareReleases(a.Release, b.Release) })
	return kernels, first
}

// unpackKernel takes the kernel out of a Debian package, into memory, so that nothing is left behind after a kill.
func unpackKernel(deb string) (*Kernel, error) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return nil, errors.New("unpacking a package needs dpkg-deb (package dpkg): install it, or pass the vmlinuz that is in it")
	}
	cmd := exec.Command("dpkg-deb", "--fsys-tarfile", deb)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k, err := kernelInTar(out)
	if err != nil {
		_, _ = io.Copy(io.Discard, out) // so that dpkg-deb ends with the status that is its own
		if werr := cmd.Wait(); werr != nil {
			err = fmt.Errorf("unpack package: %w: %s", werr, strings.TrimSpace(stderr.String()))
		}
		return nil, err
	}
	_ = cmd.Process.Kill() // the rest of the package is not wanted
	_ = cmd.Wait()
	return k, nil
}

func kernelInTar(r io.Reader) (*Kernel, error) {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil, errors.New("the package holds no vmlinuz; Debian has those of newer kernels in linux-binary-*")
		}
		if err != nil {
			return nil, fmt.Errorf("unpack package: %w", err)
		}
		name := path.Clean("/" + h.Name)[1:]
		isImage := func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }
		if h.Typeflag != tar.TypeReg || !slices.ContainsFunc(imagePaths, isImage) {
			continue
		}
		fd, err := unix.MemfdCreate(path.Base(name), unix.MFD_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("create file in memory: %w", err)
		}
		mem := os.NewFile(uintptr(fd), name)
		release := ""
		if _, err = io.Copy(mem, t); err == nil {
			release, err = imageRelease(mem, runtime.GOARCH)
		}
		if err != nil {
			mem.Close()
			return nil, fmt.Errorf("unpack %s: %w", name, err)
		}
		return &Kernel{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), release, mem}, nil
	}
}

// noImages are the beginnings of files that people take for a kernel image, and what to do with them.
var noImages = []struct{ start, what string }{
	{"\x7fELF", "it is an ELF file (vmlinux?): pass the bzImage or Image that the build made of it, under arch/*/boot"},
	{"\x1f\x8b", "it is gzip'ed: gunzip it first"},
	{"\xfd7zXZ", "it is xz'ed: unxz it first"},
	{"\x28\xb5\x2f\xfd", "it is compressed by zstd: unzstd it first"},
	{"\xed\xab\xee\xdb", "it is an RPM package: unpack it (rpm2cpio) and pass the vmlinuz that is in it"},
}

// imageRelease checks that r is a kernel image of the architecture, and returns the release that it names.
// The formats are those of the kernel's Documentation/arch/x86/boot.rst and arm64/booting.rst.
func imageRelease(r io.ReaderAt, goarch string) (string, error) {
	head := make([]byte, 0x400)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return "", err
	}
	for _, no := range noImages {
		if bytes.HasPrefix(head[:n], []byte(no.start)) {
			return "", errors.New(no.what)
		}
	}
	arch, release := "", ""
	switch {
	case string(head[0x202:0x206]) == "HdrS" && binary.LittleEndian.Uint16(head[0x1fe:]) == 0xaa55:
		arch, release = "amd64", x86Release(r, head)
		if head[0x236]&1 == 0 { // XLF_KERNEL_64
			return "", errors.New("it is a 32-bit kernel, which cannot run this 64-bit program")
		}
	case string(head[56:60]) == "ARM\x64":
		arch, release = "arm64", arm64Release(r)
	case string(head[:2]) == "MZ" && string(head[4:8]) == "zimg": // compressed, it names neither
		arch = "arm64"
	default:
		return "", errors.New("it is no kernel image: pass a bzImage, vmlinuz or Image")
	}
	if arch != goarch {
		return "", fmt.Errorf("it is a kernel for %s, and this program is for %s", arch, goarch)
	}
	return release, nil
}

// x86Release reads the string that kernel_version of the header points to.
func x86Release(r io.ReaderAt, head []byte) string {
	version := make([]byte, 256)
	n, _ := r.ReadAt(version, int64(binary.LittleEndian.Uint16(head[0x20e:]))+0x200)
	version, _, _ = bytes.Cut(version[:n], []byte{0})
	release, _, _ := strings.Cut(string(version), " ")
	return release
}

// arm64Release looks for the kernel's banner, as the header has no version.
func arm64Release(r io.ReaderAt) string {
	all, _ := io.ReadAll(io.NewSectionReader(r, 0, 1<<30))
	if m := regexp.MustCompile(`Linux version (\d\S+) `).FindSubmatch(all); m != nil {
		return string(m[1])
	}
	return ""
}

var releaseParts = regexp.MustCompile(`\d+|\D+`)

// compareReleases orders releases by their numbers, a release candidate before its release.
func compareReleases(a, b string) int {
	split := func(s string) []string { return releaseParts.FindAllString(strings.ReplaceAll(s, "-rc", "\x00rc"), -1) }
	return slices.CompareFunc(append(split(a), "\x01"), append(split(b), "\x01"), func(x, y string) int {
		n, xerr := strconv.ParseUint(x, 10, 64)
		m, yerr := strconv.ParseUint(y, 10, 64)
		if xerr == nil && yerr == nil {
			return cmp.Compare(n, m)
		}
		return cmp.Compare(x, y)
	})
}

package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestImageRelease(t *testing.T) {
	bits32 := []byte(image("amd64", "6.1"))
	bits32[0x236] = 0
	for name, c := range map[string]struct{ content, arch, release, err string }{
		"x86":          {image("amd64", "6.12.1+deb13-cloud-amd64"), "amd64", "6.12.1+deb13-cloud-amd64", ""},
		"arm64":        {image("arm64", "6.12.1-arm64"), "arm64", "6.12.1-arm64", ""},
		"arm64 zboot":  {"MZ\x00\x00zimg" + strings.Repeat("\x00", 100), "arm64", "", ""},
		"other arch":   {image("arm64", "6.12.1"), "amd64", "", "it is a kernel for arm64, and this program is for amd64"},
		"32 bits":      {string(bits32), "amd64", "", "it is a 32-bit kernel"},
		"cut":          {image("amd64", "6.1")[:0x240], "amd64", "", ""},
		"empty":        {"", "amd64", "", "it is no kernel image"},
		"text":         {"#!/bin/sh\n", "amd64", "", "it is no kernel image: pass a bzImage, vmlinuz or Image"},
		"vmlinux":      {elfFile(false), "amd64", "", "pass the bzImage or Image"},
		"gzip'ed":      {"\x1f\x8b\x08", "arm64", "", "gunzip it first"},
		"RPM":          {"\xed\xab\xee\xdb\x03", "amd64", "", "rpm2cpio"},
		"EFI program":  {"MZ" + strings.Repeat("\x00", 0x1000), "amd64", "", "it is no kernel image"},
		"boot, no HdS": {strings.Repeat("\x00", 0x1fe) + "\x55\xaa", "amd64", "", "it is no kernel image"},
	} {
		t.Run(name, func(t *testing.T) {
			release, err := imageRelease(strings.NewReader(c.content), c.arch)
			if release != c.release || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v", release, err)
			}
		})
	}
}

func TestFindKernel(t *testing.T) {
	dir := t.TempDir()
	put := func(name, release string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(image(runtime.GOARCH, release)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := FindKernel(dir); err == nil || !strings.Contains(err.Error(), "there is none; looked for vmlinuz") {
		t.Error(err)
	}
	for _, c := range []struct{ name, release string }{ // each newer than those before
		{"boot/vmlinuz-6.9.12-amd64", "6.9.12-amd64"},
		{"usr/lib/modules/6.10.1/vmlinuz", "6.10.1"},
		{"arch/x86/boot/bzImage", "6.10.2-rc1"},
		{"vmlinuz-7.0.0", "7.0.0"},
	} {
		put(c.name, c.release)
		if k, err := FindKernel(dir); err != nil || k.Release != c.release || k.File != filepath.Join(dir, c.name) {
			t.Errorf("%s: got %+v, %v", c.name, k, err)
		}
	}
	if _, err := FindKernel(filepath.Join(dir, "none")); err == nil || !strings.HasSuffix(err.Error(), "none: no such file or directory") {
		t.Error(err)
	}
}

func TestFindKernelInPackage(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("needs dpkg-deb: ", err)
	}
	pack := func(files map[string]string) string {
		dir := t.TempDir()
		files["DEBIAN/control"] = "Package: linux-image\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"
		for name, content := range files {
			name = filepath.Join(dir, "root", name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		deb := filepath.Join(dir, "x.deb")
		if out, err := exec.Command("dpkg-deb", "--build", filepath.Join(dir, "root"), deb).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return deb
	}
	k, err := FindKernel(pack(map[string]string{"usr/lib/modules/6.5/vmlinuz": image(runtime.GOARCH, "6.5"), "usr/share/doc/vmlinuz": "no"}))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := FindKernel(k.File); err != nil || again.Release != "6.5" || k.Release != "6.5" {
		t.Error(k, again, err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(k.File); err == nil {
		t.Error("the kernel is left behind")
	}
	for want, deb := range map[string]string{
		"the package holds no vmlinuz":               pack(map[string]string{"usr/share/doc/x": "x"}),
		"unpack boot/vmlinuz-1: it is no kernel":     pack(map[string]string{"boot/vmlinuz-1": "x"}),
		"unpack package: exit status 2: dpkg-deb: e": write(t, "broken.deb", "!<arch>\nthis is none"),
	} {
		if _, err := FindKernel(deb); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	t.Setenv("PATH", "")
	if _, err := FindKernel(write(t, "x.deb", "!<arch>\n")); err == nil || !strings.Contains(err.Error(), "needs dpkg-deb") {
		t.Error(err)
	}
}

func TestCompareReleases(t *testing.T) {
	ordered := []string{
		"", "5.15.0", "6.1.0-50-cloud-amd64", "6.9", "6.12", "6.12.5", "6.12.117+deb13-cloud-amd64", "6.13.0-rc2", "6.13.0-rc10", "6.13.0", "7.3.4",
	}
	shuffled := slices.Clone(ordered)
	slices.Sort(shuffled)
	slices.SortFunc(shuffled, compareReleases)
	if !slices.Equal(ordered, shuffled) {
		t.Error(shuffled)
	}
}

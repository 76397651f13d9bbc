package vm

import (
	"crypto/sha256"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"
)

func TestInitramfs(t *testing.T) {
	binary, data := write(t, "binary", "the binary"), write(t, "data", "the data")
	files := []File{{data, "/a/b/data", 0o600}, {data, "a/other", 0}, {data, "/a/../top", 0o755}}
	sums := map[[32]byte]bool{}
	for range 2 {
		f, err := initramfs(binary, files, Task{Args: []string{"x"}, Round: -1})
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
		if err != nil {
			t.Fatal(err)
		}
		sums[sha256.Sum256(all)] = true
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for r := cpio.NewReader(f); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			got[h.Name] = h.FileInfo().Mode().String() + " " + string(content)
		}
		want := map[string]string{
			"init":       "-rwxr-xr-x the binary",
			"bench.task": `-rw-r--r-- {"args":["x"],"round":-1,"exact":false,"accel":""}`,
			"a":          "drwxr-xr-x ", "a/b": "drwxr-xr-x ",
			"a/b/data": "-rw------- the data", "a/other": "-rw-r--r-- the data", "top": "-rwxr-xr-x the data",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		f.Close()
	}
	if len(sums) != 1 {
		t.Error("two archives of the same files differ")
	}
	for want, file := range map[string]File{
		"put /init into the guest: there are two of that name":           {Host: data, Guest: "/init"},
		"put " + os.TempDir() + " into the guest: it is no regular file": {Host: os.TempDir(), Guest: "/tmp/x"},
	} {
		if _, err := initramfs(binary, []File{file}, Task{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

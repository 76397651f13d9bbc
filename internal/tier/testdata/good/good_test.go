package good

import (
	"os"
	"os/exec"
	"testing"
)

func TestFile(t *testing.T) {
	if content, err := os.ReadFile("testdata/file"); string(content) != "content\n" {
		t.Errorf("%q, %v", content, err)
	}
}

func TestPlace(t *testing.T) {
	_, err := exec.LookPath("go")
	t.Logf("uid %d, go is there: %v", os.Getuid(), err == nil)
	if err := os.WriteFile(t.TempDir()+"/x", nil, 0o600); err != nil {
		t.Error(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(home, "x")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(f.Name()) })
	f.Close()
}

func TestParts(t *testing.T) {
	t.Run("passes", func(t *testing.T) {})
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			t.Log("this is not the reason")
			t.Skip("the moon\nis full")
		})
	}
}

func FuzzSeeds(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(*testing.T, int) {})
}

package kernel_test

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bpfbench/internal/kernel"
	"bpfbench/internal/testutils"
	"bpfbench/internal/tracefs"

	"golang.org/x/sys/unix"
)

// TestHooks probes every hook. What this kernel does not have or refuses is skipped; but it may miss nothing that it is new
// enough for, unless an option of its configuration is known to be off.
func TestHooks(t *testing.T) {
	testutils.Exclusive(t)
	_ = tracefs.Mount() // a probe would, and it stays
	config := kernelConfig()
	for _, h := range kernel.Hooks() {
		t.Run(h.Name, func(t *testing.T) {
			testutils.NoLeaks(t)
			before := traces(t)
			err := h.Probe()
			if after := traces(t); after != before {
				t.Errorf("left behind: %s\nbefore: %s", after, before)
			}
			var found *kernel.Error
			if errors.As(err, &found) && found.Outcome == kernel.Missing && h.Expected() && h.SetUp == "" {
				if off := offOptions(config, h.Options); off == nil {
					t.Fatalf("%v (%v), but this kernel is new enough, and no option is known to be off", err, found.Err)
				}
			}
			if found != nil {
				t.Logf("the kernel says: %v", found.Err)
			}
			testutils.Needs(t, err)
		})
	}
}

func TestHookTable(t *testing.T) {
	names := map[string]bool{}
	for _, h := range kernel.Hooks() {
		if names[h.Name] || h.Name == "" || strings.ContainsAny(h.Name, " /") {
			t.Errorf("%q: the name is taken, or cannot be that of a test", h.Name)
		}
		names[h.Name] = true
		if h.Since == "" || len(h.Options) == 0 {
			t.Errorf("%s: nothing is said of what it needs", h.Name)
		}
	}
}

// traces returns what is there of what probes of this process make or change: events, instances, cgroups, switches.
func traces(t *testing.T) string {
	t.Helper()
	var found strings.Builder
	own := strconv.Itoa(os.Getpid())
	for _, pattern := range []string{"/sys/kernel/tracing/instances/*", "/sys/fs/cgroup/*"} {
		names, err := filepath.Glob(pattern + own)
		if err != nil {
			t.Fatal(err)
		}
		found.WriteString(strings.Join(names, " ") + "\n")
	}
	events, _ := os.ReadFile("/sys/kernel/tracing/dynamic_events")
	for line := range strings.Lines(string(events)) {
		if strings.Contains(line, own) { // others come and go
			found.WriteString(line)
		}
	}
	for _, name := range []string{"/proc/sys/net/core/bpf_jit_enable", "/sys/fs/cgroup/cgroup.subtree_control", "/proc/self/cgroup"} {
		content, _ := os.ReadFile(name)
		found.Write(content)
	}
	return found.String()
}

// kernelConfig returns the configuration of the running kernel, or nil where no file tells.
func kernelConfig() map[string]string {
	var release unix.Utsname
	if err := unix.Uname(&release); err != nil {
		return nil
	}
	for _, name := range []string{"/proc/config.gz", "/boot/config-" + unix.ByteSliceToString(release.Release[:])} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		defer f.Close()
		var from io.Reader = f
		if strings.HasSuffix(name, ".gz") {
			if from, err = gzip.NewReader(f); err != nil {
				continue
			}
		}
		config := map[string]string{}
		for lines := bufio.NewScanner(from); lines.Scan(); {
			if option, value, ok := strings.Cut(lines.Text(), "="); ok {
				config[option] = value
			}
		}
		return config
	}
	return nil
}

// offOptions returns those of the options, such as CONFIG_X=y, that the configuration is known not to have.
func offOptions(config map[string]string, options []string) []string {
	var off []string
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		if set, ok := config[name]; config != nil && (ok && set != value || !ok && value != "n") {
			off = append(off, o)
		}
	}
	return off
}

func TestOffOptions(t *testing.T) {
	config := map[string]string{"CONFIG_A": "y", "CONFIG_M": "m"}
	for option, off := range map[string]bool{
		"CONFIG_A=y": false, "CONFIG_A=n": true, "CONFIG_M=y": true, "CONFIG_B=y": true, "CONFIG_B=n": false,
	} {
		if got := offOptions(config, []string{option}); (got != nil) != off {
			t.Errorf("%s: off %v", option, got)
		}
		if got := offOptions(nil, []string{option}); got != nil {
			t.Errorf("%s: off %v, but nothing is known", option, got)
		}
	}
}

// TestProbedTwice: what a probe has undone does not stand in the way of the next one, and it answers the same.
func TestProbedTwice(t *testing.T) {
	for _, h := range kernel.Hooks() {
		first, second := h.Probe(), h.Probe()
		if (first == nil) != (second == nil) || errors.Is(first, fs.ErrExist) || errors.Is(second, fs.ErrExist) {
			t.Errorf("%s: %v at first, and then %v", h.Name, first, second)
		}
	}
}

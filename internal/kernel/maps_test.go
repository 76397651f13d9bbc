package kernel

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// asked returns a hash map of 1000 entries, changed.
func asked(change func(*ebpf.MapSpec)) *ebpf.MapSpec {
	spec := ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 1000}
	if change != nil {
		change(&spec)
	}
	return &spec
}

const gib = 1 << 30

var mapErrors = []struct {
	name      string
	err       error
	spec      *ebpf.MapSpec
	release   version
	available uint64
	want      []string
}{
	{"buckets", unix.E2BIG, asked(func(s *ebpf.MapSpec) { s.MaxEntries = 4000000000 }), version{}, 0, []string{
		"create hash map (max_entries 4000000000, key_size 4, value_size 8, map_flags 0x0: none): ", "4294967296 buckets",
		"limit of 134217728 (2^27)", "302.4 GiB", "use a max_entries of at most", "(E2BIG)"}},
	{"value", unix.E2BIG, asked(func(s *ebpf.MapSpec) { s.ValueSize = 1 << 30 }), version{}, 0, []string{
		"together 1073741828 bytes", "lower value_size"}},
	{"old key", unix.E2BIG, asked(func(s *ebpf.MapSpec) { s.KeySize = 1024 }), version{5, 10}, 0, []string{
		"up to 512 bytes"}},
	{"too big for no known reason", unix.E2BIG, asked(nil), version{}, 0, []string{"too big for this kernel"}},
	{"overflow", unix.EOVERFLOW, asked(nil), version{}, 0, []string{"overflows", "(EOVERFLOW)"}},
	{"per CPU", unix.E2BIG, asked(func(s *ebpf.MapSpec) { s.Type, s.ValueSize = ebpf.PerCPUHash, 1<<16 }), version{}, 0,
		[]string{"create percpu_hash map", "32768 bytes"}},
	{"memory", unix.ENOMEM, asked(func(s *ebpf.MapSpec) { s.ValueSize, s.MaxEntries = 4096, 1<<26 }), version{}, 8 * gib,
		[]string{"takes about 260.5 GiB", "8.0 GiB are available", "no_prealloc", "(ENOMEM)"}},
	{"flags", unix.EINVAL, asked(func(s *ebpf.MapSpec) { s.Flags = 1<<31 | unix.BPF_F_MMAPABLE }), version{}, 0, []string{
		"map_flags 0x80000400: mmapable,0x80000000", "0x80000400 (mmapable,0x80000000) do not go with a hash map",
		"takes no_prealloc,numa_node,rdonly", "(EINVAL)"}},
	{"everything", unix.EINVAL, &ebpf.MapSpec{Type: ebpf.Hash, Flags: unix.BPF_F_RDONLY | unix.BPF_F_WRONLY}, version{},
		0, []string{"max_entries is 0", "key_size is 0", "value_size is 0", "rdonly and wronly"}},
	{"array", unix.EINVAL, asked(func(s *ebpf.MapSpec) { s.Type, s.KeySize = ebpf.Array, 8 }), version{}, 0, []string{
		"key_size is 8"}},
	{"ring", unix.EINVAL, &ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: 1000}, version{}, 0, []string{"power of two"}},
	{"node", unix.EINVAL, asked(func(s *ebpf.MapSpec) { s.Flags, s.NumaNode = unix.BPF_F_NUMA_NODE, 99 }), version{}, 0,
		[]string{"no NUMA node 99"}},
	{"invalid for no known reason", unix.EINVAL, asked(nil), version{}, 0, []string{"does not say which"}},
	{"lru", enotsupp, asked(func(s *ebpf.MapSpec) { s.Type, s.Flags = ebpf.LRUHash, 1 }), version{}, 0, []string{
		"drop no_prealloc", "(ENOTSUPP)"}},
	{"memlock", unix.EPERM, asked(nil), version{5, 4}, 0, []string{"RLIMIT_MEMLOCK"}},
}

func TestExplainMap(t *testing.T) {
	for _, c := range mapErrors {
		t.Run(c.name, func(t *testing.T) {
			s := fakeSystem(t, allCaps, nil)
			if c.release != (version{}) {
				s.release = c.release
			}
			err := s.explainMap(fmt.Errorf("map create: %w", c.err), c.spec, c.available)
			var mapErr *MapError
			if !errors.As(err, &mapErr) || !errors.Is(err, c.err) {
				t.Errorf("%v: want a *MapError that holds %v", err, c.err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v: want %q in it", err, part)
				}
			}
		})
	}
}

func TestExplainMapPrivilege(t *testing.T) {
	spec := &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: unix.BPF_F_ZERO_SEED}
	var privilege *PrivilegeError
	for _, c := range []struct {
		err       error
		effective uint64
		want      string
	}{
		{unix.EPERM, 0, "CAP_BPF CAP_SYS_ADMIN"},
		{unix.EPERM, 1 << CapBPF, "CAP_SYS_ADMIN"}, // for zero_seed
		{ebpf.ErrNotSupported, 0, "CAP_BPF CAP_SYS_ADMIN"},
	} {
		err := fakeSystem(t, c.effective, nil).explainMap(c.err, spec, 0)
		if !errors.As(err, &privilege) || strings.Join(privilege.Missing, " ") != c.want {
			t.Errorf("%v with capabilities %#x: %v", c.err, c.effective, err)
		}
	}
	var refused *Error
	if err := fakeSystem(t, allCaps, nil).explainMap(unix.EPERM, spec, 0); !errors.As(err, &refused) || refused.Outcome != Refused {
		t.Errorf("refused: %v", err)
	}
	if err := ExplainMap(nil, spec); err != nil {
		t.Error(err)
	}
}

// TestMapsOfKernel asks the kernel for maps that it does not make.
func TestMapsOfKernel(t *testing.T) {
	needsBPF(t)
	for _, c := range []struct {
		spec ebpf.MapSpec
		want string
	}{
		{ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 4000000000}, "2^27"},
		{ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: MaxHashEntries + 1, Flags: 1}, "2^27"},
		{ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: uint32(maxKmalloc()) - elemSize - 4, MaxEntries: 1}, "key_size"},
		{ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 2 << 20, MaxEntries: 1 << 20}, "not enough memory"},
		{ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE}, "mmapable"},
		{ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 0}, "max_entries is 0"},
		{ebpf.MapSpec{Type: ebpf.LRUHash, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: 1}, "drop no_prealloc"},
	} {
		m, err := ebpf.NewMap(&c.spec)
		if err == nil {
			t.Errorf("the kernel makes a %s", describeMap(&c.spec))
			_ = m.Close()
			continue
		}
		var mapErr *MapError
		if err := ExplainMap(err, &c.spec); !errors.As(err, &mapErr) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: want %q in it", err, c.want)
		}
	}
	// The largest that it does make: a value of nearly KMALLOC_MAX_SIZE.
	spec := &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: uint32(maxKmalloc()) - elemSize - 5, MaxEntries: 1, Flags: 1}
	m, err := ebpf.NewMap(spec)
	if err != nil {
		t.Fatal(ExplainMap(err, spec))
	}
	_ = m.Close()
}

// needsBPF is that of package testutils, which imports this one.
func needsBPF(t *testing.T) {
	t.Helper()
	var privilege *PrivilegeError
	switch err := RawTracepoint(); {
	case errors.As(err, &privilege), errors.Is(err, errors.ErrUnsupported):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 1536 << 10: "1.5 MiB", 1 << 40: "1.0 TiB", 1<<64 - 1: "16.0 EiB",
	} {
		if got := bytes(n); got != want {
			t.Errorf("bytes(%d) = %q, want %q", n, got, want)
		}
	}
	if os.Getpagesize() == 4096 && maxKmalloc() != 4<<20 {
		t.Errorf("KMALLOC_MAX_SIZE %d", maxKmalloc())
	}
}

package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/testutils"
	"bpfbench/report"
)

// memoryCgroup makes a cgroup that bounds memory, or skips the test.
func memoryCgroup(t *testing.T) *kernel.MemoryCgroup {
	t.Helper()
	for _, h := range kernel.Hooks() {
		if h.Name == "cgroup2-memory" {
			testutils.Needs(t, h.Probe())
		}
	}
	group, err := kernel.NewMemoryCgroup(fmt.Sprintf("bpfbench-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	})
	return group
}

// bounded is a benchmark whose map, once made, has little memory left to grow in. The map belongs to the cgroup of who has
// made it; who fills it is outside of it again, so that the kernel has no process to end for want of memory.
type bounded struct {
	*hashmapLookup
	group *kernel.MemoryCgroup
	room  uint64 // bytes
}

func (c *bounded) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	r := &hashmapRun{cfg: c.hashmapLookup}
	err := c.group.Do(func() error { return r.load(env.Producers) })
	var used uint64
	if err == nil {
		used, err = c.group.Usage()
	}
	if err == nil {
		err = c.group.Limit(used + c.room)
	}
	if err == nil {
		err = r.fill(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &harness.Instance{Producer: r.producer, Close: r.close}, nil
}

// Case 7: where a map that is not preallocated runs into the limit of a memory cgroup, that is an error which names the
// entry, and there is no rate.
func TestMemoryCgroup(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	group := memoryCgroup(t)
	const room = 8 << 20
	b, cfg, err := config(t, "bpf-hashmap-lookup", "--nr_entries=1M", "--map_flags=no_prealloc")
	if err != nil {
		t.Fatal(err)
	}
	r := &harness.Runner{Plan: report.Plan{Duration: 1e6, Warmup: 1e6, Runs: 2}}
	rec := &report.Record{Results: []*report.Result{{Benchmark: b.Name, Producers: 1}}}
	var refused error
	r.Refused = func(_ int, err error) { refused = err }
	job := &harness.Job{Benchmark: b, Config: &bounded{cfg.(*hashmapLookup), group, room}, Producers: 1}
	if err := r.Run(t.Context(), rec, []*harness.Job{job}); err != nil {
		t.Fatal(err)
	}
	res := rec.Results[0]
	t.Logf("%s: %s", res.Status, res.Reason)
	if res.Status != report.Failed || len(res.Runs) != 0 || !errors.Is(refused, unix.ENOMEM) {
		t.Errorf("%s, %d runs, %v; want a failure for ENOMEM and no run", res.Status, len(res.Runs), refused)
	}
	named := regexp.MustCompile(`fill the map: insert entry (\d+): cannot allocate memory`).FindStringSubmatch(res.Reason)
	if named == nil {
		t.Fatalf("%q does not name the entry", res.Reason)
	}
	var entry uint64
	if _, err := fmt.Sscan(named[1], &entry); err != nil {
		t.Fatal(err)
	}
	// An entry takes 64 bytes or more. The kernel accounts in advance, in larger pieces.
	if most := uint64(room / 64 * 2); entry == 0 || entry > most {
		t.Errorf("entry %d did not fit into %d bytes, want one from 1 to %d", entry, room, most)
	}
}

// A map that is known not to fit into the cgroup of the process is refused before any of it is made.
func TestMemoryCgroupTooSmall(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	group := memoryCgroup(t)
	var res *report.Result
	err := group.Do(func() error {
		used, err := group.Usage()
		if err == nil {
			err = group.Limit(used + 64<<20)
		}
		if err == nil {
			res = measure(t, 1, "bpf-hashmap-lookup", "--nr_entries=1M", "--map_flags=no_prealloc")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := regexp.MatchString(`needs about 1\d\d MiB of memory, and [1-6]\d MiB are available`, res.Reason); !ok || res.Status != report.Failed {
		t.Errorf("%s: %s", res.Status, res.Reason)
	}
}

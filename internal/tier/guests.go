package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"bpfbench/internal/vm"
)

// guestVar tells tests that they have the machine to themselves.
const guestVar = "BPFBENCH_TEST_GUEST"

// memory is what a guest has, in bytes: the tests that need more are those that -short leaves out.
const memory = 3 << 30

// guest is a machine that runs test binaries.
type guest struct {
	kernel *vm.Kernel
	with   string // what is special with it, for its name; may be empty
	cpus   int
	append string // to the kernel's command line
	env    []string
	hide   []string // folders
	tests  []string // the only ones to run; nil for all
	demand []demand // what must pass there
}

// guests boots every kernel, with all the test binaries.
func (t *tier) guests(ctx context.Context) error {
	kernels, ok := t.findKernels("guests")
	if !ok {
		return nil
	}
	defer closeKernels(kernels)
	var all []guest
	for _, k := range kernels {
		all = append(all, guest{kernel: k, cpus: 2, demand: demands})
	}
	return t.bootAll(ctx, all, t.bins)
}

// bootAll runs binaries in guests, as many at once as there are CPUs that nothing else of this uses: an emulated guest takes one.
func (t *tier) bootAll(ctx context.Context, all []guest, bins []binary) error {
	var running sync.WaitGroup
	for _, g := range all {
		p := t.out.place(g.name()) // here, for their order
		running.Go(func() {
			t.slots <- true
			defer func() { <-t.slots }()
			if ctx.Err() == nil {
				t.boot(ctx, g, p, bins)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// findKernels returns the kernels to boot, the newest last, or leaves out what needs them.
func (t *tier) findKernels(what string) ([]*vm.Kernel, bool) {
	kernels, err := kernelsOf(t.kernels)
	if err == nil {
		err = haveQEMU()
	}
	if err != nil {
		closeKernels(kernels)
		t.out.leaveOut(what, err)
		return nil, false
	}
	return kernels, true
}

func closeKernels(kernels []*vm.Kernel) {
	for _, k := range kernels {
		_ = k.Close()
	}
}

// kernelsOf finds the kernels that names stand for: files, folders with kernels, or folders of those.
func kernelsOf(names []string) ([]*vm.Kernel, error) {
	if len(names) == 0 {
		return vm.CachedKernels()
	}
	var all []*vm.Kernel
	for _, name := range names {
		found, err := vm.CachedKernels(name)
		if err != nil {
			k, err := vm.FindKernel(name)
			if err != nil {
				return all, err
			}
			found = []*vm.Kernel{k}
		}
		all = append(all, found...)
	}
	return all, nil
}

// haveQEMU says how to get QEMU if it is not there. Another architecture's is not known here, and is vm's to look for.
func haveQEMU() error {
	name, known := map[string]string{"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}[runtime.GOARCH]
	if _, err := exec.LookPath(name); known && err != nil {
		return fmt.Errorf("%w: make tools installs QEMU", err)
	}
	return nil
}

// boot runs binaries in a guest and reports what came of it.
func (t *tier) boot(ctx context.Context, g guest, p *place, bins []binary) {
	run := &guestRun{tier: t, place: p, bins: bins, suites: make([]*suite, len(bins)), streams: make([]*converter, len(bins))}
	if err := run.boot(ctx, g); err != nil {
		t.out.problem(run.place, "%v", err)
	}
	run.close()
	if t.run == "" {
		for _, missing := range unmet(g.demand, g.kernel.Release, run.place) {
			t.out.problem(run.place, "%s", missing)
		}
	}
}

func (g guest) name() string {
	name := cmp.Or(g.kernel.Release, filepath.Base(g.kernel.File))
	if g.with != "" {
		name += " with " + g.with
	}
	return name
}

// guestRun is what comes from a guest, by the indexes of its jobs.
type guestRun struct {
	tier    *tier
	place   *place
	bins    []binary
	suites  []*suite
	streams []*converter // of those that run
	alive   *time.Timer  // is set anew with each note
}

// boot boots the guest and takes what it sends, until it is gone.
func (r *guestRun) boot(ctx context.Context, g guest) error {
	files, jobs, err := r.load(g)
	if err != nil {
		return err
	}
	task, err := json.Marshal(plan{Jobs: jobs, Limit: r.tier.limit, Grace: grace, Hide: g.hide})
	if err != nil {
		return err
	}
	// A job in the guest is ended by its time. If that does not come, the guest hangs as a whole.
	silence := r.tier.limit + 5*grace
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.alive = time.AfterFunc(silence, func() {
		cancel(&vm.DiedError{Reason: fmt.Sprintf("sent nothing for %v", silence)})
	})
	defer r.alive.Stop()
	exit, err := vm.Boot(ctx, vm.Options{
		Kernel: g.kernel.File, SMP: g.cpus, Memory: memory, Append: g.append, Files: files, Binary: r.tier.guest,
	}, vm.Task{Args: []string{string(task)}, Env: append([]string{guestVar + "=1"}, g.env...), Round: -1}, vm.Handler{
		Record: func(line []byte) error {
			r.alive.Reset(silence)
			return r.take(line)
		},
		Message: func(line string) { r.tier.out.message(r.place, line) },
	})
	if err == nil && exit.Status != 0 {
		err = fmt.Errorf("the guest's command ended with status %d", exit.Status)
	}
	return err
}

// load returns the files that the guest gets and what it is to run.
func (r *guestRun) load(g guest) (files []vm.File, jobs []job, err error) {
	const root = "/src"
	bring := func(from map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(from)) {
			files = append(files, vm.File{Host: name, Guest: path.Join(root, from[name])})
		}
	}
	docs, err := pages(r.tier.root)
	if err != nil {
		return nil, nil, err
	}
	bring(docs)
	args := r.tier.args(true)
	if g.tests != nil {
		args = append(args, "-test.run=^("+strings.Join(g.tests, "|")+")$")
	}
	for _, b := range r.bins {
		from, err := b.files()
		if err != nil {
			return nil, nil, err
		}
		bring(from)
		dir := path.Join(root, b.rel)
		jobs = append(jobs, job{File: path.Join(dir, b.name()), Dir: dir, Args: args})
	}
	// Where tests look for the options that the kernel was built with.
	config := filepath.Join(filepath.Dir(g.kernel.File), "config-"+g.kernel.Release)
	if _, err := os.Stat(config); err == nil {
		files = append(files, vm.File{Host: config, Guest: "/boot/config-" + g.kernel.Release})
	}
	return files, jobs, nil
}

// take takes a record line.
func (r *guestRun) take(line []byte) error {
	var n note
	if err := json.Unmarshal(line, &n); err != nil {
		return fmt.Errorf("read note: %w", err)
	}
	if n.Job < 0 || n.Job >= len(r.bins) || r.suites[n.Job] != nil && r.streams[n.Job] == nil {
		return fmt.Errorf("note of job %d, which does not run", n.Job)
	}
	if r.suites[n.Job] == nil {
		s := newSuite(r.bins[n.Job].pkg)
		c, err := convert(r.tier.test2json, s.take)
		if err != nil {
			return err
		}
		r.suites[n.Job], r.streams[n.Job] = s, c
	}
	if _, err := r.streams[n.Job].Write(n.Output); err != nil {
		return err
	}
	if n.End != nil {
		r.end(n.Job, *n.End)
	}
	return nil
}

// end reports a job that is over.
func (r *guestRun) end(i int, end ending) {
	err := r.streams[i].Close()
	r.streams[i] = nil
	r.tier.ended(r.suites[i], r.bins[i], end, err)
	r.tier.out.ended(r.place, r.suites[i])
}

// close reports as failed what has not come to its end with the guest.
func (r *guestRun) close() {
	for i, b := range r.bins {
		if r.suites[i] == nil {
			s := newSuite(b.pkg)
			s.problems = []string{"the guest ended before this began"}
			r.tier.out.ended(r.place, s)
		} else if r.streams[i] != nil {
			r.end(i, ending{Problem: "the guest ended in the midst of it"})
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// job is a test binary to run in one place, be it here or in a guest.
type job struct {
	File string   `json:"file"`
	Dir  string   `json:"dir"` // to run it in
	Args []string `json:"args"`

	env  []string            // nil for that of this process
	user *syscall.Credential // nil for that of this process
}

// ending is how a job ended.
type ending struct {
	Elapsed time.Duration `json:"elapsed"`
	Problem string        `json:"problem,omitempty"` // empty for exit status 0
}

// grace is how long past its limit a test binary may live: it ends itself, and says which test did not come to its end.
// One that does not is killed. What the kernel does not let go is given up.
var grace = 10 * time.Second

// run runs the job, with both streams of its output to out, until it is over or limit has long passed.
func (j job) run(ctx context.Context, limit time.Duration, out io.Writer) ending {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, j.File, j.Args...)
	cmd.Dir, cmd.Env = j.Dir, append(cmd.Environ(), "PWD="+j.Dir)
	if j.env != nil {
		cmd.Env = append(j.env, "PWD="+j.Dir)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: j.user}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = grace // for who has left the group and keeps the output open
	if err := cmd.Start(); err != nil {
		return ending{Problem: err.Error()}
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return ending{time.Since(start), describe(ctx, err, limit)}
	case <-time.After(limit + 4*grace):
		return ending{time.Since(start), "it cannot be killed: it hangs in the kernel"}
	}
}

// describe says why a test binary has failed, or "" if it has not.
func describe(ctx context.Context, err error, limit time.Duration) string {
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("it was killed, as it did not end itself after its time of %v", limit)
	case ctx.Err() != nil:
		return "it was interrupted"
	case err == nil:
		return ""
	case errors.Is(err, exec.ErrWaitDelay):
		return "it has ended, but a process that it left behind keeps its output open"
	case errors.As(err, &exit):
		return exit.Error()
	}
	return err.Error()
}

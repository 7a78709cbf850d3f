//go:build unix

package realzk

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawner starts processes, all from one operating system thread, which lives
// until close: Linux sends the death signal when the thread that made a child
// ends, not the process, and Go ends threads as it likes.
type spawner struct {
	requests chan spawnRequest
	wg       sync.WaitGroup // its own goroutine, and one per process that reaps it
}

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest)}
	s.wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for r := range s.requests {
			r.done <- r.cmd.Start()
		}
	})
	return s
}

// start runs a program in dir with all it prints appended to the file log. The
// process is killed when life ends. Not to be called after close.
func (s *spawner) start(life context.Context, dir, log, program string, args []string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(life, program, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = childAttr()
	r := spawnRequest{cmd, make(chan error, 1)}
	s.requests <- r
	err = <-r.done
	_ = out.Close() // the child has its own copy, and nothing was written to ours
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	s.wg.Go(func() {
		p.err = cmd.Wait()
		close(p.exited)
	})
	return p, nil
}

// close waits until all processes have been reaped, and ends the thread. The caller
// must have killed the processes.
func (s *spawner) close() {
	close(s.requests)
	s.wg.Wait()
}

// process is a child, from its start until it is reaped.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once reaped
	err    error         // how it ended; to be read after exited is closed
}

func (p *process) signal(sig syscall.Signal) error {
	return p.cmd.Process.Signal(sig)
}

// kill returns once the process is gone, or ctx ends.
func (p *process) kill(ctx context.Context) error {
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.wait(ctx)
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// wait returns once the process has been reaped, or ctx ends.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// assignmentVariable is the environment variable that makes a process a worker
// and holds its assignment.
const assignmentVariable = "PADDOCK_DEMO_ASSIGNMENT"

// assignment is what a worker has to know, as JSON.
type assignment struct {
	Number         int
	ConnectString  string
	SessionTimeout time.Duration
	Accounts       int
	Unlocked       bool
	Seed           uint64
}

// Orders are lines on a worker's standard input. Its end says that the parent
// has died.
const (
	orderPause = "pause" // wait within the next transfer, to be killed
	orderStop  = "stop"  // end what you are at, and then yourself
)

// report is a line of JSON on a worker's standard output. One field is set.
type report struct {
	State    string `json:",omitempty"` // the connection's new one
	Moved    *move  `json:",omitempty"` // a transfer that is done
	Doubtful *move  `json:",omitempty"` // one that may be done: its reply was lost
	Paused   []int  `json:",omitempty"` // the accounts whose locks it holds, waiting to be killed
}

type move struct{ From, To, Amount int }

// process is a worker as its parent sees it. All but the parent's loop leave it
// alone.
type process struct {
	number int
	pid    int
	cmd    *exec.Cmd
	orders io.WriteCloser

	state  string // of its connection
	moved  int    // transfers done
	paused []int  // it waits to be killed while it holds these
	killed bool   // by us
	ended  bool
	status error // once ended
}

// launch starts a worker. What it reports goes to told, line by line, and how
// it ended to over, both called from a goroutine of its own. The worker is
// killed when ctx ends.
func launch(ctx context.Context, a assignment, told func(*process, report), over func(*process, error)) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), assignmentVariable+"="+string(text))
	cmd.Stderr = &complaints
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	reports, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{number: a.Number, pid: cmd.Process.Pid, cmd: cmd, orders: orders}
	go func() {
		// An error here is the end of the output, or a line cut off by a kill.
		for lines := json.NewDecoder(reports); ; {
			var r report
			if lines.Decode(&r) != nil {
				break
			}
			told(p, r)
		}
		_, _ = io.Copy(io.Discard, reports) // a worker must not block on us
		err := cmd.Wait()
		if words := strings.TrimSpace(complaints.String()); err != nil && words != "" {
			err = fmt.Errorf("%w: %s", err, words)
		}
		over(p, err)
	}()
	return p, nil
}

// order tells the worker to do something. One that has died does not hear it.
func (p *process) order(line string) { _, _ = io.WriteString(p.orders, line+"\n") }

// kill ends the worker by SIGKILL: it has no chance to give anything back.
func (p *process) kill() error {
	p.killed = true
	return p.cmd.Process.Kill()
}

// dead is whether the worker was killed, by us or by somebody else.
func (p *process) dead() bool { return p.killed || slain(p.status) }

// slain is whether a process was killed, by whomever, and did not end by itself.
func slain(status error) bool {
	var exit *exec.ExitError
	return errors.As(status, &exit) && !exit.Exited()
}

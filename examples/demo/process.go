package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

// process is a worker as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	orders io.WriteCloser // its standard input; the end of it means to stop
	moved  atomic.Int64   // transfers
	held   chan [2]int    // the accounts whose locks it holds on to
	ended  chan error     // of one: how it ended
	killed bool
}

// startWorker starts this program as a worker.
func (d *demo) startWorker() error {
	settings, err := json.Marshal(settings{Servers: d.servers, SessionTimeout: d.sessionTimeout, Accounts: d.accounts, Unlocked: d.unlocked})
	if err != nil {
		return err
	}
	p := &process{cmd: exec.Command(os.Args[0]), held: make(chan [2]int, 1), ended: make(chan error, 1)} //nolint:noctx // it is stopped by stopAll or killed
	p.cmd.Env = append(os.Environ(), workerVariable+"="+string(settings))
	p.cmd.Stderr = os.Stderr
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	reports, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	d.workers = append(d.workers, p)
	go func() {
		p.read(reports)
		p.ended <- p.cmd.Wait()
	}()
	return nil
}

// read takes in what a worker reports, until it has ended.
func (p *process) read(reports io.Reader) {
	for lines := bufio.NewScanner(reports); lines.Scan(); {
		var held [2]int
		if n, _ := fmt.Sscanf(lines.Text(), "held %d %d", &held[0], &held[1]); n == 2 {
			p.held <- held
			continue
		}
		p.moved.Add(1)
	}
}

// holdOn makes a worker keep the next locks that it takes, and returns their accounts.
func (p *process) holdOn(ctx context.Context) (held [2]int, err error) {
	if _, err := fmt.Fprintln(p.orders, "hold"); err != nil {
		return held, err
	}
	select {
	case held := <-p.held:
		return held, nil
	case <-time.After(10 * time.Second):
		return held, errors.New("a worker did not come to hold its locks")
	case <-ctx.Done():
		return held, context.Cause(ctx)
	}
}

// kill ends a worker without giving it a chance to clean up.
func (p *process) kill() error {
	p.killed = true
	return p.cmd.Process.Kill()
}

// stopAll lets the workers end, and notes those that do not end cleanly.
func (d *demo) stopAll() {
	for _, p := range d.workers {
		_ = p.orders.Close()
	}
	late := time.After(d.sessionTimeout + 10*time.Second)
	for i, p := range d.workers {
		select {
		case err := <-p.ended:
			p.ended <- err
			if err != nil && !p.killed {
				d.failed = true
				d.say("worker %d ended badly: %v", i+1, err)
			}
		case <-late:
			d.failed = true
			d.say("worker %d did not end", i+1)
			return
		}
	}
}

// killAll ends what is left of the workers, and waits for them.
func (d *demo) killAll() {
	for _, p := range d.workers {
		_ = p.cmd.Process.Kill()
		<-p.ended //nolint:errcheck // it was noted
	}
}

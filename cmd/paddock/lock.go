package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// lock runs a command while it holds a lock.
func lock(ctx context.Context, inv *invocation) error {
	if inv.split < 1 || inv.split == len(inv.args) {
		return inv.verb.misuse("lock needs a path, then --, then a command")
	}
	var paths []string
	for _, arg := range inv.args[:inv.split] {
		path, err := inv.asPath(arg)
		if err != nil {
			return err
		}
		paths = append(paths, path)
		if says := inv.inFull(path); says != "" && !inv.json {
			inv.sys.complain("paddock: " + lockview.Printable(says) + ", unless " + lockview.Printable(path) + " below it is meant")
		}
	}
	command, err := newCommand(inv)
	if err != nil {
		return err
	}
	// A write to a pipe that nobody reads is an error then, and not the end of this process,
	// which would leave the lock to its session timeout.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	began := time.Now()
	connecting, cancel := context.WithTimeoutCause(ctx, inv.timeout, errTimeout)
	client, err := inv.connect(connecting)
	cancel()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	if command.grace, err = inv.graceWithin(client.SessionTimeout()); err != nil {
		return err
	}
	told := func() {}
	if isTerminal(inv.sys.err) && !inv.json {
		told = inv.tellWait(ctx, client, paths, time.Second)
	}
	hold, err := inv.acquire(inv.below(ctx), inv.lockOf(client, paths), began)
	told()
	if err != nil {
		return err
	}
	if err := inv.lockEvent("acquired", paths, hold, nil); err != nil {
		return errors.Join(err, hold.Release())
	}
	// The variables are there already below another paddock lock. Of two values of one
	// variable, some programs read the first.
	command.env = (&exec.Cmd{Env: append(os.Environ(), environment(paths, hold)...)}).Environ()
	err = command.run(ctx, client, hold, func(lost error) { _ = inv.lockEvent("lost", paths, hold, lost) })
	if released := hold.Release(); released != nil && !errors.Is(released, locks.ErrReleasePending) && err == nil {
		return fmt.Errorf("the command has ended, and the lock was lost before: %w", released)
	}
	return err
}

// lockOf is the lock that the flags speak of: of several paths, all of them as one.
func (inv *invocation) lockOf(client *framework.Client, paths []string) locks.Lock {
	opts := []locks.Option{locks.NodeData([]byte(cmp.Or(inv.id, participantID())))}
	var all []locks.Lock
	for _, path := range paths {
		switch {
		case inv.read:
			all = append(all, locks.NewInterProcessReadWriteLock(client, path, opts...).ReadLock())
		case inv.write:
			all = append(all, locks.NewInterProcessReadWriteLock(client, path, opts...).WriteLock())
		case inv.semaphore > 0:
			all = append(all, locks.NewInterProcessSemaphore(client, path, inv.semaphore, opts...))
		default:
			all = append(all, locks.NewInterProcessMutex(client, path, opts...))
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return locks.NewInterProcessMultiLock(all...)
}

// below is a context that says, below another paddock lock, that the owner has other locks. Without it a
// MultiLock that waits for one of these takes ours for its like, and both wait for ever.
func (inv *invocation) below(ctx context.Context) context.Context {
	if inv.sys.getenv("PADDOCK_LOCKS") == "" {
		return ctx
	}
	outer, _ := locks.NewHold(ctx, nil)
	return outer.Context()
}

// participantID is what others see of this process in the queue, without --id.
func participantID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s pid %d", host, os.Getpid())
}

// acquire waits as long as the flags say. --timeout counts from the beginning of the run.
func (inv *invocation) acquire(ctx context.Context, lock locks.Lock, began time.Time) (*locks.Hold, error) {
	wait := inv.wait
	if inv.try {
		wait = 0
	}
	if left := time.Until(began.Add(inv.timeout)); inv.limited && (wait == unset || left < wait) {
		wait = max(0, left)
	}
	if wait == unset {
		return lock.Acquire(ctx)
	}
	return lock.TryAcquire(ctx, wait)
}

// tellWait says whom a lock is waited for, unless what it returns is called before.
func (inv *invocation) tellWait(ctx context.Context, client *framework.Client, paths []string, after time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(after):
		}
		for _, path := range paths {
			q, err := lockview.Look(ctx, client, path, inv.semaphore)
			for i := 0; err == nil && i < len(q.Participants) && q.Participants[i].Holds; i++ {
				p := q.Participants[i]
				inv.sys.complain(fmt.Sprintf("paddock: waiting for %s, which %s has had for %s", lockview.Printable(path),
					cmp.Or(lockview.Excerpt(p.Data), "somebody"), lockview.Age(time.Duration(p.Age*float64(time.Second)))))
			}
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

// environment is what the command is told of the lock.
func environment(paths []string, hold *locks.Hold) []string {
	token := hold.FencingToken()
	tokens := make(map[string]int64)
	for _, m := range hold.Members() {
		parent, _ := framework.PathAndNode(m.Path())
		tokens[parent] = m.FencingToken()
	}
	var lines []string
	for _, path := range paths {
		lines = append(lines, strconv.FormatInt(cmp.Or(tokens[path], token), 10)+" "+path)
	}
	env := []string{"PADDOCK_LOCKS=" + strings.Join(lines, "\n"), "PADDOCK_TOKEN="}
	if token != 0 {
		env[1] += strconv.FormatInt(token, 10)
	}
	return env
}

const (
	defaultGrace = 2 * time.Second
	leastMargin  = 100 * time.Millisecond
)

// marginOf is how long before the end of a session lease the command is killed. The
// kernel and this process need some time.
func marginOf(timeout time.Duration) time.Duration { return max(leastMargin, timeout/50) }

// graceWithin is the time between SIGTERM and SIGKILL. It has to fit into what is left of
// the lease when a renewal comes. That is no less than a quarter of the session timeout
// with round trips of a twentieth, of which a third is kept for those that come late.
func (inv *invocation) graceWithin(timeout time.Duration) (time.Duration, error) {
	most := timeout/6 - marginOf(timeout)
	switch {
	case inv.grace == unset:
		return min(defaultGrace, most), nil
	case inv.grace < 0:
		return 0, inv.verb.misuse("--grace is %v: it must not be negative", inv.grace)
	case inv.grace > most:
		return 0, inv.verb.misuse("--grace is %v, and a session timeout of %v leaves room for %v: ask for a longer one with --session-timeout",
			inv.grace, timeout, most)
	}
	return inv.grace, nil
}

// lockEvent is what --json prints on the standard error.
type lockEvent struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"` // acquired or lost
	Paths []string  `json:"paths"`
	Nodes []string  `json:"nodes"`
	Token int64     `json:"token"` // 0 for none, and once the lock is lost
	Error string    `json:"error,omitempty"`
}

// lockEvent tells of the lock. Text is for what the person has to know: that it was lost.
func (inv *invocation) lockEvent(event string, paths []string, hold *locks.Hold, err error) error {
	if !inv.json {
		if err != nil {
			inv.sys.complain("paddock: the command is told to end: " + lockview.Printable(err.Error()))
		}
		return nil
	}
	e := lockEvent{Time: time.Now().UTC(), Event: event, Paths: paths, Nodes: []string{}, Token: hold.FencingToken()}
	if hold.Path() != "" {
		e.Nodes = append(e.Nodes, hold.Path())
	}
	for _, m := range hold.Members() {
		e.Nodes = append(e.Nodes, m.Path())
	}
	if err != nil {
		e.Error = err.Error()
	}
	return writeJSON(inv.sys.err, e)
}

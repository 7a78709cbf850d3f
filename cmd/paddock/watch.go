package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
	"github.com/paddock-zk/paddock/listeners"
)

// change is one line of watch.
type change struct {
	Time  time.Time `json:"time"`  // by the clock of this machine
	Event string    `json:"event"` // holds, leads, waits, gone, or the state of the connection
	Path  string    `json:"path"`
	*lockview.Participant
}

// watch prints who is there, and each change from then on.
func watch(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	if err != nil {
		return err
	}
	connecting, cancel := context.WithTimeoutCause(ctx, inv.timeout, errTimeout)
	defer cancel()
	client, err := inv.connect(connecting)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	w := &watcher{inv: inv, client: client, path: path}
	if !inv.limited {
		return w.run(ctx)
	}
	if err = w.run(connecting); errors.Is(context.Cause(connecting), errTimeout) {
		return nil // for so long it was to watch
	}
	return err
}

// watcher knows what watch has printed.
type watcher struct {
	inv    *invocation
	client *framework.Client
	path   string
	kind   lockview.Kind
	seen   []lockview.Participant // in order
}

// run looks again after each change, until ctx ends.
func (w *watcher) run(ctx context.Context) error {
	states := w.client.States().Subscribe()
	defer states.Stop()
	for {
		watches, err := w.look(ctx)
		if err == nil || errors.Is(err, framework.ErrNotConnected) && ctx.Err() == nil { // the state will tell
			err = w.await(ctx, watches, states.C)
		}
		for _, one := range watches {
			one.Stop()
		}
		if err != nil {
			return err
		}
	}
}

// await returns when there may be something new.
func (w *watcher) await(ctx context.Context, watches []*framework.Watch, states <-chan listeners.State) error {
	var wake [4]<-chan framework.Event // as many watches as there can be
	for i, one := range watches {
		wake[i] = one.C
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake[0]:
			return nil
		case <-wake[1]:
			return nil
		case <-wake[2]:
			return nil
		case <-wake[3]:
			return nil
		case state, ok := <-states:
			if !ok {
				return framework.ErrClosed
			}
			if err := w.tell(change{Event: state.String()}); err != nil {
				return err
			}
			if state.IsConnected() {
				return nil
			}
		}
	}
}

// look prints what has changed, and returns the watches that tell of the next change,
// also together with an error. They are set before the queue is read, so that no change
// is missed.
func (w *watcher) look(ctx context.Context) (watches []*framework.Watch, err error) {
	names, err := w.watchChildren(ctx, w.path, &watches)
	if errors.Is(err, framework.ErrNoNode) {
		_, _, made, err := w.client.ExistsW(ctx, w.path) // if it was made in between, its end wakes us too
		if err != nil {
			return nil, err
		}
		watches = append(watches, made)
		if names, err = w.watchChildren(ctx, w.path, &watches); errors.Is(err, framework.ErrNoNode) {
			return watches, w.compare(new(lockview.Queue))
		} else if err != nil {
			return watches, err
		}
	} else if err != nil {
		return watches, err
	}
	if is, _ := lockview.KindOf(names); is == lockview.Semaphore {
		for _, queue := range []string{lockview.Turns, lockview.Leases} {
			_, err := w.watchChildren(ctx, framework.MakePath(w.path, queue), &watches)
			if err != nil && !errors.Is(err, framework.ErrNoNode) {
				return watches, err
			}
		}
	}
	q, err := lockview.Look(ctx, w.client, w.path, w.inv.semaphore)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		q = new(lockview.Queue)
	case err != nil:
		return watches, err
	}
	return watches, w.compare(q)
}

// watchChildren lists names and adds a watch on them.
func (w *watcher) watchChildren(ctx context.Context, path string, watches *[]*framework.Watch) ([]string, error) {
	names, _, one, err := w.client.ChildrenW(ctx, path)
	if err == nil {
		*watches = append(*watches, one)
	}
	return names, err
}

// compare prints what is new in a queue.
func (w *watcher) compare(q *lockview.Queue) error {
	if q.Kind != lockview.None {
		w.kind = q.Kind
	}
	before := lockview.Queue{Participants: w.seen}
	for _, p := range before.Participants {
		if q.Place(p.Node) == 0 {
			if err := w.tell(change{Event: "gone", Participant: &p}); err != nil {
				return err
			}
		}
	}
	for _, p := range q.Participants {
		if i := before.Place(p.Node); i > 0 && before.Participants[i-1].Holds == p.Holds {
			continue
		}
		if err := w.tell(change{Event: w.kind.Words(p.Holds), Participant: &p}); err != nil {
			return err
		}
	}
	w.seen = q.Participants
	return nil
}

func (w *watcher) tell(c change) error {
	c.Time, c.Path = time.Now(), w.path
	if w.inv.json {
		c.Time = c.Time.UTC()
		return writeJSON(w.inv.sys.out, c)
	}
	line := c.Time.Format("15:04:05.000") + "  " + c.Event
	if p := c.Participant; p != nil {
		_, name := framework.PathAndNode(p.Node)
		line += fmt.Sprintf("  %s  session %v  %s", lockview.Excerpt(p.Data), p.Session, lockview.Printable(name))
	}
	return w.inv.print(line + "\n")
}

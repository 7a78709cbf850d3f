package zktest

import (
	"context"
	"fmt"
	"slices"

	"github.com/paddock-zk/paddock/internal/wire"
)

// waiter waits until something holds.
type waiter struct {
	holds func() bool
	done  chan struct{}
	err   error
}

// wait returns when holds is true. It checks after every change, so it does not
// miss a state that lasts for an instant only. An error says with now how things
// are instead. Both are called with the ensemble's lock held.
func (e *ensemble) wait(ctx context.Context, holds func() bool, now func() string) error {
	w := &waiter{holds: holds, done: make(chan struct{})}
	e.mu.Lock()
	e.waiters[w] = struct{}{}
	e.wakeWaitersLocked()
	if e.closed {
		e.endWaitersLocked()
	}
	e.mu.Unlock()
	select {
	case <-w.done:
		if w.err == nil {
			return nil
		}
		e.mu.Lock()
	case <-ctx.Done():
		e.mu.Lock()
		delete(e.waiters, w)
		w.err = context.Cause(ctx)
	}
	defer e.mu.Unlock()
	return fmt.Errorf("zktest: %s: %w", now(), w.err)
}

func (e *ensemble) wakeWaitersLocked() {
	for w := range e.waiters {
		if w.holds() {
			delete(e.waiters, w)
			close(w.done)
		}
	}
}

// endWaitersLocked ends all waits, since nothing will change any more.
func (e *ensemble) endWaitersLocked() {
	for w := range e.waiters {
		w.err = ErrClosed
		delete(e.waiters, w)
		close(w.done)
	}
}

// WaitSessionGone returns when the session is over, or with an error that wraps
// ctx's cause. A session that never existed counts as over.
func (s *Server) WaitSessionGone(ctx context.Context, id int64) error {
	return s.e.wait(ctx,
		func() bool { return s.e.sessions.byID[id] == nil },
		func() string {
			if s.e.sessions.byID[id] == nil {
				return fmt.Sprintf("session %#x is over", id)
			}
			return fmt.Sprintf("session %#x is not over", id)
		})
}

// WaitChildren returns when a node has exactly n children, or with an error that
// says how many it has and wraps ctx's cause. A node that is not there has none.
func (s *Server) WaitChildren(ctx context.Context, path string, n int) error {
	count := func() (children int, there bool) {
		stat, code := s.e.head.data.Exists(path)
		return int(stat.NumChildren), code == wire.CodeOK
	}
	return s.e.wait(ctx,
		func() bool {
			children, _ := count()
			return children == n
		},
		func() string {
			children, there := count()
			if !there {
				return fmt.Sprintf("%s is not there, and so does not have %d children", path, n)
			}
			return fmt.Sprintf("%s has %d children, not %d", path, children, n)
		})
}

// WaitWatch returns when there is a watch on path, of any kind, or with an error
// that wraps ctx's cause. A recursive watch counts only for its own path, not for
// those below.
func (s *Server) WaitWatch(ctx context.Context, path string) error {
	return s.e.wait(ctx,
		func() bool {
			return slices.ContainsFunc(s.members, func(m *member) bool {
				return m.watches.data.watched(path) || m.watches.child.watched(path)
			})
		},
		func() string { return "nobody watches " + path })
}

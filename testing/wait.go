package zktest

import (
	"context"
	"slices"
)

// waiter waits until something holds.
type waiter struct {
	holds func() bool // called with the ensemble's lock held
	done  chan struct{}
	err   error
}

// wait returns when holds is true. It checks after every change, so it does not
// miss a state that lasts for an instant only.
func (e *ensemble) wait(ctx context.Context, holds func() bool) error {
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
		return w.err
	case <-ctx.Done():
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.waiters, w)
		return context.Cause(ctx)
	}
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

// WaitSessionGone returns when the session is over, or with ctx's cause. A
// session that never existed counts as over.
func (s *Server) WaitSessionGone(ctx context.Context, id int64) error {
	return s.e.wait(ctx, func() bool { return s.e.sessions.byID[id] == nil })
}

// WaitChildren returns when a node has exactly n children, or with ctx's
// cause. A node that is not there has none.
func (s *Server) WaitChildren(ctx context.Context, path string, n int) error {
	return s.e.wait(ctx, func() bool {
		stat, _ := s.e.head.data.Exists(path)
		return int(stat.NumChildren) == n
	})
}

// WaitWatch returns when there is a watch on path, of any kind, or with ctx's
// cause. A recursive watch counts only for its own path, not for those below.
func (s *Server) WaitWatch(ctx context.Context, path string) error {
	return s.e.wait(ctx, func() bool {
		return slices.ContainsFunc(s.members, func(m *member) bool {
			return m.watches.data.watched(path) || m.watches.child.watched(path)
		})
	})
}

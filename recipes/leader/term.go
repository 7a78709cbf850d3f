package leader

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// Term is one term of leadership. Any goroutine may use and release it. A zero or nil
// Term is over.
type Term struct {
	election *election
	hold     *locks.Hold // nil for the zero Term
	number   int64
	end      context.CancelCauseFunc // of the hold's parent
	unlisten func()                  // to the hold's states; nil without EndOnSuspended

	mu    sync.Mutex // guards the fields below
	pause time.Duration
}

// Hold is the hold of the election's lock, for what a Term has no method for: Bind
// and Listen. Release the term and not the hold.
func (t *Term) Hold() *locks.Hold {
	if t == nil || t.hold == nil {
		return new(locks.Hold)
	}
	return t.hold
}

// Context is a child of the context given to Await, Run or Terms. It ends
//
//   - with its parent; the term goes on until it is released;
//   - with a cause that matches locks.ErrLockLost, before the servers can let another
//     candidate lead;
//   - with a cause that matches ErrSteppedDown, when this candidate ends the term
//     itself;
//   - with a cause that matches locks.ErrReleased, before Release gives the node back.
//
// It never begins again.
func (t *Term) Context() context.Context { return t.Hold().Context() }

// Number is the number of the term, which rises from leader to leader for the life of the
// ensemble. It is the czxid of the candidate's node, and so the fencing token of the term.
// Terms of different elections may have the same number. It stays the same when the term
// is over. Logs, errors and the command have it in decimal, as String has.
func (t *Term) Number() int64 {
	if t == nil {
		return 0
	}
	return t.number
}

// State is the present state of the candidate's node: locks.Held, Uncertain, Lost or
// Released. It asks no server. GiveWay ends the context and does not change the
// state.
func (t *Term) State() locks.HoldState { return t.Hold().State() }

// Err is nil while the state is Held or Uncertain, then a *locks.LostError or
// locks.ErrReleased.
func (t *Term) Err() error { return t.Hold().Err() }

// Path is the candidate's node, as the client knows paths.
func (t *Term) Path() string { return t.Hold().Path() }

// Transaction begins writes that the servers apply only while this term lasts. See
// locks.Hold.Transaction.
func (t *Term) Transaction() *locks.Transaction { return t.Hold().Transaction() }

// String is the number, the state and the node, for logs.
func (t *Term) String() string { return fmt.Sprintf("term %d %v", t.Number(), t.Hold()) }

// GiveWay ends the context of the term with a cause that matches ErrSteppedDown. Run and
// Terms release the term as soon as the work has returned, and stand again, at the end,
// after pause. The candidate does not leave the election. If it stands alone, nobody
// leads during the pause. With 0 or less there is no pause.
//
// The caller of Await has to release its term after GiveWay.
func (t *Term) GiveWay(pause time.Duration) {
	if t == nil || t.hold == nil {
		return
	}
	t.mu.Lock()
	t.pause = max(t.pause, pause)
	t.mu.Unlock()
	t.end(fmt.Errorf("%w: GiveWay was called", ErrSteppedDown))
}

// Release gives leadership back: it ends the context and deletes the node. The context
// ends first, and with it those of locks that were acquired under it, which stay held. It
// is safe to call more than once, and returns what locks.Hold.Release does. Run and Terms
// release their terms themselves.
func (t *Term) Release() error {
	if t == nil || t.hold == nil {
		return locks.ErrReleased
	}
	if t.unlisten != nil {
		t.unlisten()
	}
	err := t.hold.Release()
	t.election.ended(t)
	t.end(locks.ErrReleased) // so that the context given to Await forgets the term
	return err
}

// pausing is for how long the candidate shall not stand after the term.
func (t *Term) pausing() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pause
}

// endOnSuspended ends the context as soon as the node is uncertain.
func (t *Term) endOnSuspended() {
	t.unlisten = t.hold.Listen(func(s locks.HoldState) {
		if s == locks.Uncertain {
			t.end(fmt.Errorf("%w: %w", ErrSteppedDown, framework.ErrNotConnected))
		}
	})
}

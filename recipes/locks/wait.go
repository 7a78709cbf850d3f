package locks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// WaitError says why Acquire or TryAcquire gave up waiting, and which node was in its
// way. If the context or the wait of an acquisition ended, errors.As finds a *WaitError
// in its error. It reports what the waiter had last seen of others. The client asks no
// server for it.
type WaitError struct {
	// Lock is the path of the lock, in full. For a MultiLock it is the path of the
	// member that it waited for. If it waited for several whose holders are not known,
	// Lock has all these paths.
	Lock string
	// Waited is the time since Acquire or TryAcquire was called.
	Waited time.Duration
	// Ahead is how many nodes stood before ours in the queue, 0 if nobody was
	// seen there. It does not count goroutines of this client.
	Ahead int
	// Holder is the node at the front of the queue, in full. It belongs to the holder, to
	// one of several readers, or to the next owner if the holder has just gone. For a
	// semaphore it is the oldest lease, or the node of the caller that is served first.
	// It is "" if the client does not know it.
	Holder string
	// HolderSession is the session of Holder, 0 if it is not known. Servers log it
	// in hexadecimal.
	HolderSession int64
	// Local is whether Holder belongs to this client. It means nothing if HolderSession
	// is 0.
	Local bool
	// Has are the paths of the members that a MultiLock had by then, in full, and Wants
	// those of the others. It has a member when it is first in that queue. Members of
	// types of your own have no path here. Both are empty for all other locks.
	Has, Wants []string
	// Err is ErrNotAcquired or framework.ErrNotConnected from TryAcquire, or the end
	// of the caller's context. From Acquire the latter also matches
	// framework.ErrNotConnected if there was no connection when the context ended.
	Err error
}

// Error implements error.
func (e *WaitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v (waited %v", e.Err, e.Waited.Round(time.Millisecond))
	switch {
	case e.Holder != "":
		b.WriteString(" behind " + e.Holder)
	case e.Ahead > 0:
		b.WriteString(" in the queue of " + e.Lock)
	default:
		b.WriteString(" for " + e.Lock)
	}
	if e.Local {
		b.WriteString(", which this client has")
	} else if e.HolderSession != 0 {
		fmt.Fprintf(&b, " of session %#x", uint64(e.HolderSession))
	}
	if e.Ahead > 1 {
		fmt.Fprintf(&b, ", %d ahead", e.Ahead)
	}
	if len(e.Has) > 0 {
		b.WriteString("; has " + brief(e.Has))
		if len(e.Wants) > 0 {
			b.WriteString(", wants " + brief(e.Wants))
		}
	}
	b.WriteByte(')')
	return b.String()
}

// Unwrap gives Err.
func (e *WaitError) Unwrap() error { return e.Err }

// brief are the first of some paths.
func brief(paths []string) string {
	if more := len(paths) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:3], ", "), more)
	}
	return strings.Join(paths, ", ")
}

// limit is how long an acquisition may wait.
type limit struct {
	bounded bool
	wait    time.Duration
}

var noLimit = limit{}

// once is to ask and not to queue.
func (l limit) once() bool { return l.bounded && l.wait <= 0 }

// begin starts the clock. A caller that does not want to wait for a lock gets an error at
// once if there is no connection. The time to ask is limited to how long a server may be
// silent.
func (l limit) begin(ctx context.Context, s *session.Session, lock string) (context.Context, context.CancelFunc, error) {
	switch {
	case !l.bounded:
		return ctx, func() {}, nil
	case !l.once():
		limited, cancel := context.WithTimeout(ctx, l.wait)
		return limited, cancel, nil
	case !s.Writable():
		return nil, nil, &WaitError{Lock: lock, Err: s.NotConnected("")}
	}
	limited, cancel := context.WithTimeout(ctx, s.Timeout()*2/3)
	return limited, cancel, nil
}

// rest is what is left of a limit that ends at that time. A step that comes late still asks,
// without waiting.
func (l limit) rest(until time.Time) limit {
	if l.bounded && l.wait > 0 {
		l.wait = max(0, time.Until(until))
	}
	return l
}

// verdict says why an acquisition failed: the caller's context ended, the wait ended with
// or without the knowledge that another owner has the lock, or an error came. For
// TryAcquire no error matches two of the first three. limited is the context that the wait
// was limited by.
func (l limit) verdict(ctx, limited context.Context, s *session.Session, lock string, began time.Time, err error) error {
	var in *acquire.Obstacle
	var why, failure error
	if stopped := (*acquire.StoppedError)(nil); errors.As(err, &stopped) {
		err, in = stopped.Err, stopped.InTheWay
		if in == nil && s.Writable() { // connected again, say
			failure = stopped.Failure
		}
	}
	switch {
	case errors.Is(err, session.ErrClosed):
		return err
	case ctx.Err() != nil:
		why = contextend.Of(ctx)
		if !s.Writable() {
			format := "%w: %w"
			if l.bounded {
				format = "%w: %v"
			}
			why = fmt.Errorf(format, why, s.NotConnected(""))
		} else if failure != nil {
			why = fmt.Errorf("%w: %v", why, failure) //nolint:errorlint // told, and not to be matched: it has passed
		}
	case errors.Is(err, ErrNotAcquired):
		why = err // which may say more
	case limited.Err() == nil:
		return err
	case in != nil && s.Writable():
		why = ErrNotAcquired
	case failure != nil:
		why = fmt.Errorf("%w: %v", session.ErrNotConnected, failure) //nolint:errorlint // likewise
	default:
		why = s.NotConnected("")
	}
	told := &WaitError{Lock: lock, Waited: time.Since(began), Err: why}
	if in != nil {
		told.Lock, told.Ahead, told.Holder, told.HolderSession = in.Lock, in.Ahead, in.Node, in.Session
		told.Has = in.Has
		told.Local = in.Local || in.Session != 0 && in.Session == s.ID()
	}
	return told
}

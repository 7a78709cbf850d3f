package locks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// WaitError says why Acquire or TryAcquire gave up waiting, and what it knew of
// who was in its way. It is in the *framework.OpError of each acquisition that
// ended by its context or its wait; errors.As finds it. What it says of others
// was true when the servers last told of them: no server is asked for it.
type WaitError struct {
	// Lock is the path of the lock, in full; of a MultiLock, the member that was
	// waited for, or all members that were if it is not known whom they belong to.
	Lock string
	// Waited is the time since Acquire or TryAcquire was called.
	Waited time.Duration
	// Ahead is how many nodes stood before ours in the queue, 0 if nobody was
	// seen there. It does not count goroutines of this client.
	Ahead int
	// Holder is the node at the front of the queue, in full: that of the holder,
	// of one of several readers, or of who is next if the holder has just gone. Of
	// a semaphore it is the oldest lease, or who is served first. "" if it is not
	// known.
	Holder string
	// HolderSession is the session of Holder, 0 if it is not known. Servers log it
	// in hexadecimal.
	HolderSession int64
	// Local is whether Holder is known to be this client's. Where HolderSession is 0
	// that is not known.
	Local bool
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
	b.WriteByte(')')
	return b.String()
}

// Unwrap gives Err.
func (e *WaitError) Unwrap() error { return e.Err }

// obstacle is who was in the way of an acquisition, nil if nobody was seen. It is
// made only for an error.
type obstacle struct {
	lock    string // in full
	node    string // at the front of the queue, in full, "" if it is not known
	session int64  // of that node, 0 if it is not known
	ahead   int    // how many nodes stand before ours
	local   bool   // the node is this client's
}

// ending is how an acquisition ended without a hold.
type ending struct {
	ctx, limited context.Context // the caller's, and the one that the wait is limited by
	tries        bool            // it is TryAcquire
	lock         string          // in full
	waited       time.Duration
	obstacle     *obstacle
}

// verdict says why: the end of the caller's context, the end of the wait with or
// without having learned that somebody has the lock, or what was met. Of
// TryAcquire no error matches two of the first three.
func (e *ending) verdict(s *session.Session, err error) error {
	var why error
	switch {
	case errors.Is(err, session.ErrClosed):
		return err
	case e.ctx.Err() != nil:
		why = foreign.ContextEnd(e.ctx)
		if !s.Writable() {
			format := "%w: %w"
			if e.tries {
				format = "%w: %v"
			}
			why = fmt.Errorf(format, why, s.NotConnected(""))
		}
	case errors.Is(err, ErrNotAcquired):
		why = ErrNotAcquired
	case e.limited.Err() == nil:
		return err
	case e.obstacle != nil && s.Writable():
		why = ErrNotAcquired
	default:
		why = s.NotConnected("")
	}
	told := &WaitError{Lock: e.lock, Waited: e.waited, Err: why}
	if in := e.obstacle; in != nil {
		told.Lock, told.Ahead, told.Holder, told.HolderSession = in.lock, in.ahead, in.node, in.session
		told.Local = in.local || in.session != 0 && in.session == s.ID()
	}
	return told
}

// nodeName is the name of a node. It has room for those of ours, so that it costs
// no memory while somebody waits.
type nodeName struct {
	long string // if there is no room
	n    int
	room [64]byte
}

func (n *nodeName) set(name []byte) {
	n.long, n.n = "", len(name)
	if copy(n.room[:], name) < len(name) {
		n.long = string(name)
	}
}

// String returns the name.
func (n *nodeName) String() string {
	if n.long != "" {
		return n.long
	}
	return string(n.room[:n.n])
}

// obstacleIn is what a view says of who is in the way.
func (q *queue) obstacleIn(v *position) *obstacle {
	in := &obstacle{lock: q.lock, ahead: v.at, session: v.owner}
	switch {
	case v.front.n > 0:
		in.node = session.Below(q.path, v.front.String())
	case v.ahead != "":
		in.node = session.Below(q.path, v.ahead)
	}
	return in
}

// ownerOfRead is the session of a node that a request has read, 0 if it cannot be
// told.
func ownerOfRead(read *transport.Call) int64 {
	var resp wire.GetDataResponse
	if read.Err() != nil || read.Code() != wire.CodeOK || read.Decode(&resp) != nil {
		return 0
	}
	return resp.Stat.EphemeralOwner
}

// seenAhead is who was seen ahead of a contender, nil for nobody.
func (p *contender) seenAhead() *obstacle {
	if p.obstacle == nil && p.behind {
		return &obstacle{lock: p.lock}
	}
	return p.obstacle
}

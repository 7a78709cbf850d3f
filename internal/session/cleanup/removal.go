// Package cleanup deletes nodes that have to go: those of a session, and others that a create
// may have left. If that fails at once, it goes on in the background until the nodes are known
// to be gone or their session is over.
// Close of the session waits for its work.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// ErrLate reports that the servers have not answered within the limit.
var ErrLate = errors.New("not answered in time")

// Removal is the deletion of a node that this client has made. It goes on until the node is
// gone, its session is over, or it has children. One that lasts has no session, and its id is 0.
type Removal struct {
	session  *session.Session
	path     string
	reported bool          // to the error listeners; written before a job has it, and by that
	doubtful bool          // an attempt may have deleted the node; written likewise
	refusal  error         // of the last attempt; written likewise
	told     atomic.Bool   // answered is closed, or is about to be
	answered chan struct{} // closed with the first answer
	err      error         // what that was
}

func newRemoval(s *session.Session, path string) *Removal {
	return &Removal{session: s, path: path, answered: make(chan struct{})}
}

// Wait waits until the servers have confirmed or refused, or until no server can be asked
// any more, for limit at most, and until giveUp is closed. It returns nil if the servers
// confirmed, and ErrNoNode if the node had been gone before. It returns ErrSessionOver if
// the node went or will go with the session, and ErrClosed if the session is being closed.
// Other errors are a refusal and ErrLate; after these the removal goes on in the background.
func (r *Removal) Wait(limit time.Duration, giveUp <-chan struct{}) error {
	late := func() { r.tell(ErrLate) }
	if limit > 0 {
		defer time.AfterFunc(limit, late).Stop()
	} else { // a timer that is due would break the race detector in a bubble (golang/go#78156)
		late()
	}
	select {
	case <-r.answered:
	case <-giveUp:
		late()
	}
	<-r.answered
	return r.err
}

// tell answers, once.
func (r *Removal) tell(err error) {
	if r.told.CompareAndSwap(false, true) {
		r.err = err
		close(r.answered)
	}
}

// Remove deletes a node that was created in the session given: at once, and in
// the background if that fails. It does not block.
func Remove(s *session.Session, id int64, path string) *Removal {
	r := newRemoval(s, path)
	c, err := s.ConnOf(id)
	if err == nil {
		call := deletion(path)
		call.OnReply = func(call *transport.Call) { r.attempted(id, s.Ended(call, true)) }
		if err = session.SendInTurn(s, c, call, path); err == nil {
			return r
		}
	}
	r.attempted(id, err)
	return r
}

func deletion(path string) *transport.Call {
	return transport.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: path, Version: -1})
}

// attempted handles the result of the first attempt.
func (r *Removal) attempted(id int64, err error) {
	if r.ends(err) {
		return
	}
	left := []*Removal{r}
	if r.refusal = err; !session.Passing(err) {
		refused(r.session, left)
	}
	removeLater(r.session, id, left)
}

// ends handles the result of an attempt, and reports whether it was the last one.
func (r *Removal) ends(err error) bool {
	switch {
	case errors.Is(err, session.ErrOutcomeUnknown):
		r.doubtful = true
	case errors.Is(err, zk.ErrNoNode) && r.doubtful:
		err = nil
	}
	if errors.Is(err, zk.ErrNotEmpty) { // a node that lasts, and others use it
		r.refusal = err
		refused(r.session, []*Removal{r})
		return true
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, session.ErrSessionOver) && !errors.Is(err, session.ErrClosed) {
		return false
	}
	r.tell(err)
	return true
}

// Refused is under what the log has refusals.
const Refused = "the servers refuse clean-up"

// refused reports to the waiters of removals, and to the error listeners, that the
// servers refuse them for now.
func refused(s *session.Session, all []*Removal) {
	for _, r := range all {
		r.reported = true
		r.tell(r.refusal)
	}
	err := all[0].refusal
	if more := len(all) - 1; more > 0 {
		err = fmt.Errorf("%w (and %d more)", err, more)
	}
	s.Report(Refused, fmt.Errorf("delete %s: %w", all[0].path, err))
}

// removeLater deletes nodes in the background, until all are known to be gone or
// their session is over.
func removeLater(s *session.Session, id int64, left []*Removal) {
	closed := func() {
		for _, r := range left {
			r.tell(session.ErrClosed)
		}
	}
	if !s.Go(func(ctx context.Context) {
		for pause := session.FirstPause; ; pause = min(2*pause, session.MostPause) {
			if left = removeEach(ctx, s, id, left); len(left) == 0 || session.Pause(ctx, s, pause) != nil {
				break
			}
		}
		closed()
	}) {
		closed()
	}
}

// removeEach tries once to delete nodes, and returns those that are left. These include
// nodes that the servers do not let us delete, since such a node is in the way of
// everybody.
func removeEach(ctx context.Context, s *session.Session, id int64, all []*Removal) (left []*Removal) {
	c, err := s.AwaitConnOf(ctx, id)
	if err != nil {
		for _, r := range all {
			r.tell(err)
		}
		return nil
	}
	var denied []*Removal
	tried := 0
	request := func(i int) *transport.Call { return deletion(all[i].path) }
	_ = s.Each(ctx, c, true, len(all), request, func(i int, _ *transport.Call, err error) error {
		tried = i + 1
		r := all[i]
		switch {
		case r.ends(err):
			return nil
		case !session.Passing(err) && !r.reported:
			r.refusal = err
			denied = append(denied, r)
		}
		left = append(left, r)
		return nil
	})
	if len(denied) > 0 {
		refused(s, denied)
	}
	return append(left, all[tried:]...) // the connection is gone, or the session is being closed
}

// RemoveAll is Remove for several nodes, in transactions that servers take: one,
// unless there are many. If a transaction is refused, because a node of it is
// gone, say, its nodes are deleted each for itself.
func RemoveAll(s *session.Session, id int64, paths []string) []*Removal {
	if len(paths) == 1 {
		return []*Removal{Remove(s, id, paths[0])}
	}
	all := make([]*Removal, len(paths))
	for i, path := range paths {
		all[i] = newRemoval(s, path)
	}
	c, err := s.ConnOf(id)
	if err != nil {
		removeLater(s, id, all)
		return all
	}
	b := &removals{session: s, conn: c, id: id, left: all}
	for range session.ChunksAhead {
		b.next()
	}
	return all
}

// removals are those of one RemoveAll. The reply to one transaction sends the next.
type removals struct {
	session *session.Session
	conn    *transport.Conn
	id      int64 // of the session that the nodes were created in

	mu   sync.Mutex // guards the fields below
	left []*Removal // for which nothing was sent
}

// next sends the next transaction, if there is one.
func (b *removals) next() {
	batch := b.take()
	if len(batch) == 0 {
		return
	}
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, len(batch))}
	for i, r := range batch {
		req.Ops[i] = wire.MultiOp{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: r.path, Version: -1}}
	}
	call := transport.NewCall(wire.OpMulti, req)
	call.OnReply = func(call *transport.Call) {
		done, err := b.done(call, len(batch))
		if done {
			for _, r := range batch {
				r.tell(nil)
			}
		} else {
			for _, r := range batch {
				r.doubtful = errors.Is(err, session.ErrOutcomeUnknown)
			}
			removeLater(b.session, b.id, batch)
		}
		b.next()
	}
	if session.SendInTurn(b.session, b.conn, call, "") != nil {
		removeLater(b.session, b.id, append(batch, b.takeAll()...))
	}
}

// done is whether a transaction has deleted all of its nodes. The error may be that this is
// not known.
func (b *removals) done(call *transport.Call, n int) (bool, error) {
	if err := b.session.Ended(call, true); err != nil {
		return false, err
	}
	results, err := session.Results(call, n)
	return err == nil && results[0].Op != wire.OpError, session.Unreadable(true, err)
}

// take takes out what fits into one transaction.
func (b *removals) take() []*Removal {
	b.mu.Lock()
	defer b.mu.Unlock()
	room, n := session.RoomOf(b.session), 0
	for n < len(b.left) && (room.Take(b.left[n].path) || n == 0) {
		n++
	}
	batch := b.left[:n:n]
	b.left = b.left[n:]
	return batch
}

func (b *removals) takeAll() []*Removal {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.left
	b.left = nil
	return all
}

// RemoveDoubtful deletes a protected ephemeral node whose creation has no known outcome.
// It waits for the call to end, and then looks for the node.
func RemoveDoubtful(s *session.Session, id int64, call *transport.Call, parent, protection string) {
	ended := func() {
		var lost *transport.LostError
		refused := call.Replied() && call.Code() != wire.CodeOK
		if !refused && (!errors.As(call.Err(), &lost) || lost.Sent) {
			Sweep(s, id, parent, protection)
		}
	}
	select {
	case <-call.Done():
		ended()
	default:
		s.Go(func(ctx context.Context) {
			select {
			case <-call.Done():
				ended()
			case <-ctx.Done(): // the session is being closed
			}
		})
	}
}

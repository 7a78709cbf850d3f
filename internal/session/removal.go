package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// ErrLate reports that the servers have not answered within the limit.
var ErrLate = errors.New("not answered in time")

// Removal is the deletion of an ephemeral node of ours, which goes on until the
// node is gone or its session is over.
type Removal struct {
	session  *Session
	path     string
	answered chan struct{}
	reported bool // to the error listeners; written before a job has it, and by that
	doubtful bool // an attempt may have deleted the node; written likewise
	wait     waitLink

	mu   sync.Mutex // guards the fields below
	told bool       // answered is closed
	err  error
	over bool // nothing more will be done
	last error
	then func(error)
}

func (s *Session) newRemoval(path string) *Removal {
	return &Removal{session: s, path: path, answered: make(chan struct{})}
}

// Wait waits until the servers have confirmed or refused or there is nobody to
// ask any more, for limit at most. It returns nil if the servers confirmed,
// ErrNoNode if the node had been gone before, ErrSessionOver if it went or will
// go with the session, ErrClosed if the session is being closed, a refusal, or
// ErrLate; after the last two it is tried again in the background. It is called
// once.
func (r *Removal) Wait(limit time.Duration) error {
	r.session.expect(r, limit)
	select {
	case <-r.answered:
	case <-r.session.life.Done():
		r.waitClosing(limit)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// waitClosing is Wait while the session is being closed, when the run loop has
// ended. An answer on its way still comes.
func (r *Removal) waitClosing(limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-r.answered:
	case <-t.C:
		r.tell(ErrLate)
		<-r.answered
	}
}

// GiveUp ends Wait as its limit does.
func (r *Removal) GiveUp() { r.tell(ErrLate) }

// Then calls fn when it is over: with nil or ErrNoNode if the node is gone, else
// ErrSessionOver or ErrClosed. It must not block.
func (r *Removal) Then(fn func(error)) {
	r.mu.Lock()
	over, err := r.over, r.last
	r.then = fn
	r.mu.Unlock()
	if over {
		fn(err)
	}
}

// tell answers, once.
func (r *Removal) tell(err error) {
	r.mu.Lock()
	first := !r.told
	if first {
		r.told, r.err = true, err
	}
	r.mu.Unlock()
	if first {
		r.session.forget(r)
		close(r.answered)
	}
}

func (r *Removal) isTold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

func (r *Removal) end(err error) {
	r.mu.Lock()
	r.over, r.last = true, err
	then := r.then
	r.mu.Unlock()
	if then != nil {
		then(err)
	}
	r.tell(err)
}

// Remove deletes a node that was created in the session given: at once, and in
// the background if that fails. It does not block.
func (s *Session) Remove(session int64, path string) *Removal {
	r := s.newRemoval(path)
	c, err := s.Current(session)
	if err == nil {
		call := deletion(path)
		call.OnReply = func(call *transport.Call) { s.removed(r, session, s.ended(call, true)) }
		if err = s.sendAtOnce(c, call); err == nil {
			return r
		}
		err = lostError(err, false)
	}
	s.removed(r, session, err)
	return r
}

func deletion(path string) *transport.Call {
	return transport.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: path, Version: -1})
}

// removed takes in how the first attempt went.
func (s *Session) removed(r *Removal, session int64, err error) {
	if r.ends(err) {
		return
	}
	left := []*Removal{r}
	if !Passing(err) {
		s.refused(left, err)
	}
	s.removeLater(session, left)
}

// ends takes in how an attempt went, and reports whether it was the last one.
func (r *Removal) ends(err error) bool {
	switch {
	case errors.Is(err, ErrOutcomeUnknown):
		r.doubtful = true
	case errors.Is(err, zk.ErrNoNode) && r.doubtful:
		err = nil
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, ErrSessionOver) && !errors.Is(err, ErrClosed) {
		return false
	}
	r.end(err)
	return true
}

// refused reports to the waiters of removals, and to the error listeners, that the
// servers refuse them for now.
func (s *Session) refused(all []*Removal, err error) {
	for _, r := range all {
		r.reported = true
		r.tell(err)
	}
	if more := len(all) - 1; more > 0 {
		err = fmt.Errorf("%w (and %d more)", err, more)
	}
	s.Report(fmt.Errorf("delete %s: %w", all[0].path, err))
}

// removeLater deletes nodes in the background, until all are known to be gone or
// their session is over.
func (s *Session) removeLater(session int64, left []*Removal) {
	started := s.Go(func(ctx context.Context) {
		for pause := firstAgain; ; pause = min(2*pause, mostAgain) {
			if left = s.removeEach(ctx, session, left); len(left) == 0 || s.pause(ctx, pause) != nil {
				break
			}
		}
		for _, r := range left {
			r.end(ErrClosed)
		}
	})
	if !started {
		for _, r := range left {
			r.end(ErrClosed)
		}
	}
}

// removeEach tries once to delete nodes, and returns those that are left. A node
// that we are not let delete is tried again as well: it stands in the way of
// everybody.
func (s *Session) removeEach(ctx context.Context, session int64, all []*Removal) (left []*Removal) {
	c, err := s.ConnIn(ctx, session)
	if err != nil {
		for _, r := range all {
			r.end(err)
		}
		return nil
	}
	var refused []*Removal
	var why error
	tried := 0
	request := func(i int) *transport.Call { return deletion(all[i].path) }
	_ = s.Each(ctx, c, true, len(all), request, func(i int, _ *transport.Call, err error) error {
		tried = i + 1
		r := all[i]
		switch {
		case r.ends(err):
			return nil
		case !Passing(err) && !r.reported:
			refused, why = append(refused, r), err
		}
		left = append(left, r)
		return nil
	})
	if len(refused) > 0 {
		s.refused(refused, why)
	}
	return append(left, all[tried:]...) // the connection is gone, or the session is being closed
}

// RemoveAll is Remove for several nodes, in transactions that servers take: one,
// unless there are many. If a transaction is refused, because a node of it is
// gone, say, its nodes are deleted each for itself.
func (s *Session) RemoveAll(session int64, paths []string) []*Removal {
	if len(paths) == 1 {
		return []*Removal{s.Remove(session, paths[0])}
	}
	all := make([]*Removal, len(paths))
	for i, path := range paths {
		all[i] = s.newRemoval(path)
	}
	c, err := s.Current(session)
	if err != nil {
		s.removeLater(session, all)
		return all
	}
	b := &removals{session: s, conn: c, id: session, left: all}
	for range batchesAhead {
		b.next()
	}
	return all
}

// removals are those of one RemoveAll. The reply to one transaction sends the next.
type removals struct {
	session *Session
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
		if b.done(call, len(batch)) {
			for _, r := range batch {
				r.end(nil)
			}
		} else {
			for _, r := range batch {
				r.doubtful = !call.Replied()
			}
			b.session.removeLater(b.id, batch)
		}
		b.next()
	}
	if b.session.sendAtOnce(b.conn, call) != nil {
		b.session.removeLater(b.id, append(batch, b.takeAll()...))
	}
}

// done is whether a transaction has deleted all of its nodes.
func (b *removals) done(call *transport.Call, n int) bool {
	var resp wire.MultiResponse
	return b.session.ended(call, true) == nil && call.Decode(&resp) == nil && len(resp.Results) == n && resp.Results[0].Op != wire.OpError
}

// take takes out what fits into one transaction.
func (b *removals) take() []*Removal {
	b.mu.Lock()
	defer b.mu.Unlock()
	room, n := b.session.room(), 0
	for n < len(b.left) && (room.take(b.left[n].path) || n == 0) {
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

// RemoveDoubtful sees to it that a protected ephemeral node goes whose creation
// has no known outcome. The call is waited for, then the node looked for.
func (s *Session) RemoveDoubtful(session int64, call *transport.Call, parent, protection string) {
	doubtful := func() bool {
		var lost *transport.LostError
		refused := call.Replied() && call.Code() != wire.CodeOK
		return !refused && (!errors.As(call.Err(), &lost) || lost.Sent)
	}
	select {
	case <-call.Done():
		if doubtful() {
			s.Sweep(session, parent, protection)
		}
		return
	default:
	}
	s.Go(func(ctx context.Context) {
		select {
		case <-call.Done():
			if doubtful() {
				s.Sweep(session, parent, protection)
			}
		case <-ctx.Done(): // the session is being closed
		}
	})
}

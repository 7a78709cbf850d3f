package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session/lease"
	"github.com/paddock-zk/paddock/internal/wire"
)

// ClaimState is how sure a claim is.
type ClaimState int8

// The states of a claim.
const (
	ClaimHeld ClaimState = iota + 1
	ClaimUncertain
	ClaimLost
)

// Claim says that one ephemeral node of ours exists, and that the servers cannot
// have ended its session.
//
// It is held while connected, uncertain while not and until its node has been
// seen again, and lost for good once the session lease has ended, the session has
// or the node is gone.
type Claim struct {
	path  string
	since time.Duration // the session object was opened

	// The fields below are guarded by the session's mu.
	tell    func(*Claim, ClaimState, error) // nil if it was lost before it was granted
	state   ClaimState
	blind   bool        // we may not read the node, so it cannot be checked
	held    atomic.Bool // the state is ClaimHeld, to be read by anybody
	reason  error
	settled chan struct{} // closed when a claim that had to wait is granted or lost, nil then
	links   [2]claimLink
}

// KeepReady says that claims are likely to be made: enough is asked from now on
// for a creation to be all that a claim needs.
func (s *Session) KeepReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		s.ready = true
		s.pokeLocked()
	}
}

// AddClaim makes a claim to a node that was created in the session given. If too
// little is left of the session lease it waits for a renewal, for two session
// timeouts at most. tell hears of each change from then on, in order, and must not
// block. If the claim cannot be held, the error is the reason, and tell hears
// nothing: ErrSessionOver also if the node is gone, ErrNotConnected,
// ErrTimeoutTooShort, ErrClosed, or the end of ctx.
func (s *Session) AddClaim(ctx context.Context, session int64, path string, tell func(*Claim, ClaimState, error)) (*Claim, error) {
	cl := &Claim{path: path, tell: tell}
	s.mu.Lock()
	now := s.clock.Now()
	if err := s.deniedLocked(session, now); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	if s.lease.Enough(now) {
		s.grantLocked(cl, now)
		s.mu.Unlock()
		return cl, nil
	}
	settled := make(chan struct{})
	cl.settled = settled
	s.claims.await(cl)
	s.pokeLocked()
	s.mu.Unlock()
	return s.awaitGrant(ctx, cl, settled)
}

// awaitGrant waits until a claim is granted or lost.
func (s *Session) awaitGrant(ctx context.Context, cl *Claim, settled <-chan struct{}) (*Claim, error) {
	enough := time.NewTimer(2 * s.Timeout())
	defer enough.Stop()
	var err error
	select {
	case <-settled:
	case <-ctx.Done():
		err = s.contextEnd(ctx)
	case <-enough.C:
		s.mu.Lock()
		err = fmt.Errorf("%w: %v, while it takes %v to renew the session lease", ErrTimeoutTooShort, s.lease.Timeout(), s.lease.Takes())
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case cl.settled != nil: // still
		cl.settled = nil
		s.claims.remove(cl)
		return nil, err
	case cl.tell != nil: // granted, whatever it was told since
		return cl, nil
	case errors.Is(cl.reason, ErrClosed), errors.Is(cl.reason, ErrNotConnected):
		return nil, cl.reason
	}
	return nil, ErrSessionOver
}

// grantLocked makes a claim held.
func (s *Session) grantLocked(cl *Claim, now time.Time) {
	cl.since = now.Sub(s.opened)
	s.claims.remove(cl)
	s.claims.add(cl)
	s.claimed = true
	if cl.settled != nil {
		close(cl.settled)
		cl.settled = nil
	}
	// The minder need not be woken by each of many short claims.
	if due := earlier(now.Add(watchAfter), s.limitLocked()); s.wakeAt.IsZero() || due.Before(s.wakeAt) {
		s.pokeLocked()
	}
}

// grantWaitingLocked grants the claims that wait, if the session lease allows it.
func (s *Session) grantWaitingLocked(now time.Time) {
	for cl := s.claims.waiting.first; cl != nil && s.lease.Enough(now); cl = s.claims.waiting.first {
		s.grantLocked(cl, now)
	}
}

// deniedLocked says why no claim in a session can be held now.
func (s *Session) deniedLocked(session int64, now time.Time) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.id != session || s.overdueLocked(now):
		return ErrSessionOver
	case s.conn == nil || s.conn.ReadOnly():
		return ErrNotConnected
	case s.conn.Timeout() < lease.LeastTimeout:
		return fmt.Errorf("%w: the server grants %v, and it takes %v", ErrTimeoutTooShort, s.conn.Timeout(), lease.LeastTimeout)
	}
	return nil
}

// PassClaim gives a claim to another of this process: tell hears of each change
// from now on, and the former one of those before. It fails, and changes nothing,
// unless the claim is held, a connection is up, and nothing but the servers can
// end the session for a quarter of its timeout.
func (s *Session) PassClaim(cl *Claim, tell func(*Claim, ClaimState, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	switch {
	case !s.claims.has(cl), s.overdueLocked(now):
		return ErrSessionOver
	case cl.state != ClaimHeld, s.conn == nil:
		return ErrNotConnected
	case !now.Add(s.lease.Timeout() / 4).Before(s.limitLocked()):
		return ErrNotConnected
	}
	cl.tell = tell
	return nil
}

// DropClaim ends a claim without telling it. The caller deletes its node, and the
// watch on that goes with it.
func (s *Session) DropClaim(cl *Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims.remove(cl)
}

// ClaimState says how sure a claim is now, with the reason once it is lost. It
// looks at the clock, as the timer that ends claims may be late.
func (s *Session) ClaimState(cl *Claim) (ClaimState, error) {
	// In this order: when sure is the next session's, no claim of this one is held.
	if int64(s.clock.Since(s.opened)) < s.sure.Load() && cl.held.Load() {
		return ClaimHeld, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case cl.state != ClaimLost && s.overdueLocked(s.clock.Now()):
		return ClaimLost, ErrNotConnected
	case cl.held.Load():
		s.sure.Store(int64(s.limitLocked().Sub(s.opened)))
	}
	return cl.state, cl.reason
}

// ClaimedBelow tells when the claims were made to nodes right below some parents,
// which are the keys of the map.
func (s *Session) ClaimedBelow(parents map[string][]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cl := range s.claims.all() {
		parent := cl.path[:strings.LastIndexByte(cl.path, '/')]
		if made, wanted := parents[parent]; wanted {
			parents[parent] = append(made, s.opened.Add(cl.since))
		}
	}
}

// change is a claim's news, to be told without the lock.
type change struct {
	cl     *Claim
	tell   func(*Claim, ClaimState, error) // whose claim it was then
	state  ClaimState
	reason error
}

func (cl *Claim) news() change { return change{cl, cl.tell, cl.state, cl.reason} }

func tell(changes []change) {
	for _, c := range changes {
		c.tell(c.cl, c.state, c.reason)
	}
}

// doubtClaimsLocked makes every claim uncertain.
func (s *Session) doubtClaimsLocked() []change {
	s.sure.Store(0)
	var changes []change
	for _, cl := range s.claims.all() {
		switch {
		case cl.settled != nil:
			s.loseLocked(cl, ErrNotConnected)
		case cl.state == ClaimHeld:
			s.claims.grade(cl, ClaimUncertain, cl.blind)
			changes = append(changes, cl.news())
		}
	}
	s.claims.unasked(s.claims.all())
	return changes
}

// loseClaimsLocked ends every claim.
func (s *Session) loseClaimsLocked(reason error) []change {
	s.sure.Store(0)
	changes := make([]change, 0, s.claims.len())
	for _, cl := range s.claims.all() {
		changes = append(changes, s.loseLocked(cl, reason)...)
	}
	return changes
}

func (s *Session) loseLocked(cl *Claim, reason error) []change {
	cl.state, cl.reason = ClaimLost, reason
	s.claims.remove(cl)
	if cl.settled != nil { // whoever waits for it is told
		close(cl.settled)
		cl.settled, cl.tell = nil, nil
		return nil
	}
	return []change{cl.news()}
}

// room is what there is room for in a transaction, each operation of which names a
// node and no more.
type room struct{ ops, bytes int }

const (
	// pathOpSize is what an operation takes that names a node, without its path: its
	// header, the length of the path, and a version.
	pathOpSize = 9 + 4 + 4
	// transactionSize is what a transaction takes without operations.
	transactionSize = 8 + 9
)

// room is that of an empty transaction: without the header of the request, and the
// end of the transaction.
func (s *Session) room() room { return room{MostOperations, s.MostInTransaction() - transactionSize} }

// take reports whether there is room for one more operation.
func (r *room) take(path string) bool {
	r.ops--
	r.bytes -= pathOpSize + len(path)
	return r.ops >= 0 && r.bytes >= 0
}

// check is a write that changes nothing: a transaction of checks that nodes of ours
// exist. It goes through the leader and a majority, so it confirms the session
// lease, and finds nodes that are gone. After a reconnect it verifies the claims.
type check struct {
	call   *link.Call
	claims []*Claim
}

// nextCheckLocked picks what to check: claims in doubt first, then those that
// were not checked for longest; with verify only the former. A node that we may
// not read is left to lookAt, unless there is no other: the refusal is logged by
// the leader as well and proves as much of the session.
func (s *Session) nextCheckLocked(verify bool) *check {
	picked := s.claims.pick(s.room(), verify)
	if len(picked) == 0 {
		return nil
	}
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, 0, len(picked))}
	for _, cl := range picked {
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: cl.path, Version: -1}})
	}
	return &check{call: link.NewCall(wire.OpMulti, req), claims: picked}
}

// settle takes in the reply to a check that was sent on c. It runs in the
// goroutine that reads the connection.
func (s *Session) settle(c *link.Conn, chk *check) {
	var resp wire.MultiResponse
	committed := chk.call.Committed() && chk.call.Decode(&resp) == nil
	var changes []change
	var unseen []*Claim
	s.mu.Lock()
	if s.conn == c {
		now := s.clock.Now()
		if committed {
			s.checks = lease.Backoff{}
			changes = s.settleLocked(chk, resp.Results)
			s.grantWaitingLocked(now)
			unseen = s.claims.unchecked()
		} else {
			s.checks.Refused(now, s.lease.Timeout())
			s.lease.Refused(lease.Write, now)
		}
		s.claims.unasked(chk.claims)
		s.pokeLocked()
	}
	s.mu.Unlock()
	tell(changes)
	for _, cl := range unseen {
		s.lookAt(c, cl)
	}
}

// settleLocked applies the results of a check. A transaction stops at the first
// operation that is refused, so only a success tells about all of them.
func (s *Session) settleLocked(chk *check, results []wire.MultiResult) (changes []change) {
	for i, cl := range chk.claims {
		if !s.claims.has(cl) || i >= len(results) {
			continue
		}
		switch r := results[i]; {
		case r.Op != wire.OpError:
			changes = append(changes, s.confirmLocked(cl)...)
		case r.Code == wire.CodeNoNode:
			changes = append(changes, s.loseLocked(cl, ErrNodeDeleted)...) // a leader that has ended the session refuses all of it
		case r.Code == wire.CodeNoAuth && cl.settled == nil:
			s.claims.grade(cl, cl.state, true)
		}
	}
	return changes
}

func (s *Session) confirmLocked(cl *Claim) []change {
	if cl.state != ClaimUncertain {
		return nil
	}
	s.claims.grade(cl, ClaimHeld, cl.blind)
	return []change{cl.news()}
}

// lookAt verifies a node that we may not read. Servers before 3.9 answer exists
// without any right; later ones refuse it if the node is there. The sync before
// it is answered in order, so the answer is no older than the sync.
func (s *Session) lookAt(c *link.Conn, cl *Claim) {
	exists := link.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: cl.path})
	exists.OnReply = func(call *link.Call) {
		if call.Err() == nil {
			s.seen(c, cl, call.Code())
		}
	}
	_ = s.sendAtOnce(c, link.NewCall(wire.OpSync, &wire.PathRequest{Path: cl.path}), exists)
}

// seen takes in whether a claim's node exists.
func (s *Session) seen(c *link.Conn, cl *Claim, code wire.Code) {
	var changes []change
	s.mu.Lock()
	if s.claims.has(cl) && s.conn == c {
		switch code {
		case wire.CodeOK, wire.CodeNoAuth:
			changes = s.confirmLocked(cl)
		case wire.CodeNoNode:
			changes = s.loseLocked(cl, s.gone.add())
		}
		s.pokeLocked()
	}
	s.mu.Unlock()
	tell(changes)
	s.inquire()
}

// watchAfter is how old a claim is when its node gets a watch, which costs a
// request: most are released before.
const watchAfter = 100 * time.Millisecond

// watchClaims sets watches on the nodes of claims that have lasted, and
// returns when the next one will be due.
func (s *Session) watchClaims(c *link.Conn, now time.Time) time.Time {
	s.mu.Lock()
	due, next, more := s.claims.lasted(now.Add(-watchAfter).Sub(s.opened), mostWatching-s.watching)
	s.watching += len(due)
	full := s.watching == mostWatching
	s.mu.Unlock()
	for _, cl := range due {
		s.watchClaim(c, cl)
	}
	if !more || full { // then a reply says when to go on
		return time.Time{}
	}
	return s.opened.Add(next + watchAfter)
}

// mostWatching bounds the requests on their way that set these watches, since
// thousands of claims may be made at once.
const mostWatching = MostAhead

// watchAnswered makes room for another such request.
func (s *Session) watchAnswered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching == mostWatching {
		s.pokeLocked()
	}
	s.watching--
}

// watchClaim sets a watch on a claim's node, to notice that somebody deletes it.
func (s *Session) watchClaim(c *link.Conn, cl *Claim) {
	// Not exists, which would leave a watch on a node that is not there.
	call := link.NewCall(wire.OpGetData, &wire.PathWatchRequest{Path: cl.path, Watch: true})
	call.OnReply = func(call *link.Call) {
		s.watchAnswered()
		switch {
		case !call.Replied():
			s.unwatched(cl)
		case call.Code() == wire.CodeNoNode:
			s.seen(c, cl, call.Code())
		}
	}
	watch, err := s.watches.set(c, call, watchData, cl.path, func(ev Event) {
		switch {
		case ev.Err != nil: // the session has ended, which ends the claim
		case ev.Type == wire.EventNodeDeleted:
			s.Vanished(cl)
		default:
			s.unwatched(cl) // somebody wrote to it
		}
	})
	if err != nil {
		s.watchAnswered()
		s.unwatched(cl)
		return
	}
	s.mu.Lock()
	alive := s.claims.has(cl)
	s.mu.Unlock()
	if !alive {
		s.watches.stop(watch)
	}
}

// unwatched lets the watch be set again.
func (s *Session) unwatched(cl *Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims.has(cl) {
		s.claims.unwatch(cl)
		s.pokeLocked()
	}
}

// Vanished ends a claim whose node was seen to be gone, for whatever reason.
func (s *Session) Vanished(cl *Claim) {
	var changes []change
	s.mu.Lock()
	if s.claims.has(cl) {
		changes = s.loseLocked(cl, s.gone.add())
	}
	s.mu.Unlock()
	tell(changes)
	s.inquire()
}

// Deleted ends a claim whose node was deleted, as a write of the session has shown.
func (s *Session) Deleted(cl *Claim) {
	var changes []change
	s.mu.Lock()
	if s.claims.has(cl) {
		changes = s.loseLocked(cl, ErrNodeDeleted)
	}
	s.mu.Unlock()
	tell(changes)
}

package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/session/lease"
	"github.com/paddock-zk/paddock/internal/session/list"
	"github.com/paddock-zk/paddock/internal/session/watch"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// TrackedState says how sure the session is of a tracked node.
type TrackedState int8

// The states of a tracked node.
const (
	NodeHeld TrackedState = iota + 1
	NodeUncertain
	NodeLost
)

// TrackedNode says that one ephemeral node of ours exists, and that the servers cannot
// have ended its session.
//
// It is held while connected. It is uncertain while not connected, and until its node has
// been seen again. It is lost for good once the session lease or the session has ended, or
// the node is gone.
type TrackedNode struct {
	session *Session
	path    string
	since   time.Duration // the session object was opened

	// The fields below are guarded by the session's mu.
	owner   NodeOwner // nil if it was lost before it was granted
	state   TrackedState
	blind   bool        // we may not read the node, so it cannot be checked
	held    atomic.Bool // the state is NodeHeld, to be read by anybody
	reason  error
	decided chan struct{} // closed when a tracked node that had to wait is granted or lost, nil then
	// Its places among those of the same grade, and among those without a watch.
	graded, unwatched list.Place[TrackedNode]
}

// NodeOwner is the owner of a tracked node.
type NodeOwner interface {
	// NodeChanged hears of each change of the node, in order. It must not block.
	NodeChanged(node *TrackedNode, state TrackedState, reason error)
}

// KeepReady says that tracked nodes are likely to be made. From now on the session sends
// enough requests that a tracked node needs nothing but its creation.
func (s *Session) KeepReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		s.ready = true
		s.wakeLocked()
	}
}

// Track begins to track a node that was created in the session given. If too
// little is left of the session lease it waits for a renewal, for two session
// timeouts at most. The owner hears of each change from then on. After an error it hears
// nothing. The error is
//
//   - ErrSessionOver, also if the node is gone;
//   - ErrNotConnected;
//   - ErrTimeoutTooShort;
//   - ErrClosed;
//   - the end of ctx.
func (s *Session) Track(ctx context.Context, session int64, path string, owner NodeOwner) (*TrackedNode, error) {
	node := &TrackedNode{session: s, path: path, owner: owner}
	s.mu.Lock()
	now := s.clock.Now()
	if err := s.deniedLocked(session, now); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	if s.lease.Enough(now) {
		s.grantLocked(node, now)
		s.mu.Unlock()
		return node, nil
	}
	decided := make(chan struct{})
	node.decided = decided
	s.tracked.await(node)
	s.wakeLocked()
	s.mu.Unlock()
	return s.awaitGrant(ctx, node, decided)
}

// awaitGrant waits until a tracked node is granted or lost.
func (s *Session) awaitGrant(ctx context.Context, node *TrackedNode, decided <-chan struct{}) (*TrackedNode, error) {
	enough := time.NewTimer(2 * s.Timeout())
	defer enough.Stop()
	var err error
	select {
	case <-decided:
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
	case node.decided != nil: // still
		node.decided = nil
		s.tracked.remove(node)
		return nil, err
	case node.owner != nil: // granted, whatever it was told since
		return node, nil
	case errors.Is(node.reason, ErrClosed), errors.Is(node.reason, ErrNotConnected):
		return nil, node.reason
	}
	return nil, ErrSessionOver
}

// grantLocked makes a tracked node held.
func (s *Session) grantLocked(node *TrackedNode, now time.Time) {
	node.since = now.Sub(s.opened)
	s.tracked.remove(node)
	s.tracked.add(node)
	s.everTracked = true
	if node.decided != nil {
		close(node.decided)
		node.decided = nil
	}
	// The run loop need not be woken by each of many short-lived nodes.
	s.wakeBeforeLocked(earlier(now.Add(watchAfter), s.limitLocked()))
}

// grantWaitingLocked grants the tracked nodes that wait, if the session lease allows it.
func (s *Session) grantWaitingLocked(now time.Time) {
	for node := s.tracked.waiting.First(); node != nil && s.lease.Enough(now); node = s.tracked.waiting.First() {
		s.grantLocked(node, now)
	}
}

// deniedLocked is the reason why no tracked node in a session can be held now, if there
// is one.
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

// Pass gives a tracked node to another owner in this process. That owner hears of each
// change from now on, and the former owner has heard of those before. Pass fails, and
// changes nothing, unless the tracked node is held, a connection is up, and the session
// lease lasts for another quarter of the timeout.
func (node *TrackedNode) Pass(owner NodeOwner) error {
	s := node.session
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	switch {
	case !s.tracked.has(node), s.overdueLocked(now):
		return ErrSessionOver
	case node.state != NodeHeld, s.conn == nil:
		return ErrNotConnected
	case !now.Add(s.lease.Timeout() / 4).Before(s.limitLocked()):
		return ErrNotConnected
	}
	node.owner = owner
	return nil
}

// Untrack ends the tracking. The owner is not told. The caller deletes the node, and the
// watch on it goes with it.
func (node *TrackedNode) Untrack() {
	s := node.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracked.remove(node)
}

// State says how sure a tracked node is now, with the reason once it is lost. It
// looks at the clock, as the timer that ends tracked nodes may be late.
func (node *TrackedNode) State() (TrackedState, error) {
	s := node.session
	// heldUntil first: once it is that of a later session, no node of this one is held.
	if int64(s.clock.Since(s.opened)) < s.heldUntil.Load() && node.held.Load() {
		return NodeHeld, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case node.state != NodeLost && s.overdueLocked(s.clock.Now()):
		return NodeLost, ErrNotConnected
	case node.held.Load():
		s.heldUntil.Store(int64(s.limitLocked().Sub(s.opened)))
	}
	return node.state, node.reason
}

// Owners are the owners of the nodes that are tracked and granted.
func Owners(s *Session) []NodeOwner {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners := make([]NodeOwner, 0, s.tracked.granted())
	for _, node := range s.tracked.all() {
		if node.decided == nil {
			owners = append(owners, node.owner)
		}
	}
	return owners
}

// change is a change of a tracked node, to be told without the lock.
type change struct {
	node   *TrackedNode
	owner  NodeOwner // whose node it was then
	state  TrackedState
	reason error
}

func (node *TrackedNode) news() change { return change{node, node.owner, node.state, node.reason} }

func notifyOwners(changes []change) {
	for _, c := range changes {
		c.owner.NodeChanged(c.node, c.state, c.reason)
	}
}

// makeUncertainLocked makes every tracked node uncertain.
func (s *Session) makeUncertainLocked() []change {
	s.heldUntil.Store(0)
	var changes []change
	for _, node := range s.tracked.all() {
		switch {
		case node.decided != nil:
			s.loseLocked(node, ErrNotConnected)
		case node.state == NodeHeld:
			s.tracked.grade(node, NodeUncertain, node.blind)
			changes = append(changes, node.news())
		}
	}
	s.tracked.checkDone(s.tracked.all())
	return changes
}

// loseTrackedLocked ends every tracked node.
func (s *Session) loseTrackedLocked(reason error) []change {
	s.heldUntil.Store(0)
	changes := make([]change, 0, s.tracked.len())
	for _, node := range s.tracked.all() {
		changes = append(changes, s.loseLocked(node, reason)...)
	}
	return changes
}

func (s *Session) loseLocked(node *TrackedNode, reason error) []change {
	node.state, node.reason = NodeLost, reason
	s.tracked.remove(node)
	if node.decided != nil { // whoever waits for it is told
		close(node.decided)
		node.decided, node.owner = nil, nil
		return nil
	}
	return []change{node.news()}
}

// check is a write that changes nothing: a transaction of checks that nodes of ours
// exist. It goes through the leader and a majority, so it confirms the session
// lease, and finds nodes that are gone. After a reconnect it verifies the tracked nodes.
type check struct {
	call  *transport.Call
	nodes []*TrackedNode
}

// nextCheckLocked picks nodes to check: tracked nodes in doubt first, then those that
// were not checked for longest; with verify only the former. It leaves a node that we may
// not read to lookAt, unless there is no other. The ensemble leader logs the refusal of
// such a check, which proves as much about the session.
func (s *Session) nextCheckLocked(verify bool) *check {
	picked := s.tracked.pick(RoomOf(s), verify)
	if len(picked) == 0 {
		return nil
	}
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, 0, len(picked))}
	for _, node := range picked {
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: node.path, Version: -1}})
	}
	return &check{call: transport.NewCall(wire.OpMulti, req), nodes: picked}
}

// checkAnswered takes in the reply to a check that was sent on c. It runs in the
// goroutine that reads the connection.
func (s *Session) checkAnswered(c *transport.Conn, chk *check) {
	var resp wire.MultiResponse
	committed := chk.call.Committed() && chk.call.Decode(&resp) == nil
	var changes []change
	var unseen []*TrackedNode
	var left time.Duration
	s.mu.Lock()
	if s.conn == c {
		now := s.clock.Now()
		if committed {
			s.checks = lease.Backoff{}
			changes = s.checkedLocked(chk, resp.Results)
			s.grantWaitingLocked(now)
			unseen = s.tracked.unseenNodes()
			left = s.limitLocked().Sub(now)
		} else {
			s.checks.Refused(now, s.lease.Timeout())
			s.lease.Refused(lease.Write, now)
		}
		s.tracked.checkDone(chk.nodes)
		s.wakeLocked()
	}
	s.mu.Unlock()
	notifyOwners(changes)
	if left > 0 {
		s.tellLease(left)
	}
	for _, node := range unseen {
		s.lookAt(c, node)
	}
}

// checkedLocked applies the results of a check. A transaction stops at the first
// operation that is refused, so only a success tells about all of them.
func (s *Session) checkedLocked(chk *check, results []wire.MultiResult) (changes []change) {
	for i, node := range chk.nodes {
		if !s.tracked.has(node) || i >= len(results) {
			continue
		}
		switch r := results[i]; {
		case r.Op != wire.OpError:
			changes = append(changes, s.confirmLocked(node)...)
		case r.Code == wire.CodeNoNode:
			changes = append(changes, s.loseLocked(node, ErrNodeDeleted)...) // a leader that has ended the session refuses all of it
		case r.Code == wire.CodeNoAuth && node.decided == nil:
			s.tracked.grade(node, node.state, true)
		}
	}
	return changes
}

func (s *Session) confirmLocked(node *TrackedNode) []change {
	if node.state != NodeUncertain {
		return nil
	}
	s.tracked.grade(node, NodeHeld, node.blind)
	return []change{node.news()}
}

// lookAt verifies a node that we may not read. Servers before 3.9 answer exists
// without any right; later ones refuse it if the node is there. The sync before
// it is answered in order, so the answer is no older than the sync.
func (s *Session) lookAt(c *transport.Conn, node *TrackedNode) {
	exists := transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: node.path})
	exists.OnReply = func(call *transport.Call) {
		switch code := call.Code(); {
		case !call.Replied():
		case code == wire.CodeNoNode:
			node.Vanished()
		case code == wire.CodeOK, code == wire.CodeNoAuth:
			s.seen(c, node)
		}
	}
	_ = c.Send(transport.NewCall(wire.OpSync, &wire.PathRequest{Path: node.path}), exists) // if the connection is gone, the next one verifies it
}

// seen takes in that a tracked node's node exists.
func (s *Session) seen(c *transport.Conn, node *TrackedNode) {
	var changes []change
	s.mu.Lock()
	if s.tracked.has(node) && s.conn == c {
		changes = s.confirmLocked(node)
		s.wakeLocked()
	}
	s.mu.Unlock()
	notifyOwners(changes)
}

// watchAfter is how old a tracked node is when its node gets a watch. A watch costs a
// request, and most nodes are released before that.
const watchAfter = 100 * time.Millisecond

// watchAllTracked sets watches on tracked nodes that have lasted, and
// returns when the next one will be due.
func (s *Session) watchAllTracked(c *transport.Conn, now time.Time) time.Time {
	s.mu.Lock()
	due, next, more := s.tracked.lasted(now.Add(-watchAfter).Sub(s.opened), mostWatching-s.watching)
	s.watching += len(due)
	full := s.watching == mostWatching
	s.mu.Unlock()
	for _, node := range due {
		s.watchTracked(c, node)
	}
	if !more || full { // then a reply says when to go on
		return time.Time{}
	}
	return s.opened.Add(next + watchAfter)
}

// mostWatching bounds the requests on their way that set these watches, since
// thousands of tracked nodes may be made at once.
const mostWatching = MostAhead

// watchAnswered makes room for another such request.
func (s *Session) watchAnswered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watching == mostWatching {
		s.wakeLocked()
	}
	s.watching--
}

// watchTracked sets a watch on a tracked node, which tells when it is deleted.
func (s *Session) watchTracked(c *transport.Conn, node *TrackedNode) {
	// Not exists, which would leave a watch on a node that is not there.
	call := transport.NewCall(wire.OpGetData, &wire.PathWatchRequest{Path: node.path, Watch: true})
	call.OnReply = func(call *transport.Call) {
		s.watchAnswered()
		switch {
		case !call.Replied():
			s.watchEnded(node)
		case call.Code() == wire.CodeNoNode:
			node.Vanished()
		}
	}
	set, err := s.watches.Set(c, call, watch.Data, node.path, func(ev Event) {
		switch {
		case ev.Err != nil: // the session has ended, which ends the tracked node
		case ev.Type == wire.EventNodeDeleted:
			node.Vanished()
		default:
			s.watchEnded(node) // somebody wrote to it
		}
	})
	if err != nil {
		s.watchAnswered()
		s.watchEnded(node)
		return
	}
	s.mu.Lock()
	alive := s.tracked.has(node)
	s.mu.Unlock()
	if !alive {
		s.watches.Stop(set)
	}
}

// watchEnded lets the watch be set again.
func (s *Session) watchEnded(node *TrackedNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tracked.has(node) {
		s.tracked.requeueWatch(node)
		s.wakeLocked()
	}
}

// Vanished ends a tracked node whose node was seen to be gone, for whatever reason.
func (node *TrackedNode) Vanished() {
	s := node.session
	var changes []change
	s.mu.Lock()
	if s.tracked.has(node) {
		changes = s.loseLocked(node, s.gone.add())
	}
	s.mu.Unlock()
	notifyOwners(changes)
	s.inquire()
}

// Deleted ends a tracked node whose node was deleted, as a write of the session has shown.
func (node *TrackedNode) Deleted() {
	s := node.session
	var changes []change
	s.mu.Lock()
	if s.tracked.has(node) {
		changes = s.loseLocked(node, ErrNodeDeleted)
	}
	s.mu.Unlock()
	notifyOwners(changes)
}

package locks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// attempt takes several locks of one client at once: one transaction puts a node
// into each queue, so that any two MultiLocks meet in the same order everywhere and
// cannot deadlock, in whatever order their locks were named. It has the locks
// when it is first in all queues.
//
// Against owners that take the locks one after another this is not enough, see
// multilockyield.go.
//
// Each round lists all queues in one go, so that what a grant rests on was true
// at one time: the nodes were there and first, all of them.
type attempt struct {
	scope     *session.Scope
	members   []*member // in the order of their paths, a lease behind its turn
	reach     int       // how many of them may have a node
	session   int64
	conn      *transport.Conn // that we learned on what we know
	woken     chan struct{}   // something has happened to a node ahead
	fails     bool            // ErrSessionExpired is wanted when the session ends
	behind    bool            // somebody was seen ahead
	apart     bool            // each queue is listed with a request of its own, as one reply for all is too large
	deletions deletions
	yieldState
}

// member is our place in one of the queues.
type member struct {
	*contender
	own        func(*contender) *ownership // makes the ownership
	turn       *member                     // of a lease: our place among those who are being served
	lease      *member                     // of a turn: the lease
	contended  *atomic.Bool                // of a lease: see InterProcessSemaphore
	optimistic bool                        // the lease is made with the turn, see semaphorejoint.go
	old        string                      // the node that a yield of unknown outcome was to delete
	snapshot   *snapshot
	at         int    // our position in the snapshot
	seen       int    // the round of that list
	waits      bool   // somebody is ahead
	ahead      string // who, then
	watch      *session.Watch
	watched    string       // the node that watch is on
	fired      *atomic.Bool // whether it has told its one event
	headSince
}

// newAttempt lines up for locks of one client, which are in the order of their paths.
func newAttempt(ctx context.Context, lockSet []Lock, ordered bool) *attempt {
	a := &attempt{woken: make(chan struct{}, 1)}
	add := func(q *queue, own func(*contender) *ownership) *member {
		m := &member{contender: &contender{queue: q, yields: true}, own: own}
		a.members = append(a.members, m)
		a.fails = a.fails || q.opts.failOnLoss
		return m
	}
	for _, lock := range lockSet {
		switch l := lock.(type) {
		case *InterProcessMutex:
			add(&l.queue, l.own)
		case *InterProcessSemaphoreMutex:
			turn := add(&l.semaphore.turns, nil)
			turn.lease = add(&l.semaphore.leases, l.semaphore.own)
			turn.lease.turn, turn.lease.contended = turn, &l.semaphore.crowded
		}
	}
	a.scope = a.members[0].scope
	tag := tagOf(ctx, a.scope.Session)
	for _, m := range a.members {
		m.tag = tag
	}
	a.reach = len(a.members)
	a.begin(ordered)
	return a
}

// paths is what errors call the MultiLock.
func (a *attempt) paths() string {
	var paths []string
	for _, m := range a.members {
		if m.turn == nil {
			paths = append(paths, m.lock)
		}
	}
	if more := len(paths) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:3], ", "), more)
	}
	return strings.Join(paths, ", ")
}

// acquire waits until we are first everywhere and tracks what was won. If it
// fails, what it may have made goes in the background.
func (a *attempt) acquire(ctx context.Context, once bool) (won []*ownership, err error) {
	defer a.unwatch()
	defer func() {
		for _, m := range a.members {
			m.endWait()
		}
		if won == nil { // also if a function of the caller's has panicked
			a.leave()
		}
	}()
	if once {
		err = a.probe(ctx)
	}
	for failures := 0; err == nil || passing(err) && ctx.Err() == nil; {
		var whole bool
		whole, err = a.round(ctx, once)
		if err == nil && whole {
			if won, err = a.track(ctx); err == nil {
				a.serve()
				return won, nil
			}
		}
		switch {
		case err != nil:
			failures++
			if paused := pause(ctx, max(failures, a.deletions.inARow)); paused != nil {
				err = paused
			}
		case once && a.behind:
			err = ErrNotAcquired
		default:
			failures = 0
		}
	}
	return nil, err
}

// seenAhead is who was seen ahead in the first queue in which we are not first, nil
// for nobody.
func (a *attempt) seenAhead() *obstacle {
	for _, m := range a.members {
		if m.obstacle != nil {
			return m.obstacle
		}
		if m.name == "" || !m.waits || m.snapshot == nil {
			continue
		}
		v := position{at: m.at, ahead: m.snapshot.name(0)}
		v.owner = a.owners[session.Below(m.path, v.ahead)]
		return m.obstacleIn(&v)
	}
	if a.behind {
		return &obstacle{lock: a.paths()}
	}
	return nil
}

// serve gives up the turns, which are over with the leases.
func (a *attempt) serve() {
	var turns []*contender
	for _, m := range a.members {
		if m.lease != nil {
			m.lease.contended.Store(m.behind || m.lease.behind)
			turns = append(turns, m.contender)
		}
	}
	leaveAll(turns)
}

// leave gives up every contender.
func (a *attempt) leave() {
	for _, m := range a.members {
		if m.old != "" {
			m.scope.Session.Remove(m.session, session.Below(m.path, m.old))
		}
	}
	leaveAll(contendersOf(a.members))
}

// probe looks whether there is any use in asking to be first everywhere at once.
func (a *attempt) probe(ctx context.Context) error {
	c, err := a.scope.Session.Conn(ctx, true)
	if err != nil {
		return err
	}
	err = a.probeOn(ctx, c)
	if errors.Is(err, errAgain) { // once more, with a request for each queue
		err = a.probeOn(ctx, c)
	}
	return err
}

func (a *attempt) probeOn(ctx context.Context, c *transport.Conn) error {
	s := a.scope.Session
	lists := s.NewLists(pathsOf(a.members), a.apart)
	sync := transport.NewCall(wire.OpSync, &wire.PathRequest{Path: a.members[0].path}) // not to refuse for what is over
	all := append([]*transport.Call{sync}, lists.Calls...)
	if err := s.SendAll(ctx, c, all); err != nil {
		return err
	}
	s.Settle(ctx, all[len(all)-1])
	if err := s.Await(ctx, c, sync, false); err != nil {
		return err
	}
	for i, m := range a.members {
		children, err := s.Listed(ctx, c, lists, i)
		switch {
		case errors.Is(err, session.ErrApart):
			a.apart = true
			return errAgain
		case errors.Is(err, framework.ErrNoNode):
			continue
		case err != nil:
			return err
		}
		snap, err := m.readSnapshot(children)
		if err != nil {
			return err
		}
		err = m.mayBeFirst(snap)
		snap.free()
		if err != nil {
			a.behind = a.behind || m.behind
			return err
		}
	}
	return nil
}

// round makes the nodes that are wanted, lists the queues and, unless that shows
// us first everywhere, waits for a change. All of it but the waiting is one
// round trip.
func (a *attempt) round(ctx context.Context, once bool) (whole bool, err error) {
	s := a.scope.Session
	c, err := s.Conn(ctx, true)
	if err != nil {
		return false, err
	}
	if a.session != c.Session() {
		if err := a.move(c); err != nil {
			return false, err
		}
	}
	doubt := slices.ContainsFunc(a.members, func(m *member) bool { return m.unknown != nil })
	missing := a.missing(doubt)
	if err := a.send(ctx, c, missing, a.standing(missing), doubt); err != nil {
		return false, err
	}
	a.learn()
	a.retract(c)
	if doubt {
		return false, nil // what was found decides about the next step
	}
	switch a.judge() {
	case judgedWhole:
		return true, nil
	case judgedMore:
		return false, nil
	}
	a.behind = true
	if once {
		return false, nil
	}
	if a.looking {
		a.looking = false
		if yielded, err := a.look(ctx, c); yielded || err != nil {
			return false, err
		}
	}
	return false, a.wait(ctx, c)
}

// move goes on in another session.
func (a *attempt) move(c *transport.Conn) error {
	if a.session != 0 && a.fails {
		return framework.ErrSessionExpired
	}
	a.session, a.conn = c.Session(), c // there is nothing yet that it could be behind of
	for _, m := range a.members {
		m.reset(c)
	}
	a.begin(a.ordered)
	return nil
}

// reset forgets a node that is gone.
func (m *member) reset(c *transport.Conn) {
	m.vanished()
	m.session, m.conn, m.old = c.Session(), c, ""
	m.waits, m.snapshot = false, nil
	m.unwatch()
}

// missing are the members that are to get a node now.
func (a *attempt) missing(doubt bool) []*member {
	if doubt {
		return nil
	}
	var missing []*member
	for _, m := range a.members[:a.reach] {
		if m.name == "" && (m.turn == nil || m.optimistic || m.turn.first()) {
			missing = append(missing, m)
		}
	}
	return missing
}

// retract gives back the leases for which it is not our turn: who has it would
// wait for them.
func (a *attempt) retract(c *transport.Conn) {
	for _, m := range a.members {
		if m.turn != nil && m.name != "" && !m.turn.first() {
			m.leave()
			m.reset(c)
		}
	}
}

// standing are the members to be listed: those that have a node, or may, and for a
// look all others too, as who has what we shall want next may be waiting for us.
func (a *attempt) standing(missing []*member) []*member {
	var all []*member
	for _, m := range a.members {
		if m.name != "" || m.unknown != nil || a.looking || slices.Contains(missing, m) {
			all = append(all, m)
		}
	}
	return all
}

func contendersOf(stands []*member) []*contender {
	places := make([]*contender, len(stands))
	for i, m := range stands {
		places[i] = m.contender
	}
	return places
}

func pathsOf(stands []*member) []string {
	paths := make([]string, len(stands))
	for i, m := range stands {
		paths[i] = m.path
	}
	return paths
}

// first is whether we were seen to have a node with nobody ahead.
func (m *member) first() bool { return m.name != "" && m.snapshot != nil && !m.waits }

// send makes nodes and lists queues, in one round trip. The server answers in
// order, so each list shows our node and every older one that is left: a list
// that is out of date can show too many of them and never too few. On another
// connection than before a sync comes first, as the server may be behind the one
// that we heard of our nodes from.
func (a *attempt) send(ctx context.Context, c *transport.Conn, missing, listed []*member, doubt bool) error {
	s := a.scope.Session
	var calls []*transport.Call
	switch {
	case doubt:
		calls = append(calls, session.Barrier(a.members[0].path))
	case a.conn != c:
		calls = append(calls, transport.NewCall(wire.OpSync, &wire.PathRequest{Path: a.members[0].path}))
	}
	before := len(calls)
	var create *transport.Call
	if len(missing) > 0 {
		var err error
		if create, err = createTogether(c, contendersOf(missing)); err != nil {
			return err
		}
		calls = append(calls, create)
	}
	lists := s.NewLists(pathsOf(listed), a.apart)
	all := append(calls, lists.Calls...)
	if create != nil {
		outcomeUnknown(contendersOf(missing), create) // it ends, and then it is known
	}
	if err := s.SendAll(ctx, c, all); err != nil {
		if create != nil {
			_ = answeredTogether(ctx, c, create, contendersOf(missing)) // takes in whether it was sent
		}
		return err
	}
	s.Settle(ctx, all[len(all)-1])
	// First what may have made nodes: whatever ends the waiting, it must be known.
	if create != nil {
		err := createdTogether(ctx, c, create, contendersOf(missing))
		for _, m := range missing {
			m.optimistic = m.optimistic && errors.Is(err, errAgain) // when only parents were missing
		}
		if err != nil {
			return err
		}
	}
	for _, call := range calls[:before] {
		if err := s.AwaitBarrier(ctx, c, call); err != nil {
			return err
		}
	}
	if err := a.listed(ctx, c, lists, listed); err != nil {
		return err
	}
	if a.conn != c {
		a.conn, a.stall.waiting = c, time.Now()
	}
	return nil
}

// listed takes in the lists, and finds what a creation of unknown outcome made.
func (a *attempt) listed(ctx context.Context, c *transport.Conn, lists *session.Lists, listed []*member) error {
	a.rounds++
	for i, m := range listed {
		children, err := m.scope.Session.Listed(ctx, c, lists, i)
		if errors.Is(err, session.ErrApart) {
			a.apart = true
			return errAgain
		}
		if errors.Is(err, framework.ErrNoNode) {
			children, err = wire.Names{}, nil
			if m.name != "" {
				m.scope.Session.Remove(m.session, m.node()) // not to rest on what only the parent's absence says
			}
		}
		if err != nil {
			return err
		}
		if m.unknown != nil {
			m.find(children)
		}
		before := m.first()
		if m.snapshot, err = m.readSnapshot(children); err != nil {
			return err
		}
		m.seen = a.rounds
		if m.name == "" {
			a.sawHead(m)
			continue
		}
		if m.at = m.snapshot.find(m.name); m.at < 0 {
			a.deletions.note()
			m.reset(c)
			return errAgain
		}
		if err := m.refuse(m.snapshot); err != nil {
			return err
		}
		var ahead int
		if ahead, m.waits = m.queue.ahead(m.snapshot, m.at); m.waits {
			m.ahead, m.behind = m.snapshot.name(ahead), true
		}
		if !before && !m.waits {
			a.lookIn = firstLook // there may be others behind us now
		}
		a.sawHead(m)
	}
	return nil
}

// find settles whether a node was made whose reply was lost, or replaced. The
// session is the same, so what there is under our protection is ours.
func (m *member) find(children wire.Names) {
	m.unknown, m.name = nil, ""
	old := false
	for _, name := range children.All() {
		if bytes.HasPrefix(name, []byte(m.protection)) {
			m.name = string(name)
		}
		old = old || m.old != "" && string(name) == m.old
	}
	switch {
	case m.name != "":
	case old:
		m.name = m.old // the yield was not applied
		m.lateCreate = true
		return
	default:
		m.lateCreate = true // see contender.recover
	}
	m.old, m.czxid = "", 0
}

type judgement int

const (
	judgedWait  judgement = iota // somebody is ahead
	judgedMore                   // there are nodes to be made
	judgedWhole                  // we are first everywhere
)

// judge says how we stand after a round.
func (a *attempt) judge() judgement {
	if len(a.missing(false)) > 0 {
		return judgedMore
	}
	for _, m := range a.members[:a.reach] {
		if !m.first() {
			return judgedWait
		}
	}
	if a.reach < len(a.members) {
		a.extend()
		return judgedMore
	}
	return judgedWhole
}

// track turns what was won into ownerships, in the order of the locks.
func (a *attempt) track(ctx context.Context) (won []*ownership, err error) {
	var owns []*ownership
	defer func() {
		if won == nil {
			for _, o := range owns {
				a.scope.Session.Untrack(o.tracked)
			}
		}
	}()
	for _, m := range a.members {
		if m.lease != nil {
			continue
		}
		if err := m.dated(ctx, a.conn); err != nil {
			return nil, err
		}
		m.conn = a.conn
		o := m.own(m.contender)
		if err := m.track(ctx, o, nil); err != nil {
			return nil, err
		}
		owns = append(owns, o)
	}
	return owns, nil
}

// dated learns the czxid of a node whose creation had its reply lost.
func (m *member) dated(ctx context.Context, c *transport.Conn) error {
	if m.czxid != 0 {
		return nil
	}
	stat, err := m.scope.Session.Stat(ctx, c, m.node())
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return errAgain
	case err != nil:
		return err
	}
	m.czxid = stat.Czxid
	return nil
}

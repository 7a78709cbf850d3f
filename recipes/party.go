package recipes

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
	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// party takes several locks of one client at once: one transaction puts a node
// into each queue, so that any two parties meet in the same order everywhere and
// cannot deadlock, in whatever order their locks were named. It has the locks
// when it is first in all queues.
//
// Against owners that take the locks one after another this is not enough, see
// yield.go.
//
// Each round lists all queues in one go, so that what a grant rests on was true
// at one time: the nodes were there and first, all of them.
type party struct {
	scope     *session.Scope
	stands    []*stand // in the order of their paths, a lease behind its turn
	reach     int      // how many of them may have a node
	session   int64
	conn      *link.Conn    // that we learned on what we know
	woken     chan struct{} // something has happened to a node ahead
	fails     bool          // ErrSessionExpired is wanted when the session ends
	behind    bool          // somebody was seen ahead
	apart     bool          // each queue is listed with a request of its own, as one reply for all is too large
	deletions deletions
	yielding
}

// stand is our place in one of the queues.
type stand struct {
	*place
	own     func(*place) *tenure // makes the ownership
	turn    *stand               // of a lease: our place among those who are being served
	lease   *stand               // of a turn: the lease
	crowded *atomic.Bool         // of a lease: see InterProcessSemaphore
	bold    bool                 // the lease is made with the turn, see semaphorejoint.go
	old     string               // the node that a yield of unknown outcome was to delete
	line    *lineup
	at      int    // our position in line
	seen    int    // the round of that list
	waits   bool   // somebody is ahead
	ahead   string // who, then
	watch   *session.Watch
	watched string       // the node that watch is on
	fired   *atomic.Bool // whether it has told its one event
	blocked
}

// newParty lines up for locks of one client, which are in the order of their paths.
func newParty(ctx context.Context, locks []Lock, ordered bool) *party {
	g := &party{woken: make(chan struct{}, 1)}
	add := func(q *queue, own func(*place) *tenure) *stand {
		st := &stand{place: &place{queue: q, yields: true}, own: own}
		g.stands = append(g.stands, st)
		g.fails = g.fails || q.opts.failOnLoss
		return st
	}
	for _, lock := range locks {
		switch l := lock.(type) {
		case *InterProcessMutex:
			add(&l.queue, l.tenure)
		case *InterProcessSemaphoreMutex:
			turn := add(&l.semaphore.line, nil)
			turn.lease = add(&l.semaphore.leases, l.semaphore.tenure)
			turn.lease.turn, turn.lease.crowded = turn, &l.semaphore.crowded
		}
	}
	g.scope = g.stands[0].scope
	tag := tagOf(ctx, g.scope.Session)
	for _, st := range g.stands {
		st.tag = tag
	}
	g.reach = len(g.stands)
	g.begin(ordered)
	return g
}

// paths is what errors call the party.
func (g *party) paths() string {
	var paths []string
	for _, st := range g.stands {
		if st.turn == nil {
			paths = append(paths, st.lock)
		}
	}
	if more := len(paths) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:3], ", "), more)
	}
	return strings.Join(paths, ", ")
}

// acquire waits until we are first everywhere and claims what was won. If it
// fails, what it may have made goes in the background.
func (g *party) acquire(ctx context.Context, once bool) (won []*tenure, err error) {
	defer g.unwatch()
	defer func() {
		for _, st := range g.stands {
			st.endWait()
		}
		if won == nil { // also if a function of the caller's has panicked
			g.leave()
		}
	}()
	if once {
		err = g.peek(ctx)
	}
	for failures := 0; err == nil || passing(err) && ctx.Err() == nil; {
		var whole bool
		whole, err = g.round(ctx, once)
		if err == nil && whole {
			if won, err = g.claim(ctx); err == nil {
				g.serve()
				return won, nil
			}
		}
		switch {
		case err != nil:
			failures++
			if paused := pause(ctx, max(failures, g.deletions.inARow)); paused != nil {
				err = paused
			}
		case once && g.behind:
			err = ErrNotAcquired
		default:
			failures = 0
		}
	}
	return nil, err
}

// seenAhead is who was seen ahead in the first queue in which we are not first, nil
// for nobody.
func (g *party) seenAhead() *obstacle {
	for _, st := range g.stands {
		if st.obstacle != nil {
			return st.obstacle
		}
		if st.name == "" || !st.waits || st.line == nil {
			continue
		}
		v := view{at: st.at, ahead: st.line.name(0)}
		v.owner = g.owners[session.Below(st.path, v.ahead)]
		return st.obstacleIn(&v)
	}
	if g.behind {
		return &obstacle{lock: g.paths()}
	}
	return nil
}

// serve gives up the turns, which are over with the leases.
func (g *party) serve() {
	var turns []*place
	for _, st := range g.stands {
		if st.lease != nil {
			st.lease.crowded.Store(st.behind || st.lease.behind)
			turns = append(turns, st.place)
		}
	}
	leaveAll(turns)
}

// leave gives up every place.
func (g *party) leave() {
	for _, st := range g.stands {
		if st.old != "" {
			st.scope.Session.Remove(st.session, session.Below(st.path, st.old))
		}
	}
	leaveAll(placesOf(g.stands))
}

// peek looks whether there is any use in asking to be first everywhere at once.
func (g *party) peek(ctx context.Context) error {
	c, err := g.scope.Session.Conn(ctx, true)
	if err != nil {
		return err
	}
	err = g.peekOn(ctx, c)
	if errors.Is(err, errAgain) { // once more, with a request for each queue
		err = g.peekOn(ctx, c)
	}
	return err
}

func (g *party) peekOn(ctx context.Context, c *link.Conn) error {
	s := g.scope.Session
	lists := s.NewLists(pathsOf(g.stands), g.apart)
	sync := link.NewCall(wire.OpSync, &wire.PathRequest{Path: g.stands[0].path}) // not to refuse for what is over
	all := append([]*link.Call{sync}, lists.Calls...)
	if err := s.SendAll(ctx, c, all); err != nil {
		return err
	}
	s.Settle(ctx, all[len(all)-1])
	if err := s.Await(ctx, c, sync, false); err != nil {
		return err
	}
	for i, st := range g.stands {
		children, err := s.Listed(ctx, c, lists, i)
		switch {
		case errors.Is(err, session.ErrApart):
			g.apart = true
			return errAgain
		case errors.Is(err, framework.ErrNoNode):
			continue
		case err != nil:
			return err
		}
		line, err := st.lineUp(children)
		if err != nil {
			return err
		}
		err = st.mayBeFirst(line)
		line.free()
		if err != nil {
			g.behind = g.behind || st.behind
			return err
		}
	}
	return nil
}

// round makes the nodes that are wanted, lists the queues and, unless that shows
// us first everywhere, waits for a change. All of it but the waiting is one
// round trip.
func (g *party) round(ctx context.Context, once bool) (whole bool, err error) {
	s := g.scope.Session
	c, err := s.Conn(ctx, true)
	if err != nil {
		return false, err
	}
	if g.session != c.Session() {
		if err := g.move(c); err != nil {
			return false, err
		}
	}
	doubt := slices.ContainsFunc(g.stands, func(st *stand) bool { return st.doubt != nil })
	missing := g.missing(doubt)
	if err := g.send(ctx, c, missing, g.standing(missing), doubt); err != nil {
		return false, err
	}
	g.learn()
	g.retract(c)
	if doubt {
		return false, nil // what was found decides about the next step
	}
	switch g.judge() {
	case judgedWhole:
		return true, nil
	case judgedMore:
		return false, nil
	}
	g.behind = true
	if once {
		return false, nil
	}
	if g.looking {
		g.looking = false
		if yielded, err := g.look(ctx, c); yielded || err != nil {
			return false, err
		}
	}
	return false, g.wait(ctx, c)
}

// move goes on in another session.
func (g *party) move(c *link.Conn) error {
	if g.session != 0 && g.fails {
		return framework.ErrSessionExpired
	}
	g.session, g.conn = c.Session(), c // there is nothing yet that it could be behind of
	for _, st := range g.stands {
		st.reset(c)
	}
	g.begin(g.ordered)
	return nil
}

// reset forgets a node that is gone.
func (st *stand) reset(c *link.Conn) {
	st.vanished()
	st.session, st.conn, st.old = c.Session(), c, ""
	st.waits, st.line = false, nil
	st.unwatch()
}

// missing are the stands that are to get a node now.
func (g *party) missing(doubt bool) []*stand {
	if doubt {
		return nil
	}
	var missing []*stand
	for _, st := range g.stands[:g.reach] {
		if st.name == "" && (st.turn == nil || st.bold || st.turn.first()) {
			missing = append(missing, st)
		}
	}
	return missing
}

// retract gives back the leases for which it is not our turn: who has it would
// wait for them.
func (g *party) retract(c *link.Conn) {
	for _, st := range g.stands {
		if st.turn != nil && st.name != "" && !st.turn.first() {
			st.leave()
			st.reset(c)
		}
	}
}

// standing are the stands to be listed: those that have a node, or may, and for a
// look all others too, as who has what we shall want next may be waiting for us.
func (g *party) standing(missing []*stand) []*stand {
	var all []*stand
	for _, st := range g.stands {
		if st.name != "" || st.doubt != nil || g.looking || slices.Contains(missing, st) {
			all = append(all, st)
		}
	}
	return all
}

func placesOf(stands []*stand) []*place {
	places := make([]*place, len(stands))
	for i, st := range stands {
		places[i] = st.place
	}
	return places
}

func pathsOf(stands []*stand) []string {
	paths := make([]string, len(stands))
	for i, st := range stands {
		paths[i] = st.path
	}
	return paths
}

// first is whether we were seen to have a node with nobody ahead.
func (st *stand) first() bool { return st.name != "" && st.line != nil && !st.waits }

// send makes nodes and lists queues, in one round trip. The server answers in
// order, so each list shows our node and every older one that is left: a list
// that is out of date can show too many of them and never too few. On another
// connection than before a sync comes first, as the server may be behind the one
// that we heard of our nodes from.
func (g *party) send(ctx context.Context, c *link.Conn, missing, listed []*stand, doubt bool) error {
	s := g.scope.Session
	var calls []*link.Call
	switch {
	case doubt:
		calls = append(calls, session.Barrier(g.stands[0].path))
	case g.conn != c:
		calls = append(calls, link.NewCall(wire.OpSync, &wire.PathRequest{Path: g.stands[0].path}))
	}
	before := len(calls)
	var create *link.Call
	if len(missing) > 0 {
		var err error
		if create, err = createTogether(c, placesOf(missing)); err != nil {
			return err
		}
		calls = append(calls, create)
	}
	lists := s.NewLists(pathsOf(listed), g.apart)
	all := append(calls, lists.Calls...)
	if create != nil {
		doubted(placesOf(missing), create) // it ends, and then it is known
	}
	if err := s.SendAll(ctx, c, all); err != nil {
		if create != nil {
			_ = answeredTogether(ctx, c, create, placesOf(missing)) // takes in whether it was sent
		}
		return err
	}
	s.Settle(ctx, all[len(all)-1])
	// First what may have made nodes: whatever ends the waiting, it must be known.
	if create != nil {
		err := createdTogether(ctx, c, create, placesOf(missing))
		for _, st := range missing {
			st.bold = st.bold && errors.Is(err, errAgain) // when only parents were missing
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
	if err := g.listed(ctx, c, lists, listed); err != nil {
		return err
	}
	if g.conn != c {
		g.conn, g.stall.waiting = c, time.Now()
	}
	return nil
}

// listed takes in the lists, and finds what a creation of unknown outcome made.
func (g *party) listed(ctx context.Context, c *link.Conn, lists *session.Lists, listed []*stand) error {
	g.rounds++
	for i, st := range listed {
		children, err := st.scope.Session.Listed(ctx, c, lists, i)
		if errors.Is(err, session.ErrApart) {
			g.apart = true
			return errAgain
		}
		if errors.Is(err, framework.ErrNoNode) {
			children, err = wire.Names{}, nil
			if st.name != "" {
				st.scope.Session.Remove(st.session, st.node()) // not to rest on what only the parent's absence says
			}
		}
		if err != nil {
			return err
		}
		if st.doubt != nil {
			st.find(children)
		}
		before := st.first()
		if st.line, err = st.lineUp(children); err != nil {
			return err
		}
		st.seen = g.rounds
		if st.name == "" {
			g.sawHead(st)
			continue
		}
		if st.at = st.line.find(st.name); st.at < 0 {
			g.deletions.note()
			st.reset(c)
			return errAgain
		}
		if err := st.refuse(st.line); err != nil {
			return err
		}
		var ahead int
		if ahead, st.waits = st.queue.ahead(st.line, st.at); st.waits {
			st.ahead, st.behind = st.line.name(ahead), true
		}
		if !before && !st.waits {
			g.lookIn = firstLook // there may be others behind us now
		}
		g.sawHead(st)
	}
	return nil
}

// find settles whether a node was made whose reply was lost, or replaced. The
// session is the same, so what there is under our protection is ours.
func (st *stand) find(children wire.Names) {
	st.doubt, st.name = nil, ""
	old := false
	for _, name := range children.All() {
		if bytes.HasPrefix(name, []byte(st.protection)) {
			st.name = string(name)
		}
		old = old || st.old != "" && string(name) == st.old
	}
	switch {
	case st.name != "":
	case old:
		st.name = st.old // the yield was not applied
		st.straggler = true
		return
	default:
		st.straggler = true // see place.recover
	}
	st.old, st.czxid = "", 0
}

type judgement int

const (
	judgedWait  judgement = iota // somebody is ahead
	judgedMore                   // there are nodes to be made
	judgedWhole                  // we are first everywhere
)

// judge says how we stand after a round.
func (g *party) judge() judgement {
	if len(g.missing(false)) > 0 {
		return judgedMore
	}
	for _, st := range g.stands[:g.reach] {
		if !st.first() {
			return judgedWait
		}
	}
	if g.reach < len(g.stands) {
		g.extend()
		return judgedMore
	}
	return judgedWhole
}

// claim turns what was won into tenures, in the order of the locks.
func (g *party) claim(ctx context.Context) (won []*tenure, err error) {
	var tenures []*tenure
	defer func() {
		if won == nil {
			for _, t := range tenures {
				g.scope.Session.DropClaim(t.claim)
			}
		}
	}()
	for _, st := range g.stands {
		if st.lease != nil {
			continue
		}
		if err := st.dated(ctx, g.conn); err != nil {
			return nil, err
		}
		st.conn = g.conn
		t := st.own(st.place)
		if err := st.claim(ctx, t, nil); err != nil {
			return nil, err
		}
		tenures = append(tenures, t)
	}
	return tenures, nil
}

// dated learns the czxid of a node whose creation had its reply lost.
func (st *stand) dated(ctx context.Context, c *link.Conn) error {
	if st.czxid != 0 {
		return nil
	}
	stat, err := st.scope.Session.Stat(ctx, c, st.node())
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return errAgain
	case err != nil:
		return err
	}
	st.czxid = stat.Czxid
	return nil
}

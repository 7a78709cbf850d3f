package recipes

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// A party can deadlock with an owner that takes the same locks one after
// another, in whatever order: our node in queue i stands ahead of theirs, while
// in queue j theirs stands ahead of ours. So while it is not whole, a party that
// is first in queue i and waits in queue j looks from time to time whether the
// one that has j is the one that waits behind us in i: whether their nodes are
// of one session. If so, it yields: its node in i goes to the end of the queue,
// and every other place is kept. Cycles of three or more show no such match, so
// without one the same is done after a longer time.
//
// Nodes of ours say whose they are, so that many owners can share a session (see
// session.Tag). Those of other libraries may match for no reason, and an owner
// may give up waiting by itself. What tells them apart is time: who waits for us
// does not give back what we wait for. So the head of j has to have stood for as
// long as our patience, see patience.go.
const (
	firstLook  = time.Millisecond
	mostLook   = 256 * time.Millisecond
	mostOwners = 8 // that are asked for in one queue
)

// yielding is what a party knows about standing in others' way.
type yielding struct {
	ordered bool          // makes its nodes one by one
	looking bool          // the next round is a look
	lookIn  time.Duration // how long until the next look
	patiences
	owners map[string]int64
}

// blocked is since when the same node was seen at the head of a queue.
type blocked struct {
	head  string
	since time.Time
}

func (g *party) sawHead(st *stand) {
	head := ""
	if holders := st.holders(); len(holders) > 0 {
		head = holders[0].name
	}
	if st.head != head {
		st.head, st.since = head, time.Now()
	}
}

// begin sets out, at first or in another session.
func (g *party) begin(ordered bool) {
	g.ordered = ordered
	g.lookIn = firstLook
	g.patiences = newPatiences(time.Now())
	g.owners = nil
	g.reach = len(g.stands)
	for _, st := range g.stands {
		st.bold = st.turn != nil && !ordered && !st.crowded.Load()
	}
	if ordered {
		g.reach = 0
		g.extend()
	}
}

// extend lets the next lock be queued for: one more stand, with its lease.
func (g *party) extend() {
	g.reach++
	if g.reach < len(g.stands) && g.stands[g.reach].turn != nil {
		g.reach++
	}
}

// wait returns when something has happened to a node ahead, or it is time to
// look whether we are in the way.
func (g *party) wait(ctx context.Context, c *link.Conn) error {
	if again, err := g.watchAhead(ctx, c); again || err != nil {
		return err
	}
	for _, st := range g.stands {
		switch {
		case !st.waits:
		case st.turn != nil: // turn and lease are one acquisition
			st.turn.beginWait()
		default:
			st.beginWait()
		}
	}
	var look <-chan time.Time
	if g.inTheWay() {
		timer := time.NewTimer(g.untilLook(time.Now()))
		defer timer.Stop()
		look = timer.C
	}
	select {
	case <-g.woken:
		return nil
	case <-ctx.Done():
		return foreign.ContextEnd(ctx)
	case <-look:
		g.looking = true
		return nil
	}
}

// untilLook is the time to the next look: when an owner that waits for us would
// have stood for as long as our patience, and otherwise, or if that is far off,
// less and less often, as somebody may have come behind us. It is no later than
// the end of the patience with those of whom nothing shows.
func (g *party) untilLook(now time.Time) time.Duration {
	chance := g.scope.Session.ChanceOf(g.stands[0].tag)
	next := g.lookIn/2 + chance.Below(g.lookIn)
	stall := g.stall.time(now)
	for _, st := range g.stands {
		if len(st.holders()) == 0 {
			continue
		}
		for _, patience := range []time.Duration{g.sure.time(), g.unsure.time()} {
			if left := st.since.Add(patience).Sub(now); left > 0 && left <= mostLook {
				g.lookIn = firstLook
				return left + chance.Below(patience/2)
			}
		}
		if left := st.since.Add(stall).Sub(now); left > 0 {
			next = min(next, left+chance.Below(stall/stallJitter))
		}
	}
	g.lookIn = min(2*g.lookIn, mostLook)
	return next
}

// inTheWay is whether we may be holding somebody up.
func (g *party) inTheWay() bool { return slices.ContainsFunc(g.stands, (*stand).inTheWay) }

// inTheWay is whether somebody may be waiting for this place: a lease holds nobody
// up, as who wants it waits for our turn.
func (st *stand) inTheWay() bool { return st.turn == nil && st.first() }

// mostSettings bounds the requests on their way that set watches.
const mostSettings = session.MostAhead

// watchAhead sees to it that the node ahead is watched wherever we wait. It
// reports true if one has gone meanwhile.
func (g *party) watchAhead(ctx context.Context, c *link.Conn) (again bool, err error) {
	s := g.scope.Session
	type setting struct {
		st   *stand
		call *link.Call
	}
	var set []setting
	for _, st := range g.stands {
		if !st.waits || st.name == "" {
			st.unwatch()
			continue
		}
		if st.watched == st.ahead && !st.fired.Load() {
			continue
		}
		st.unwatch()
		fired := new(atomic.Bool)
		call, watch, err := s.WatchData(ctx, c, session.Below(st.path, st.ahead), g.wakes(fired))
		if err != nil {
			return false, err
		}
		st.watch, st.watched, st.fired = watch, st.ahead, fired
		if set = append(set, setting{st, call}); len(set) > mostSettings {
			s.Settle(ctx, set[len(set)-1-mostSettings].call)
		}
	}
	for _, w := range set {
		err := s.Await(ctx, c, w.call, false)
		if errors.Is(err, framework.ErrNoAuth) {
			w.st.unwatch()
			fired := new(atomic.Bool)
			w.st.watch, err = w.st.watchUnreadable(ctx, c, w.st.ahead, g.wakes(fired))
			w.st.watched, w.st.fired = w.st.ahead, fired
		}
		if errors.Is(err, framework.ErrNoNode) {
			again, err = true, nil
			w.st.unwatch()
		}
		if err != nil {
			w.st.unwatch()
			return false, err
		}
	}
	return again, nil
}

// wakes returns a function for a watch on a node ahead, which is over with its
// first event: the node may have been written to.
func (g *party) wakes(fired *atomic.Bool) func(session.Event) {
	return func(session.Event) {
		fired.Store(true)
		select {
		case g.woken <- struct{}{}:
		default:
		}
	}
}

func (st *stand) unwatch() {
	if st.watch != nil {
		st.scope.Session.StopWatch(st.watch)
	}
	st.watch, st.watched, st.fired = nil, "", nil
}

func (g *party) unwatch() {
	for _, st := range g.stands {
		st.unwatch()
	}
}

// look yields where we are in the way, by the lists that were just taken.
func (g *party) look(ctx context.Context, c *link.Conn) (yielded bool, err error) {
	if err := g.askOwners(ctx, c); err != nil {
		return false, err
	}
	now := time.Now()
	yield, due := g.toYield(now)
	switch {
	case len(yield) == 0:
		return false, nil
	case due == nil:
		g.stall.yielded(now)
	default:
		due.yielded()
	}
	g.lookIn = firstLook
	return true, g.yield(ctx, c, yield)
}

// holders are the nodes that have the lock which a stand waits for, or will:
// where we have no node yet, those that were there at the last look.
func (st *stand) holders() []contender {
	before := st.at
	switch {
	case st.name != "" && st.waits:
	case st.name == "":
		if _, waits := st.queue.ahead(st.line, st.line.len()); !waits {
			return nil
		}
		before = st.line.len()
	default:
		return nil
	}
	n := min(1, before)
	for n > 0 && n < before && n < mostOwners && st.line.mark(0) == readName && st.line.mark(n) == readName {
		n++
	}
	return st.line.span(0, n)
}

// followers are those behind a stand that is first.
func (st *stand) followers() []contender {
	from := st.at + 1
	return st.line.span(from, min(st.line.len(), from+mostOwners))
}

// askOwners learns whose the nodes are that matter, each once.
func (g *party) askOwners(ctx context.Context, c *link.Conn) error {
	s := g.scope.Session
	var paths []string
	var calls []*link.Call
	ask := func(st *stand, nodes []contender) {
		for _, c := range nodes {
			path := session.Below(st.path, c.name)
			if _, known := g.owners[path]; !known && !slices.Contains(paths, path) {
				paths = append(paths, path)
				calls = append(calls, link.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: path}))
			}
		}
	}
	for _, st := range g.stands {
		ask(st, st.holders())
		if st.inTheWay() {
			ask(st, st.followers())
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if err := s.SendAll(ctx, c, calls); err != nil {
		return err
	}
	if g.owners == nil {
		g.owners = make(map[string]int64)
	}
	for i, call := range calls {
		var resp wire.StatResponse
		err := s.Await(ctx, c, call, false)
		if err == nil {
			err = call.Decode(&resp)
		}
		switch {
		case errors.Is(err, framework.ErrNoNode):
		case errors.Is(err, framework.ErrNoAuth): // ZooKeeper 3.9 does not say whose it is
		case err != nil:
			return err
		default:
			g.owners[paths[i]] = resp.Stat.EphemeralOwner
		}
	}
	return nil
}

// node is what tells owners apart.
type node struct {
	name    string
	session int64
	tag     string // "" if it says none
	yields  bool
}

// isParty is whether a node is of a MultiLock.
func (c contender) isParty() bool {
	return session.Yields(c.name)
}

// likeness is how likely two nodes are of one owner.
type likeness int

const (
	unlike  likeness = iota
	perhaps          // of one session, and no more is known
	alike
)

// like compares two nodes. Nodes that say nothing, as those of other libraries,
// are told apart by their sessions. Of those that do, who nests locks may have
// forgotten to pass on the context, and so have different tags. A MultiLock is
// not suspected of that, or those of one session would yield to each other for
// whatever anybody there holds.
func (n node) like(other node) likeness {
	differ := n.tag != other.tag && n.tag != "" && other.tag != ""
	switch {
	case n.session != other.session, differ && (n.yields || other.yields):
		return unlike
	case differ:
		return perhaps
	}
	return alike
}

// known are the owners of nodes that were there to be asked for.
func (g *party) known(st *stand, nodes []contender) (all []node) {
	for _, c := range nodes {
		if owner, known := g.owners[session.Below(st.path, c.name)]; known {
			tag, yields := session.TagOf(c.name)
			all = append(all, node{c.name, owner, tag, yields})
		}
	}
	return all
}

// toYield picks where to yield, and whose patience is due: nil for that with a
// stall.
func (g *party) toYield(now time.Time) (yield []*stand, due *patience) {
	held, crowds := g.held(), g.crowds()
	var sure, unsure, crowded []*stand
	for _, st := range g.stands {
		if !st.inTheWay() || len(st.followers()) == 0 {
			continue
		}
		crowded = append(crowded, st)
		switch g.suspect(st, held, crowds, now) {
		case &g.sure:
			sure = append(sure, st)
		case &g.unsure:
			unsure = append(unsure, st)
		}
	}
	switch {
	case len(sure) > 0:
		return sure, &g.sure
	case len(unsure) > 0:
		return unsure, &g.unsure
	case len(crowded) > 0 && g.stalled(now) && (!onlyParties(crowded) || !g.stall.rests(now)):
		return crowded, nil
	}
	return nil, nil
}

// holding is a node that has what we wait for in a stand.
type holding struct {
	node
	in *stand
}

func (g *party) held() (all []holding) {
	for _, st := range g.stands {
		for _, n := range g.known(st, st.holders()) {
			all = append(all, holding{n, st})
		}
	}
	return all
}

// suspect looks for somebody behind a stand who has what we wait for, and says
// whose patience with that is over, if any.
func (g *party) suspect(st *stand, held []holding, crowds map[int64]int, now time.Time) (due *patience) {
	for _, waits := range g.known(st, st.followers()) {
		for _, has := range held {
			var p *patience
			switch l := has.like(waits); {
			case l == alike && st.defers(waits):
				p = &g.sure
			case l == perhaps && crowds[waits.session] == 1:
				p = &g.unsure
			default:
				continue
			}
			g.remember(suspicion{patience: p, at: st, own: st.name, waits: waits.name, of: has.in, has: has.name}, waits.yields)
			if now.Sub(has.in.since) >= p.time() && due != &g.sure {
				due = p
			}
		}
	}
	return due
}

// onlyParties is whether nobody but parties waits behind the stands.
func onlyParties(crowded []*stand) bool {
	return !slices.ContainsFunc(crowded, func(st *stand) bool {
		return slices.ContainsFunc(st.followers(), func(c contender) bool { return !c.isParty() })
	})
}

// stalled is whether the patience with those is over of whom nothing shows.
func (g *party) stalled(now time.Time) bool {
	patience := g.stall.time(now)
	return slices.ContainsFunc(g.stands, func(st *stand) bool {
		return len(st.holders()) > 0 && now.Sub(st.since) >= patience
	})
}

// crowds is how many of each session wait for us. An owner waits at one place at
// a time, so more than one are different owners.
func (g *party) crowds() map[int64]int {
	waiting := make(map[int64]int)
	for _, st := range g.stands {
		if st.inTheWay() {
			for _, n := range g.known(st, st.followers()) {
				waiting[n.session]++
			}
		}
	}
	return waiting
}

// defers is whether we yield to an owner: of two that would both, only one does.
func (st *stand) defers(to node) bool {
	own, _ := session.TagOf(st.name)
	return !to.yields || own > to.tag
}

// yield puts our nodes in some queues to their ends, in one transaction.
func (g *party) yield(ctx context.Context, c *link.Conn, stands []*stand) error {
	req := &wire.MultiRequest{}
	remove := func(st *stand) {
		req.Ops = append(req.Ops, wire.MultiOp{Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: st.node(), Version: -1}})
	}
	var gone []*stand
	for _, st := range stands {
		if st.lease != nil && st.lease.name != "" {
			gone = append(gone, st.lease)
		}
		gone = append(gone, st)
	}
	for _, st := range gone {
		remove(st)
	}
	deletes := len(req.Ops)
	for _, st := range gone {
		st.old, st.name = st.name, ""
		st.sweep()
		st.protection = st.scope.Session.Protection(st.tag, st.yields)
	}
	for _, st := range stands {
		req.Ops = append(req.Ops, st.creationOp(c))
	}
	undo := func() {
		for _, st := range gone {
			st.doubt, st.name, st.old = nil, st.old, ""
		}
	}
	call, err := transaction(req)
	if err == nil {
		err = g.scope.Session.Send(ctx, c, call)
	}
	if err != nil {
		undo()
		return err
	}
	doubted(placesOf(gone), call)
	err = g.scope.Session.Await(ctx, c, call, true)
	var resp wire.MultiResponse
	if err == nil {
		if err = call.Decode(&resp); err != nil || len(resp.Results) != len(req.Ops) {
			err = errors.Join(framework.ErrOutcomeUnknown, err)
		}
	}
	if framework.Ambiguous(err) {
		return err
	}
	if err != nil {
		undo()
		return err
	}
	if _, _, err := firstRefusal(resp.Results); err != nil {
		undo()
		if errors.Is(err, framework.ErrNoNode) {
			return nil // somebody deleted one, which the next round sees
		}
		return err
	}
	for _, st := range gone {
		st.doubt, st.old, st.czxid, st.waits, st.line = nil, "", 0, false, nil
		st.unwatch()
	}
	for i, st := range stands {
		if e := st.named(resp.Results[deletes+i].Path, call.Zxid()); e != nil {
			st.doubt = call
			err = errors.Join(err, e)
		}
	}
	return err
}

package acquire

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/deadlock"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// Semaphore is an attempt to get leases. A contender in the queue of turns is served
// when it is first there. Then it makes its leases, and has them when all are among
// the first.
//
// If nobody is in the way, this costs one round trip: one transaction makes the turn and
// the leases, and both lists follow right behind it on the same connection. These rules
// decide:
//
//   - The leases are ours only if our turn is first, so that we overtake nobody who came
//     before us.
//   - They are ours only if all of them are among the first. Every client goes by this,
//     whoever has the turn, so there are never more owners than leases.
//   - If our turn is not first, we delete the leases at once. Curator's peers count all
//     leases that exist, so a lease that we kept while we wait for our turn would block
//     the owner of the turn for ever.
//
// In the last case a peer that waits for a lease may wake up for nothing. So the
// semaphore tries this only if nobody was in the way the last time.
type Semaphore struct {
	Attempt
	n, total int
	all      []*contender // the turn and the leases
	turn     *contender
	stage    stage // of the round

	optimistic bool // the leases are made with the turn
	served     bool // the turn was seen to be first
	full       bool // no lease was seen to be free

	turnPosition  Position // the latest that showed somebody ahead of the turn
	leasePosition Position // the same for the first lease that has to wait
	children      childWatch
	turnPolicy    deadlock.Turn
}

// stage is what a round of a semaphore is for.
type stage uint8

const (
	finding  stage = iota // to find what creations of unknown outcome have made
	together              // to make turn and leases in one step
	queueing              // to get the turn
	leasing               // to get the leases
)

// NewSemaphore makes an attempt for n of the leases of a semaphore that has total.
// contended is whether another participant was in the way the last time.
func NewSemaphore(turns, leases *Queue, n, total int, tag nodename.Tag, contended *atomic.Bool, host Host) *Semaphore {
	s := &Semaphore{n: n, total: total, optimistic: !contended.Load() && n < session.MostOperations}
	all := make([]contender, 1+n)
	s.all = make([]*contender, 1+n)
	for i := range all {
		all[i] = contender{queue: leases, tag: tag}
		s.all[i] = &all[i]
	}
	all[0].queue = turns
	s.turn = s.all[0]
	observer, _ := host.(Observer)
	s.init(all, host, observer, s)
	return s
}

func (s *Semaphore) leases() []*contender { return s.all[1:] }

func (s *Semaphore) begin(*Attempt) { s.served = false }

// precheck refuses if there are not enough leases. It does not refuse because others are
// just being served.
func (s *Semaphore) precheck(ctx context.Context, a *Attempt, c *transport.Conn) error {
	snap, err := s.leases()[0].queue.List(ctx, c)
	if err != nil {
		return err
	}
	if err := s.leases()[0].queue.Check(snap); err != nil {
		return err
	}
	if snap.Len()+s.n <= s.total {
		return nil
	}
	s.stage, s.full = leasing, true
	s.leasePosition = Position{At: snap.Len(), Ahead: snap.Name(0)}
	return ErrNotAcquired
}

func (s *Semaphore) plan(a *Attempt) plan {
	s.unwatch(a)
	switch turn, both := s.all[:1], s.all[:2]; {
	case a.any((*contender).unknown):
		s.stage = finding
		return plan{list: both, plain: true}
	case s.turn.phase == absent && s.optimistic: // and so are the leases
		s.stage = together
		return plan{create: s.all, list: both, plain: true}
	case s.turn.phase == absent:
		s.stage, s.served = queueing, false
		return plan{create: turn, list: turn}
	case !s.served:
		s.stage = queueing
		return plan{list: turn}
	default:
		s.stage = leasing
		s.children = childWatch{changed: make(chan error, 1)}
		missing := slices.DeleteFunc(slices.Clone(s.leases()), func(k *contender) bool { return k.phase != absent })
		return plan{create: missing, split: true, list: s.leases()[:1], watch: &s.children}
	}
}

// failed makes the attempt look for its turn again. Unless only parents were missing, it
// makes turn and leases one after the other from then on.
func (s *Semaphore) failed(err error) error {
	s.served = false
	if s.stage != together || errors.Is(err, errAgain) {
		return err
	}
	s.optimistic = false
	if errors.Is(err, session.ErrTooLarge) {
		return errMore
	}
	return err
}

func (s *Semaphore) judge(a *Attempt) (step, error) {
	switch s.stage {
	case finding:
		s.optimistic = false
		s.turn.drop()
		s.leases()[0].drop()
		if s.turn.phase == absent {
			s.giveBack(a)
		}
		return again, nil
	case leasing:
		return s.judgeLeases(a)
	}
	s.optimistic = false
	defer s.turn.drop()
	at, ahead, err := a.locate(s.turn)
	switch {
	case err != nil: // without its turn it goes to the end, where it must not have leases
		s.giveBack(a)
		return again, err
	case ahead >= 0:
		s.turnPosition.set(s.turn, at, ahead)
		a.blocked(s.turn, &s.turnPosition)
		s.giveBack(a)
		return waiting, nil
	case s.stage == queueing:
		s.served = true
		return again, nil
	}
	// What the transaction has not given is asked for with a watch.
	if st, err := s.judgeLeases(a); st == granted || err != nil {
		return st, err
	}
	return again, nil
}

// judgeLeases is whether all of our leases are among the first.
func (s *Semaphore) judgeLeases(a *Attempt) (step, error) {
	q, snap := s.leases()[0].queue, s.leases()[0].snapshot
	defer s.leases()[0].drop()
	if err := q.Check(snap); err != nil {
		return again, err
	}
	s.full = false
	var gone []*contender
	for i, k := range s.leases() {
		at := snap.Find(k.name())
		if at < 0 {
			gone = append(gone, k)
			continue
		}
		if _, waits := q.Rule(snap, at); waits && !s.full {
			s.full, a.behind = true, true
			s.leasePosition = Position{At: at - i} // our own before it were made in this order
			s.leasePosition.Front.set(snap.Bytes(0))
		}
	}
	switch {
	case gone != nil:
		s.served = false // the turn may have been deleted as well
		return again, a.deleted(gone...)
	case !s.full:
		return granted, nil
	case s.stage == leasing && a.once:
		return waiting, ErrNotAcquired
	}
	return waiting, nil
}

// giveBack gives up the leases.
func (s *Semaphore) giveBack(a *Attempt) {
	leave(a.session, a.id, s.leases()...)
	for _, k := range s.leases() {
		k.forget(a.id)
	}
}

func (s *Semaphore) wait(ctx context.Context, a *Attempt, c *transport.Conn) (bool, error) {
	if s.stage != leasing {
		a.tellWait(s.turn.queue, s.turn.path, s.turnPosition.At, s.turnPosition.Ahead)
		return false, a.waitFor(ctx, c, s.turn, &s.turnPosition)
	}
	a.tellWait(s.turn.queue, s.turn.path, 0, "")
	late, stop := s.stalled()
	defer stop()
	select {
	case err := <-s.children.changed:
		return false, ofSession(err)
	case <-ctx.Done():
		return false, foreign.ContextEnd(ctx)
	case <-late:
		return false, s.yieldIfNeeded(ctx, a, c)
	}
}

func (s *Semaphore) tracked(*session.TrackedNode) {}

func (s *Semaphore) wantedNodes(*Attempt) []*contender { return s.leases() }

func (s *Semaphore) unwatch(a *Attempt) {
	if s.children.watch != nil {
		session.StopWatch(a.session, s.children.watch)
	}
	s.children = childWatch{}
}

func (s *Semaphore) obstacle(*Attempt) *Obstacle {
	switch {
	case s.stage == leasing && s.full:
		return s.leasePosition.obstacle(s.leases()[0].queue)
	case s.turnPosition.Ahead != "":
		return s.turnPosition.obstacle(s.turn.queue)
	}
	return nil
}

// stalled returns a channel that tells when to check whether to yield; nil for never.
func (s *Semaphore) stalled() (<-chan time.Time, func()) {
	d, yields := s.turnPolicy.Next(s.n)
	if !yields {
		return nil, func() {}
	}
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// yieldIfNeeded gives the turn and the leases to those behind, if one of them has a
// lease.
func (s *Semaphore) yieldIfNeeded(ctx context.Context, a *Attempt, c *transport.Conn) error {
	inTheWay, err := s.inTheWay(ctx, c)
	s.turnPolicy.Checked(inTheWay)
	if !inTheWay {
		return err
	}
	a.tell(Event{Kind: Yield, Queue: s.turn.queue})
	s.giveBack(a)
	leave(a.session, a.id, s.turn)
	s.turn.forget(a.id)
	s.served = false
	return nil
}

// inTheWay is whether a session that waits for a turn behind ours has a lease.
func (s *Semaphore) inTheWay(ctx context.Context, c *transport.Conn) (bool, error) {
	snap, err := s.turn.queue.List(ctx, c)
	at := snap.Find(s.turn.name())
	if err != nil || at < 0 || at == snap.Len()-1 {
		return false, err
	}
	leases, err := s.leases()[0].queue.List(ctx, c)
	if err != nil {
		return false, err
	}
	has := make(map[int64]bool)
	err = s.leases()[0].queue.owners(ctx, c, s.withoutOurs(leases.Entries(0, leases.Len())), func(session int64) bool {
		has[session] = true
		return true
	})
	if err != nil || len(has) == 0 {
		return false, err
	}
	found := false
	err = s.turn.queue.owners(ctx, c, snap.Entries(at+1, snap.Len()), func(session int64) bool {
		found = has[session]
		return !found
	})
	return found, err
}

// withoutOurs are the leases that this attempt has not made.
func (s *Semaphore) withoutOurs(leases []znode.Entry) []znode.Entry {
	ours := make(map[string]bool, len(s.leases()))
	for _, k := range s.leases() {
		ours[k.name()] = true
	}
	return slices.DeleteFunc(leases, func(l znode.Entry) bool { return ours[l.Name] })
}

// List lists the queue. One that does not exist is empty.
func (q *Queue) List(ctx context.Context, c *transport.Conn) (*znode.Snapshot, error) {
	var names wire.Names
	err := q.Core.Session().Round(ctx, c, wire.OpGetChildren, false, &wire.PathWatchRequest{Path: q.Path}, &names)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	return q.Parse(names)
}

// owners calls yield with the session of each node, until yield returns false.
func (q *Queue) owners(ctx context.Context, c *transport.Conn, nodes []znode.Entry, yield func(session int64) bool) error {
	errEnough := errors.New("enough")
	request := func(i int) *transport.Call {
		return transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: session.Below(q.Path, nodes[i].Name)})
	}
	err := q.Core.Session().Each(ctx, c, false, len(nodes), request, func(_ int, call *transport.Call, err error) error {
		var resp wire.StatResponse
		if err == nil {
			err = call.Decode(&resp)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNoAuth): // hidden from us, with ZooKeeper 3.9
			return nil
		case err == nil && !yield(resp.Stat.EphemeralOwner):
			return errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

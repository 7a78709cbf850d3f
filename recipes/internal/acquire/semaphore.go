package acquire

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/contextend"
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
// the leases, and the lists follow right behind it on the same connection. These rules
// decide:
//
//   - The leases are ours only if our turn is first, so that we overtake nobody who came
//     before us.
//   - They are ours only if all of them are among the first. Every client goes by this,
//     whoever has the turn, so there are never more owners than leases.
//   - They are ours only if nobody came first to the semaphore's own path, with another kind
//     of lock. It is listed behind the leases, so either we see that lock's node or its
//     owner sees the parent of our leases.
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

// stage is what a round of a semaphore is for. A list of one contender's queue shows all
// that are in that queue.
//
//	stage     makes              lists             goes on with
//	finding   nothing            turns and leases  together or queueing
//	together  turn and leases    turns and leases* queueing, or has the leases
//	queueing  the turn           turns             leasing, once the turn is first
//	leasing   what is missing    leases*           queueing, if a node of ours is gone
//
// With the star it also lists the semaphore's own path.
type stage uint8

const (
	finding  stage = iota // what creations of unknown outcome have made
	together              // the turn and the leases in one step
	queueing              // the turn
	leasing               // the leases
)

// NewSemaphore makes an attempt for n of the leases of a semaphore that has total.
// contended is whether another participant was in the way the last time.
func NewSemaphore(turns, leases *Queue, n, total int, owner nodename.Owner, contended *atomic.Bool, host Host) *Semaphore {
	s := &Semaphore{n: n, total: total, optimistic: !contended.Load() && n < session.MostOperations}
	all := make([]contender, 1+n)
	s.all = make([]*contender, 1+n)
	for i := range all {
		all[i] = contender{queue: leases, owner: owner}
		s.all[i] = &all[i]
	}
	all[0].queue = turns
	s.turn = s.all[0]
	s.init(all, host, s)
	return s
}

func (a *Semaphore) leases() []*contender { return a.all[1:] }

func (a *Semaphore) begin() { a.served = false }

// precheck refuses if there are not enough leases. It does not refuse because others are
// just being served.
func (a *Semaphore) precheck(ctx context.Context, c *transport.Conn) error {
	snap, err := a.leases()[0].queue.List(ctx, c)
	if err != nil {
		return err
	}
	if err := a.leases()[0].queue.Check(snap); err != nil {
		return err
	}
	if snap.Len()+a.n <= a.total {
		return nil
	}
	a.stage, a.full = leasing, true
	a.leasePosition = Position{Place: snap.Len(), Predecessor: snap.Name(0)}
	return ErrNotAcquired
}

func (a *Semaphore) plan() plan {
	a.unwatch()
	switch turn, both := a.all[:1], a.all[:2]; {
	case a.any((*contender).unknown):
		a.stage = finding
		return plan{list: both}
	case a.turn.phase == absent && a.optimistic: // and so are the leases
		a.stage = together
		return plan{create: a.all, list: both, around: a.leases()[:1]}
	case a.turn.phase == absent:
		a.stage, a.served = queueing, false
		return plan{create: turn, list: turn}
	case !a.served:
		a.stage = queueing
		return plan{list: turn}
	default:
		a.stage = leasing
		a.children = childWatch{changed: make(chan error, 1)}
		missing := slices.DeleteFunc(slices.Clone(a.leases()), func(k *contender) bool { return k.phase != absent })
		return plan{create: missing, split: true, list: a.leases()[:1], around: a.leases()[:1], watch: &a.children}
	}
}

// failed makes the attempt look for its turn again. Unless only parents were missing, it
// makes turn and leases one after the other from then on.
func (a *Semaphore) failed(err error) error {
	a.served = false
	if a.stage != together || errors.Is(err, errStale) {
		return err
	}
	a.optimistic = false
	if errors.Is(err, session.ErrTooLarge) {
		return errNotDone
	}
	return err
}

func (a *Semaphore) judge() (step, error) {
	switch a.stage {
	case finding:
		a.optimistic = false
		a.turn.drop()
		a.leases()[0].drop()
		if a.turn.phase == absent {
			a.dropLeases()
		}
		return again, nil
	case leasing:
		return a.judgeLeases()
	}
	a.optimistic = false
	defer a.turn.drop()
	at, ahead, err := a.locate(a.turn)
	switch {
	case err != nil: // without its turn it goes to the end, where it must not have leases
		a.dropLeases()
		return again, err
	case ahead >= 0:
		a.turnPosition.set(a.turn, at, ahead)
		a.sawAhead = true
		a.dropLeases()
		return waiting, nil
	case a.stage == queueing:
		a.served = true
		return again, nil
	}
	// What the transaction has not given is asked for with a watch.
	if st, err := a.judgeLeases(); st == granted || err != nil {
		return st, err
	}
	return again, nil
}

// judgeLeases is whether all of our leases are among the first.
func (a *Semaphore) judgeLeases() (step, error) {
	first := a.leases()[0]
	q, snap := first.queue, first.snapshot
	defer first.drop()
	if err := q.Check(snap); err != nil {
		return again, err
	}
	a.full = false
	var gone []*contender
	for i, k := range a.leases() {
		at := snap.Find(k.name())
		if at < 0 {
			gone = append(gone, k)
			continue
		}
		if _, waits := q.Rule(snap, at); waits && !a.full {
			a.full, a.sawAhead = true, true
			a.leasePosition = Position{Place: at - i, Head: snap.Name(0)} // our own before it were made in this order
		}
	}
	switch {
	case gone != nil:
		a.served = false // the turn may have been deleted as well
		return again, a.deleted(gone...)
	case !a.full && first.beside != "":
		return again, a.waitForOther(first, q.Lock, first.beside)
	case !a.full:
		first.listsBehind = 0
		return granted, nil
	case a.stage == leasing && a.once:
		return waiting, ErrNotAcquired
	}
	return waiting, nil
}

// dropLeases gives up the leases.
func (a *Semaphore) dropLeases() {
	a.abandon(a.leases()...)
}

func (a *Semaphore) wait(ctx context.Context, c *transport.Conn) (bool, error) {
	if a.stage != leasing {
		a.tellWait(a.turn.queue, a.turn.path, &a.turnPosition)
		return false, a.waitFor(ctx, c, a.turn, a.turnPosition.Predecessor, &a.turnPosition)
	}
	a.tellWait(a.turn.queue, a.turn.path, &a.leasePosition)
	late, stop := a.stalled()
	defer stop()
	select {
	case err := <-a.children.changed:
		return false, ofSession(err)
	case <-ctx.Done():
		return false, contextend.Of(ctx)
	case <-late:
		return false, a.yieldIfNeeded(ctx, c)
	}
}

func (a *Semaphore) tracked(*session.TrackedNode) {}

func (a *Semaphore) wantedNodes() []*contender { return a.leases() }

func (a *Semaphore) unwatch() {
	if a.children.watch != nil {
		session.StopWatch(a.session, a.children.watch)
	}
	a.children = childWatch{}
}

func (a *Semaphore) obstacle() *Obstacle {
	switch {
	case a.stage == leasing && a.full:
		return a.leasePosition.obstacle(a.leases()[0].queue)
	case a.turnPosition.Predecessor != "":
		return a.turnPosition.obstacle(a.turn.queue)
	}
	return nil
}

// stalled returns a channel that tells when to check whether to yield; nil for never.
func (a *Semaphore) stalled() (<-chan time.Time, func()) {
	d, yields := a.turnPolicy.Next(a.n)
	if !yields {
		return nil, func() {}
	}
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// yieldIfNeeded gives the turn and the leases to those behind, if one of them has a
// lease.
func (a *Semaphore) yieldIfNeeded(ctx context.Context, c *transport.Conn) error {
	inTheWay, err := a.inTheWay(ctx, c)
	a.turnPolicy.Checked(inTheWay)
	if !inTheWay {
		return err
	}
	a.host.Observe(Event{Kind: Yield, Queue: a.turn.queue})
	a.dropLeases()
	a.abandon(a.turn)
	a.served = false
	return nil
}

// inTheWay is whether a session that waits for a turn behind ours has a lease.
func (a *Semaphore) inTheWay(ctx context.Context, c *transport.Conn) (bool, error) {
	snap, err := a.turn.queue.List(ctx, c)
	at := snap.Find(a.turn.name())
	if err != nil || at < 0 || at == snap.Len()-1 {
		return false, err
	}
	leases, err := a.leases()[0].queue.List(ctx, c)
	if err != nil {
		return false, err
	}
	held := a.leases()[0].queue.paths(a.withoutOurs(leases.Entries(0, leases.Len())))
	has := make(map[int64]bool)
	err = eachStat(ctx, a.session, c, held, func(_ int, of *wire.Stat) { has[of.EphemeralOwner] = true })
	if err != nil || len(has) == 0 {
		return false, err
	}
	behind := a.turn.queue.paths(snap.Entries(at+1, snap.Len()))
	found := false
	err = eachStat(ctx, a.session, c, behind, func(_ int, of *wire.Stat) { found = found || has[of.EphemeralOwner] })
	return found, err
}

// withoutOurs are the leases that this attempt has not made.
func (a *Semaphore) withoutOurs(leases []znode.Entry) []znode.Entry {
	ours := make(map[string]bool, len(a.leases()))
	for _, k := range a.leases() {
		ours[k.name()] = true
	}
	return slices.DeleteFunc(leases, func(l znode.Entry) bool { return ours[l.Name] })
}

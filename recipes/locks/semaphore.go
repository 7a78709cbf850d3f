package locks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
)

// InterProcessSemaphore has a number of leases, which all processes must state
// alike. Those who want one are served in the order in which they asked, except
// that several goroutines of one process may overtake each other in asking.
//
// Source: Curator's InterProcessSemaphoreV2.
type InterProcessSemaphore struct {
	turns  queue // of those who are being served, one at a time
	leases queue
	total  int
	path   string
	key    lockKey
	err    error
	// crowded is whether somebody was in the way the last time. It decides how
	// leases are asked for and nothing else.
	crowded atomic.Bool
}

// NewInterProcessSemaphore is the semaphore at path, which belongs to it alone.
// It sends nothing and cannot fail, as NewInterProcessMutex; fewer than one
// lease is ErrInvalidLock.
func NewInterProcessSemaphore(c *framework.Client, path string, leases int, opts ...Option) *InterProcessSemaphore {
	s := &InterProcessSemaphore{path: path, total: leases}
	scope, full, o, err := parts(c, path, opts)
	if err == nil && leases < 1 {
		err = fmt.Errorf("%w: %d leases: there must be one at least", ErrInvalidLock, leases)
	}
	if s.err = err; err != nil {
		return s
	}
	s.path, s.key = full, lockKey{session: scope.Session, path: full}
	s.turns = queue{scope: scope, lock: full, path: session.Below(full, semaphoreLocks), kind: lockName, kinds: []string{lockName}, ahead: aheadExclusive,
		opts: options{failOnLoss: o.failOnLoss}}
	s.leases = queue{scope: scope, lock: full, path: session.Below(full, semaphoreLeases), kind: leaseName, kinds: []string{leaseName}, ahead: s.aheadOfLease, opts: o}
	return s
}

// aheadOfLease is who stands in the way of a lease: nobody if it is among the
// first, and otherwise the first of them to go, whoever that is.
//
// Differs: Curator counts the leases. Where they stand gives the same, save that
// two who wait at once, after somebody deleted a node in the other queue, do not
// wait for each other.
func (s *InterProcessSemaphore) aheadOfLease(_ *snapshot, at int) (i int, waits bool) {
	return 0, at >= s.total
}

// Acquire takes one lease, and each call another, also under a hold of this
// semaphore. ErrDeadlock if the holds that ctx comes from have them all.
//
// Errors are as from InterProcessMutex.Acquire.
//
// Cost: one round trip if nobody is in the way and both parents are there. Two
// if somebody was in the way of the same object the last time.
func (s *InterProcessSemaphore) Acquire(ctx context.Context) (*Hold, error) {
	return s.take(ctx, 1, noLimit)
}

// TryAcquire waits at most wait; see Lock. With wait <= 0 it is not waited for
// others to return a lease, but still for those who are just being given one.
func (s *InterProcessSemaphore) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	return s.take(ctx, 1, limit{bounded: true, wait: wait})
}

// AcquireN takes n leases as one hold, all or none; Members can be released one
// by one. n below one or above the number of leases is ErrInvalidLock at once.
//
// If nothing moves for a quarter of a second and more, and somebody who waits
// behind it has a lease already, it gives up its turn and queues again at the
// end: owners who take leases one after another, as Curator does, and it would
// wait for each other for ever.
func (s *InterProcessSemaphore) AcquireN(ctx context.Context, n int) (*Hold, error) {
	return s.take(ctx, n, noLimit)
}

// TryAcquireN is AcquireN with a limit to the wait, as TryAcquire.
func (s *InterProcessSemaphore) TryAcquireN(ctx context.Context, n int, wait time.Duration) (*Hold, error) {
	return s.take(ctx, n, limit{bounded: true, wait: wait})
}

func (s *InterProcessSemaphore) take(ctx context.Context, n int, lim limit) (*Hold, error) {
	if s.isZero() {
		return nil, opError("acquire", "", ErrInvalidLock)
	}
	if err := s.allowed(ctx, n); err != nil {
		return nil, opError("acquire", s.path, err)
	}
	hold, err := s.queueUp(ctx, n, lim)
	if err != nil {
		return nil, opError("acquire", s.path, err)
	}
	return hold, nil
}

// isZero is whether the semaphore was not made by its constructor.
func (s *InterProcessSemaphore) isZero() bool {
	return s == nil || s.turns.scope == nil && s.err == nil
}

// allowed refuses what could never be granted.
func (s *InterProcessSemaphore) allowed(ctx context.Context, n int) error {
	if err := usable(ctx, s.err); err != nil {
		return err
	}
	if n < 1 || n > s.total {
		return fmt.Errorf("%w: %d leases of %d", ErrInvalidLock, n, s.total)
	}
	held := 0
	holdChainOf(ctx).every(s.key, func(o *ownership) {
		if state, _ := o.now(); state == Held || state == Uncertain {
			held++
		}
	})
	if held+n > s.total {
		return fmt.Errorf("%w: %d of %d leases are held by the caller, who wants %d more", ErrDeadlock, held, s.total, n)
	}
	return nil
}

func (s *InterProcessSemaphore) queueUp(ctx context.Context, n int, lim limit) (hold *Hold, err error) {
	began := time.Now()
	totals := &sharedOf(s.turns.scope.Session).leases
	if err := totals.use(s.path, s.total, 1); err != nil {
		return nil, err
	}
	defer totals.done(s.path)
	limited, cancel, err := lim.begin(ctx, s.turns.scope.Session)
	if err != nil {
		return nil, &WaitError{Lock: s.path, Err: err}
	}
	defer endLimit(cancel, &hold)
	a := &leaseAttempt{InterProcessSemaphore: s, once: lim.once(), n: n, turn: &contender{queue: &s.turns, tag: tagOf(ctx, s.turns.scope.Session), spare: s.total - n}}
	owns, err := a.run(limited)
	if err != nil {
		e := &ending{ctx: ctx, limited: limited, tries: lim.bounded, lock: s.path, waited: time.Since(began), obstacle: a.seenAhead()}
		return nil, e.verdict(s.turns.scope.Session, err)
	}
	if hold, err = s.hold(ctx, owns); err == nil {
		s.inUse(owns...)
	}
	return hold, err
}

// inUse lets leases count as uses of the semaphore until they are gone. It comes
// within another use.
func (s *InterProcessSemaphore) inUse(leases ...*ownership) {
	totals := &sharedOf(s.turns.scope.Session).leases
	_ = totals.use(s.path, s.total, len(leases)) // as many as in the other use
	done := func() { totals.done(s.path) }
	for _, o := range leases {
		o.thenGone(done)
	}
}

// hold makes one hold of the leases: of the one, or of an ownership over all. If it
// cannot, or a method of the caller's context panics, none is left.
func (s *InterProcessSemaphore) hold(ctx context.Context, owns []*ownership) (*Hold, error) {
	var members []*Hold
	defer func() {
		if len(owns) > 0 {
			unclaimAll(owns)
			_ = releaseAll(members) // the error that there is tells why
		}
	}()
	for len(owns) > 0 {
		m, err := s.leases.hold(ctx, owns[0])
		if err != nil {
			return nil, err
		}
		members, owns = append(members, m), owns[1:]
	}
	if len(members) == 1 {
		return members[0], nil
	}
	return newGroup(ctx, members)
}

// unclaimAll gives back the nodes of ownerships without a hold.
func unclaimAll(owns []*ownership) {
	places := make([]*contender, len(owns))
	for i, o := range owns {
		places[i] = o.contender
		o.contender.scope.Session.Untrack(o.tracked)
	}
	leaveAll(places)
}

// leaseAttempt is one acquisition of leases.
type leaseAttempt struct {
	*InterProcessSemaphore
	n      int
	once   bool
	turn   *contender // our place among those who are being served
	leases []*contender
	full   bool // no lease was seen to be free
	waited bool // that was so once

	obstacle *obstacle     // that was seen when it gave up waiting for leases
	backoff  time.Duration // before we look whether to give way; see yield
}

// seenAhead is who was seen ahead, nil for nobody.
func (a *leaseAttempt) seenAhead() *obstacle {
	switch {
	case a.obstacle != nil:
		return a.obstacle
	case a.full && !a.turn.behind:
		return &obstacle{lock: a.path}
	}
	return a.turn.seenAhead()
}

// run waits for our turn and then for the leases. Whatever comes of it, our
// turn is over afterwards, and without ownerships the leases go as well.
func (a *leaseAttempt) run(ctx context.Context) (won []*ownership, err error) {
	defer func() {
		a.turn.endWait()
		a.turn.leave()
		if won == nil { // also if a method of the caller's context has panicked
			a.drop()
		}
		a.crowded.Store(a.turn.behind || a.waited)
	}()
	if a.once {
		err = a.probe(ctx)
	}
	if err == nil && !a.crowded.Load() && a.n < session.MostOperations {
		if won, err = a.jointly(ctx); won != nil {
			return won, nil
		}
	}
	// Who loses its turn goes to the end of the queue, where it must not have
	// leases that those before it wait for.
	a.turn.gone = a.drop
	for failures := 0; err == nil || passing(err) && ctx.Err() == nil; failures++ {
		if err := pause(ctx, failures); err != nil {
			return nil, err
		}
		if err = a.turn.getAhead(ctx, false); err != nil {
			return nil, err
		}
		if won, err = a.borrow(ctx); err == nil {
			return won, nil
		}
		if errors.Is(err, errYield) {
			a.yield()
			failures = 0
		}
	}
	return nil, err
}

// drop gives up what we have of leases.
func (a *leaseAttempt) drop() {
	leaveAll(a.leases)
	a.leases = nil
}

// probe looks whether there is any use in queueing to be served at once.
func (a *leaseAttempt) probe(ctx context.Context) error {
	c, err := a.turns.scope.Session.Conn(ctx, true)
	if err != nil {
		return err
	}
	leases := &a.InterProcessSemaphore.leases
	snap, err := leases.list(ctx, c)
	if err == nil {
		err = leases.refuse(snap)
	}
	if err == nil && snap.len()+a.n > a.total {
		a.full = true
		a.obstacle = a.InterProcessSemaphore.leases.obstacleIn(&position{at: snap.len(), ahead: snap.name(0)})
		err = ErrNotAcquired
	}
	return err
}

// borrow makes our leases, in the session of our turn, and waits until all of
// them are among the first.
func (a *leaseAttempt) borrow(ctx context.Context) ([]*ownership, error) {
	a.want()
	for {
		c, err := a.turns.scope.Session.ConnIn(ctx, a.turn.session)
		if err != nil {
			return nil, err
		}
		granted, err := a.look(ctx, c)
		switch {
		case err != nil:
			return nil, err
		case granted:
			return a.track(ctx)
		case a.once:
			return nil, ErrNotAcquired
		}
	}
}

// want makes room for what we have not of leases.
func (a *leaseAttempt) want() {
	for len(a.leases) < a.n {
		a.leases = append(a.leases, &contender{queue: &a.InterProcessSemaphore.leases, tag: a.turn.tag})
	}
}

// look makes the leases that we do not have and lists all of them with a watch,
// in one round trip. If ours are not among the first it returns at the next
// change.
func (a *leaseAttempt) look(ctx context.Context, c *transport.Conn) (granted bool, err error) {
	made, err := a.make(ctx, c)
	if err != nil {
		return false, err
	}
	s := a.turns.scope.Session
	late, stop := a.stalled()
	defer stop()
	changed := make(chan error, 1)
	list, watch, err := s.WatchChildren(ctx, c, a.InterProcessSemaphore.leases.path, func(ev session.Event) { changed <- ev.Err })
	if err != nil {
		return false, errors.Join(made(), err)
	}
	defer s.StopWatch(watch)
	if err := made(); err != nil {
		return false, err
	}
	var v position
	if granted, err = a.granted(ctx, c, list, &v); granted || err != nil {
		return granted, err
	}
	defer func() {
		if err != nil || a.once {
			a.obstacle = a.InterProcessSemaphore.leases.obstacleIn(&v)
		}
	}()
	if a.once {
		return false, nil
	}
	a.turn.beginWait()
	select {
	case err := <-changed:
		if errors.Is(err, framework.ErrSessionExpired) {
			err = session.ErrSessionOver
		}
		return false, err
	case <-late:
		give, err := a.inTheWay(ctx, c)
		switch {
		case give:
			err = errYield
		case a.backoff < mostTurn:
			a.backoff *= 2
		}
		return false, err
	case <-ctx.Done():
		return false, foreign.ContextEnd(ctx)
	}
}

// errYield says that somebody behind us has to go first.
var errYield = fmt.Errorf("give way: %w", errAgain)

// make sends what makes our leases, and returns what waits for the replies: for
// all of them, as each may have to be cleaned up.
func (a *leaseAttempt) make(ctx context.Context, c *transport.Conn) (made func() error, err error) {
	var missing []*contender
	for _, l := range a.leases {
		if err := l.resolve(ctx, c); err != nil {
			return nil, err
		}
		if l.name == "" {
			missing = append(missing, l)
		}
	}
	batches, calls, err := a.creations(c, missing)
	if err != nil {
		return nil, err
	}
	for i, batch := range batches {
		outcomeUnknown(batch, calls[i]) // each call ends, and then it is known
	}
	if err := a.turns.scope.Session.SendAll(ctx, c, calls); err != nil {
		_ = a.made(ctx, c, batches, calls) // takes in which were sent
		return nil, err
	}
	return func() error { return a.made(ctx, c, batches, calls) }, nil
}

// creations are the requests that make contenders: a transaction for as many as may
// be in one, and for a single place a request that also shows its czxid.
func (a *leaseAttempt) creations(c *transport.Conn, missing []*contender) (batches [][]*contender, calls []*transport.Call, err error) {
	for n := session.MostOperations; len(missing) > 0; {
		batch := missing[:min(n, len(missing))]
		call := batch[0].creation(c)
		if len(batch) > 1 {
			call, err = createTogether(c, batch)
			if errors.Is(err, framework.ErrTooLarge) || err == nil && call.Size() > a.turns.scope.Session.MostInTransaction() {
				n = len(batch) / 2
				continue
			}
			if err != nil {
				return nil, nil, err
			}
		}
		batches, calls, missing = append(batches, batch), append(calls, call), missing[len(batch):]
	}
	return batches, calls, nil
}

// made takes in the replies. If a parent was missing, it is made once.
func (a *leaseAttempt) made(ctx context.Context, c *transport.Conn, batches [][]*contender, calls []*transport.Call) (err error) {
	var parentless *contender
	for i, batch := range batches {
		var e error
		if len(batch) == 1 {
			e = batch[0].answered(ctx, c, calls[i])
		} else {
			e = answeredTogether(ctx, c, calls[i], batch)
		}
		switch {
		case errors.Is(e, framework.ErrNoNode):
			parentless = batch[0]
		case err == nil:
			err = e
		}
	}
	if err == nil && parentless != nil {
		return ensure(ctx, c, parentless)
	}
	return err
}

// granted is whether all of our leases are among the first. If not, v says who is.
func (a *leaseAttempt) granted(ctx context.Context, c *transport.Conn, list *transport.Call, v *position) (bool, error) {
	snap, err := a.leases[0].listed(ctx, c, list)
	if errors.Is(err, framework.ErrNoNode) {
		return false, a.deleted()
	}
	if err != nil {
		return false, err
	}
	defer func() {
		snap.free()
		list.Free()
	}()
	if err := a.leases[0].refuse(snap); err != nil {
		return false, err
	}
	a.full = false
	for i, l := range a.leases {
		at := snap.find(l.name)
		if at < 0 {
			l.vanished()
			return false, errAgain
		}
		if _, waits := l.ahead(snap, at); waits && !a.full {
			a.full = true
			v.at = at - i // our own before it, which were made in this order
			v.front.set(snap.bytes(0))
		}
	}
	a.waited = a.waited || a.full
	return !a.full, nil
}

// deleted begins again after others have deleted the leases with their parent.
func (a *leaseAttempt) deleted() error {
	a.turn.deletions.note()
	a.drop() // not to rest on what only the parent's absence says
	return errAgain
}

// track turns every lease into an ownership.
func (a *leaseAttempt) track(ctx context.Context) (won []*ownership, err error) {
	owns := make([]*ownership, 0, len(a.leases))
	defer func() {
		if won == nil {
			for _, o := range owns {
				a.turns.scope.Session.Untrack(o.tracked)
			}
		}
	}()
	for _, l := range a.leases {
		o := a.own(l)
		if err := l.track(ctx, o, nil); err != nil {
			return nil, err
		}
		owns = append(owns, o)
	}
	return owns, nil
}

// own is the ownership of a lease.
func (s *InterProcessSemaphore) own(l *contender) *ownership {
	o := newOwnership(s.key, l.scope.Relative(l.node()))
	o.contender = l
	if s.total == 1 {
		o.token = l.czxid
	}
	return o
}

package locks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Curator takes several leases one after another, and holds those it has while
// it queues for the next. Two that have one lease each of three and want two,
// behind somebody at the head of the queue who wants two at once, wait for each
// other for ever: they for their turn, and the head for a lease. So whoever
// wants several gives its turn up when nothing moves and somebody behind it has
// a lease already, and queues again at the end.
//
// Its backoff doubles each time, so that owners who merely take long, in
// processes that want more leases meanwhile, do not starve it.

const (
	firstTurn = 250 * time.Millisecond
	mostTurn  = 4 * time.Second // without having given way
)

// stalled is the time after which to look whether to give way; nil for never.
func (a *leaseAttempt) stalled() (<-chan time.Time, func()) {
	if a.n < 2 || a.once {
		return nil, func() {}
	}
	if a.backoff == 0 {
		a.backoff = firstTurn
	}
	t := time.NewTimer(a.backoff)
	return t.C, func() { t.Stop() }
}

// inTheWay is whether somebody who waits for a turn behind ours has a lease.
func (a *leaseAttempt) inTheWay(ctx context.Context, c *transport.Conn) (bool, error) {
	snap, err := a.turns.list(ctx, c)
	at := snap.find(a.turn.name)
	if err != nil || at < 0 || at == snap.len()-1 {
		return false, err
	}
	leases, err := a.InterProcessSemaphore.leases.list(ctx, c)
	if err != nil {
		return false, err
	}
	has := make(map[int64]bool)
	err = a.InterProcessSemaphore.leases.owners(ctx, c, a.withoutOurs(leases.span(0, leases.len())), func(session int64) bool {
		has[session] = true
		return true
	})
	if err != nil || len(has) == 0 {
		return false, err
	}
	found := false
	err = a.turns.owners(ctx, c, snap.span(at+1, snap.len()), func(session int64) bool {
		found = has[session]
		return !found
	})
	return found, err
}

// owners tells in which sessions nodes are, until yield returns false.
func (q *queue) owners(ctx context.Context, c *transport.Conn, nodes []entry, yield func(session int64) bool) error {
	errEnough := errors.New("enough")
	request := func(i int) *transport.Call {
		return transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: session.Below(q.path, nodes[i].name)})
	}
	err := q.scope.Session.Each(ctx, c, false, len(nodes), request, func(_ int, call *transport.Call, err error) error {
		var resp wire.StatResponse
		if err == nil {
			err = call.Decode(&resp)
		}
		switch {
		case errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrNoAuth): // hidden from us, with ZooKeeper 3.9
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

// withoutOurs are the leases that this acquisition has not made.
func (a *leaseAttempt) withoutOurs(leases []entry) []entry {
	ours := make(map[string]bool, len(a.leases))
	for _, p := range a.leases {
		ours[p.name] = true
	}
	return slices.DeleteFunc(leases, func(l entry) bool { return ours[l.name] })
}

// yield gives our turn and what we have of leases to those behind us.
func (a *leaseAttempt) yield() {
	a.backoff *= 2
	a.drop()
	a.turn.leave()
	a.turn = &contender{queue: &a.turns, tag: a.turn.tag, behind: a.turn.behind, gone: a.drop}
}

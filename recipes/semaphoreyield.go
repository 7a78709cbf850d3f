package recipes

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/internal/link"
)

// Curator takes several leases one after another, and holds those it has while
// it queues for the next. Two that have one lease each of three and want two,
// behind somebody at the head of the line who wants two at once, wait for each
// other for ever: they for their turn, and the head for a lease. So whoever
// wants several gives its turn up when nothing moves and somebody behind it has
// a lease already, and queues again at the end.
//
// Its patience doubles each time, so that owners who merely take long, in
// processes that want more leases meanwhile, do not starve it.

const (
	firstTurn = 250 * time.Millisecond
	mostTurn  = 4 * time.Second // without having given way
)

// stalled is the time after which to look whether to give way; nil for never.
func (a *lending) stalled() (<-chan time.Time, func()) {
	if a.n < 2 || a.once {
		return nil, func() {}
	}
	if a.patience == 0 {
		a.patience = firstTurn
	}
	t := time.NewTimer(a.patience)
	return t.C, func() { t.Stop() }
}

// inTheWay is whether somebody who waits for a turn behind ours has a lease.
func (a *lending) inTheWay(ctx context.Context, c *link.Conn) (bool, error) {
	line, err := a.line.line(ctx, c)
	at := line.find(a.turn.name)
	if err != nil || at < 0 || at == line.len()-1 {
		return false, err
	}
	leases, err := a.InterProcessSemaphore.leases.line(ctx, c)
	if err != nil {
		return false, err
	}
	behind, err := a.line.describe(ctx, c, line.span(at+1, line.len()), nobodyWaits)
	if err != nil {
		return false, err
	}
	owners, err := a.InterProcessSemaphore.leases.describe(ctx, c, a.withoutOurs(leases.span(0, leases.len())), nobodyWaits)
	if err != nil {
		return false, err
	}
	has := make(map[int64]bool)
	for _, o := range owners {
		has[o.Session] = true
	}
	for _, b := range behind {
		if has[b.Session] {
			return true, nil
		}
	}
	return false, nil
}

func nobodyWaits(int) bool { return false }

// withoutOurs are the leases that this acquisition has not made.
func (a *lending) withoutOurs(leases []contender) []contender {
	var others []contender
	for _, l := range leases {
		ours := false
		for _, p := range a.leases {
			ours = ours || p.name == l.name
		}
		if !ours {
			others = append(others, l)
		}
	}
	return others
}

// yield gives our turn and what we have of leases to those behind us.
func (a *lending) yield() {
	a.patience *= 2
	a.drop()
	a.turn.leave()
	a.turn = &place{queue: &a.line, tag: a.turn.tag, behind: a.turn.behind, gone: a.drop}
}

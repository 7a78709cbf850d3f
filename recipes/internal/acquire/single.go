package acquire

import (
	"context"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
)

// Single is an attempt in one queue: for a mutex, or a side of a read/write lock. After
// Run has failed, another goroutine may Adopt it and Run it again. Otherwise the caller
// has to Leave.
type Single struct {
	Attempt
	contender   [1]contender
	wanted      [1]*contender
	position    Position // the latest that showed a node ahead
	predecessor predecessorWatch
}

// Init makes an attempt for a node of an owner.
func (a *Single) Init(q *Queue, owner nodename.Owner, host Host) {
	a.contender[0] = contender{queue: q, owner: owner}
	a.wanted[0] = &a.contender[0]
	a.init(a.contender[:], host, a)
	a.resumable = true
}

func (a *Single) begin() {}

func (a *Single) precheck(ctx context.Context, c *transport.Conn) error {
	if err := a.listBefore(ctx, c, a.wanted[:]); err != nil {
		return err
	}
	k := a.wanted[0]
	defer k.drop()
	return a.mayBeFirst(k, &a.position)
}

func (a *Single) plan() plan {
	p := plan{list: a.wanted[:]}
	if a.wanted[0].phase == absent {
		p.create = a.wanted[:]
	}
	return p
}

func (a *Single) failed(err error) error { return err }

func (a *Single) judge() (step, error) {
	k := a.wanted[0]
	if k.phase == absent { // after a creation without an outcome
		k.drop()
		return again, nil
	}
	defer k.drop()
	at, ahead, err := a.locate(k)
	switch {
	case err != nil:
		return again, err
	case ahead < 0:
		a.predecessor.granted()
		return granted, nil
	}
	a.position.set(k, at, ahead)
	a.sawAhead = true
	if a.once {
		return waiting, ErrNotAcquired
	}
	return waiting, nil
}

func (a *Single) wait(ctx context.Context, c *transport.Conn) (bool, error) {
	k := a.wanted[0]
	a.tellWait(k.queue, k.path, &a.position)
	p := &a.position
	switch {
	case !k.queue.EventGrants || k.behindOther:
		return false, a.waitFor(ctx, c, k, p.Predecessor, p)
	case p.next == "":
		return a.predecessor.wait(ctx, &a.Attempt, c, k, p)
	}
	if err := a.waitFor(ctx, c, k, p.next, p); err != nil {
		return false, err
	}
	a.predecessor.prepare(ctx, a.session, c, k, p)
	return false, nil
}

func (a *Single) wantedNodes() []*contender { return a.wanted[:] }

func (a *Single) tracked(node *session.TrackedNode) { a.predecessor.granting.track(node) }

func (a *Single) unwatch() { a.predecessor.stop() }

func (a *Single) obstacle() *Obstacle {
	if a.position.Predecessor == "" {
		return nil
	}
	return a.position.obstacle(a.wanted[0].queue)
}

// Adopt lets the attempt go on for another host, with a Queue that makes the same node.
// Run must not be running.
func (a *Single) Adopt(q *Queue, host Host) {
	a.contender[0].queue, a.position = q, Position{}
	a.host = host
}

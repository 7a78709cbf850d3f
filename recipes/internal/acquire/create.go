package acquire

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// creation is a request that makes the nodes of contenders.
type creation struct {
	of    []*contender
	call  *transport.Call
	joint bool // it is a transaction
}

func (m *creation) sent() {
	for _, k := range m.of {
		k.sent(m.call)
	}
}

func (m *creation) refused() {
	for _, k := range m.of {
		k.refused()
	}
}

// creations are the requests that make what is planned: create2 for a single node,
// whose reply also shows its czxid, and a transaction for several.
func (a *Attempt) creations(c *transport.Conn, p *plan, all []creation) ([]creation, error) {
	for n, left := len(p.create), p.create; len(left) > 0; {
		if p.split {
			n = min(n, session.MostOperations)
		}
		m := creation{of: left[:min(n, len(left))]}
		m.joint = p.joint || len(m.of) > 1
		if !m.joint {
			m.call = transport.NewCall(wire.OpCreate2, m.of[0].creation(c))
		} else {
			var err error
			m.call, err = createTogether(c, m.of)
			if p.split && (errors.Is(err, session.ErrTooLarge) || err == nil && m.call.Size() > session.MostInTransaction(a.session)) {
				n = len(m.of) / 2 // it needs several transactions
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		all, left = append(all, m), left[len(m.of):]
	}
	return all, nil
}

// mostBytes bounds a transaction. Servers cut the connection when one is larger
// than they allow, 1 MiB by default, and that looks like a lost reply.
const mostBytes = 512 << 10

func transaction(req *wire.MultiRequest) (*transport.Call, error) {
	call := transport.NewCall(wire.OpMulti, req)
	if call.Size() > mostBytes {
		return nil, fmt.Errorf("%w: %d nodes take %d bytes in one transaction, %d are allowed: take them with Ordered, or with less data",
			session.ErrTooLarge, len(req.Ops), call.Size(), mostBytes)
	}
	return call, nil
}

// createTogether is the transaction that makes the nodes of several contenders.
func createTogether(c *transport.Conn, of []*contender) (*transport.Call, error) {
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, len(of))}
	for i, k := range of {
		req.Ops[i] = wire.MultiOp{Op: wire.OpCreate, Request: k.creation(c)}
	}
	return transaction(req)
}

// created takes in the replies to requests that make nodes. Parents that were missing
// are made, and errParentMade or errStale is returned then.
func (a *Attempt) created(ctx context.Context, c *transport.Conn, creations []creation) (err error) {
	var parentless []*contender
	for _, m := range creations {
		at, e := a.answered(ctx, c, m)
		switch {
		case errors.Is(e, zk.ErrNoNode):
			parentless = append(parentless, m.of[at:]...)
		case err == nil:
			err = e
		}
		if e == nil {
			a.conn = c // which has applied all that any other has shown us
		}
	}
	if err == nil && parentless != nil {
		err = a.ensure(ctx, c, parentless)
	}
	return err
}

// answered handles the reply to one of them. Without a reply its outcome stays unknown.
// An error that matches zk.ErrNoNode is about the contender at that place.
func (a *Attempt) answered(ctx context.Context, c *transport.Conn, m creation) (at int, err error) {
	if m.joint {
		return a.answeredTogether(ctx, c, m)
	}
	err = a.session.Await(ctx, c, m.call, true)
	switch {
	case errors.Is(err, session.ErrOutcomeUnknown):
		return 0, err
	case err != nil:
		m.refused()
		return 0, err
	}
	var resp wire.Create2Response
	if err := m.call.Decode(&resp); err != nil {
		return 0, session.Unreadable(true, err)
	}
	return 0, m.of[0].made(resp.Path, resp.Stat.Czxid)
}

// answeredTogether takes in the reply to a transaction.
func (a *Attempt) answeredTogether(ctx context.Context, c *transport.Conn, m creation) (at int, err error) {
	results, err := results(ctx, a.session, c, m.call, len(m.of))
	if errors.Is(err, session.ErrOutcomeUnknown) {
		return 0, err
	}
	if err != nil {
		m.refused()
		return 0, err
	}
	if at, code, err := refusal(results); err != nil {
		m.refused()
		q := m.of[at].queue
		if code != wire.CodeOK {
			err = a.session.Refusal(wire.OpCreate, session.Join(q.Path, string(q.Kind)), code)
		}
		return at, fmt.Errorf("%s: %w", q.Path, err)
	}
	// In a transaction the result of a creation has no Stat, whichever operation made it.
	// But the reply to a write carries its own zxid, since servers apply one at a time.
	//
	// Source: ZooKeeper's FinalRequestProcessor, CommitProcessor.
	for i, k := range m.of {
		err = errors.Join(err, k.made(results[i].Path, m.call.Zxid()))
	}
	return 0, err
}

// results are those of a transaction of n operations.
func results(ctx context.Context, s *session.Session, c *transport.Conn, call *transport.Call, n int) ([]wire.MultiResult, error) {
	if err := s.Await(ctx, c, call, true); err != nil {
		return nil, err
	}
	all, err := session.Results(call, n)
	return all, session.Unreadable(true, err)
}

// refusal is the operation that stopped a transaction, and why.
func refusal(results []wire.MultiResult) (at int, code wire.Code, err error) {
	for i, r := range results {
		if r.Refused() {
			return i, r.Code, session.Error(r.Code)
		}
	}
	if len(results) > 0 && results[0].Op == wire.OpError {
		return 0, wire.CodeOK, errors.New("every operation was undone and none was refused")
	}
	return 0, wire.CodeOK, nil
}

// ensure makes the parents of contenders, one of which is missing. Then the contenders can
// be made: errParentMade. But if a parent has gone that it had made before, it is errStale.
// If the time is over meanwhile, they are made all the same: with too little time for both,
// nobody would ever get the lock.
func (a *Attempt) ensure(ctx context.Context, c *transport.Conn, of []*contender) error {
	parents := session.Parents{Check: noContender}
	for _, k := range of {
		q := k.queue
		if n := len(parents.Paths); n > 0 && parents.Paths[n-1] == q.Path { // those of one queue come together
			continue
		}
		parents.Paths = append(parents.Paths, q.Path)
		if q.isPart() && !slices.Contains(parents.Of, q.Lock) {
			parents.Of = append(parents.Of, q.Lock)
		}
	}
	core := of[0].queue.Core
	if err := core.Ensure(ctx, c, parents); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			a.session.Go(func(ctx context.Context) { _ = core.Ensure(ctx, c, parents) })
		}
		return err
	}
	err := errParentMade
	for _, k := range of {
		if k.parentMade {
			err = errStale
		}
		k.parentMade = true
	}
	return err
}

// noContender refuses to make the parts of a semaphore on a path that a lock of
// another kind uses.
func noContender(path string, children wire.Names) error {
	for _, name := range children.All() {
		if _, ok := znode.Contender(name); ok {
			return otherKind(path, string(name))
		}
	}
	return nil
}

package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// mostBytes bounds a transaction. Servers cut the connection when one is larger
// than they allow, 1 MiB by default, and that looks like a lost reply.
const mostBytes = 512 << 10

func transaction(req *wire.MultiRequest) (*transport.Call, error) {
	call := transport.NewCall(wire.OpMulti, req)
	if call.Size() > mostBytes {
		return nil, fmt.Errorf("%w: %d nodes take %d bytes in one transaction, %d are allowed: take them with Ordered, or with less data",
			framework.ErrTooLarge, len(req.Ops), call.Size(), mostBytes)
	}
	return call, nil
}

// createTogether is the transaction that makes the nodes of several contenders. Once it
// is sent, they are in doubt until its reply is taken in.
func createTogether(c *transport.Conn, places []*contender) (*transport.Call, error) {
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, len(places))}
	for i, p := range places {
		req.Ops[i] = p.creationOp(c)
	}
	return transaction(req)
}

// createdTogether takes in the reply to a transaction that makes nodes, and makes
// the parents of those that could not be made.
func createdTogether(ctx context.Context, c *transport.Conn, create *transport.Call, made []*contender) error {
	err := answeredTogether(ctx, c, create, made)
	var refused *refusalError
	if errors.As(err, &refused) && errors.Is(err, framework.ErrNoNode) {
		return ensure(ctx, c, made[refused.at:]...)
	}
	return err
}

// refusalError is the operation that stopped a transaction, and why.
type refusalError struct {
	at   int
	path string
	err  error
}

func (r *refusalError) Error() string { return r.path + ": " + r.err.Error() }

func (r *refusalError) Unwrap() error { return r.err }

// answeredTogether takes in the reply to a transaction that makes nodes.
func answeredTogether(ctx context.Context, c *transport.Conn, create *transport.Call, made []*contender) error {
	err := made[0].scope.Session.Await(ctx, c, create, true)
	var resp wire.MultiResponse
	if err == nil {
		err = create.Decode(&resp)
		if err == nil && len(resp.Results) != len(made) {
			err = fmt.Errorf("%d results for %d creations", len(resp.Results), len(made))
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", framework.ErrOutcomeUnknown, err)
		}
	}
	if framework.Ambiguous(err) {
		return err
	}
	settled(made)
	if err != nil {
		return err
	}
	if i, code, err := firstRefusal(resp.Results); err != nil {
		if code != wire.CodeOK {
			err = made[i].scope.Session.Refusal(wire.OpCreate, session.Below(made[i].path, made[i].kind), code)
		}
		return &refusalError{at: i, path: made[i].path, err: err}
	}
	// Whatever the operation, a transaction's result of a creation has no Stat. But
	// the reply to a write carries its own zxid: servers apply one at a time.
	//
	// Source: ZooKeeper's FinalRequestProcessor, CommitProcessor.
	for i, p := range made {
		if e := p.named(resp.Results[i].Path, create.Zxid()); e != nil {
			p.unknown = create
			err = errors.Join(err, e)
		}
	}
	return err
}

// outcomeUnknown says that a transaction is on its way that makes the nodes of contenders.
func outcomeUnknown(places []*contender, create *transport.Call) {
	for _, p := range places {
		p.unknown = create
	}
}

// settled says that nothing is in doubt any more.
func settled(places []*contender) { outcomeUnknown(places, nil) }

// ensure makes the parents of contenders, of which one is missing, and says that the
// contenders are to be made again. They are of one client.
func ensure(ctx context.Context, c *transport.Conn, places ...*contender) error {
	parents := session.Parents{Check: noContender}
	for _, p := range places {
		if n := len(parents.Paths); n > 0 && parents.Paths[n-1] == p.path { // those of one queue come together
			continue
		}
		parents.Paths = append(parents.Paths, p.path)
		if p.isPart() && !slices.Contains(parents.Of, p.lock) {
			parents.Of = append(parents.Of, p.lock)
		}
	}
	if err := places[0].scope.Ensure(ctx, c, parents); err != nil {
		return err
	}
	return errAgain
}

// noContender refuses to make the parts of a semaphore on a path that a lock of
// another kind uses.
func noContender(path string, children wire.Names) error {
	for _, name := range children.All() {
		if _, ok := parseOtherKind(name, nil); ok {
			return otherKind(path, string(name))
		}
	}
	return nil
}

// firstRefusal is the operation that stopped a transaction, and why.
func firstRefusal(results []wire.MultiResult) (int, wire.Code, error) {
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

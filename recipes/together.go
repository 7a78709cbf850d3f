package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// mostBytes bounds a transaction. Servers cut the connection when one is larger
// than they allow, 1 MiB by default, and that looks like a lost reply.
const mostBytes = 512 << 10

func transaction(req *wire.MultiRequest) (*link.Call, error) {
	call := link.NewCall(wire.OpMulti, req)
	if call.Size() > mostBytes {
		return nil, fmt.Errorf("%w: %d nodes take %d bytes in one transaction, %d are allowed: take them with Ordered, or with less data",
			framework.ErrTooLarge, len(req.Ops), call.Size(), mostBytes)
	}
	return call, nil
}

// createTogether is the transaction that makes the nodes of several places.
func createTogether(c *link.Conn, places []*place) (*link.Call, error) {
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, len(places))}
	for i, p := range places {
		req.Ops[i] = p.creationOp(c)
	}
	return transaction(req)
}

// createdTogether takes in the reply to a transaction that makes nodes.
func createdTogether(ctx context.Context, c *link.Conn, create *link.Call, made []*place) error {
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
	if err != nil {
		if framework.Ambiguous(err) {
			for _, p := range made {
				p.doubt = create
			}
		}
		return err
	}
	if i, code, err := firstRefusal(resp.Results); err != nil {
		if code == wire.CodeNoNode {
			return ensureAll(ctx, c, made[i:])
		}
		if code != wire.CodeOK {
			err = made[i].scope.Session.Refusal(wire.OpCreate, session.Below(made[i].path, made[i].mark), code)
		}
		return fmt.Errorf("%s: %w", made[i].path, err)
	}
	// Whatever the operation, a transaction's result of a creation has no Stat. But
	// the reply to a write carries its own zxid: servers apply one at a time.
	//
	// Source: ZooKeeper's FinalRequestProcessor, CommitProcessor.
	for i, p := range made {
		err = errors.Join(err, p.named(create, resp.Results[i].Path, create.Zxid()))
	}
	return err
}

// ensureAll makes the parents of nodes, of which the first is missing.
func ensureAll(ctx context.Context, c *link.Conn, made []*place) error {
	for i, p := range made {
		if i > 0 && p.path == made[i-1].path {
			continue
		}
		if err := p.scope.Ensure(ctx, c, p.path); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
	}
	return errAgain
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

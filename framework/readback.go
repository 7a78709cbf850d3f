package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/retry"
)

// readBack looks whether a transaction whose reply was lost has been applied.
// It returns results if everything is as the transaction would have made it.
func (t *Ops) readBack(ctx context.Context, o *op) ([]Result, error) {
	all := append(slices.Clone(t.ops), t.guards...)
	if !slices.ContainsFunc(all, func(p pendingOp) bool { return p.Op != wire.OpCheck }) {
		return nil, nil // nothing was to be changed, so it can just be sent again
	}
	reading := o.on(o.path)
	reading.write = false
	c, err := reading.conn(ctx)
	if err != nil {
		return nil, err
	}
	calls := []*link.Call{session.Barrier(o.path)}
	for _, p := range all {
		calls = append(calls, link.NewCall(wire.OpGetData, &wire.PathWatchRequest{Path: p.path}))
	}
	if err := o.session.Send(ctx, c, calls...); err != nil {
		return nil, err
	}
	if err := o.session.AwaitBarrier(ctx, c, calls[0]); err != nil {
		return nil, err
	}
	results := make([]Result, len(all))
	for i, p := range all {
		done, err := p.wasDone(ctx, o, c, calls[i+1], &results[i])
		if err != nil || !done {
			return nil, err
		}
	}
	return results[:len(t.ops)], nil
}

// wasDone compares a node with what the operation would have made of it.
func (p *pendingOp) wasDone(ctx context.Context, o *op, c *link.Conn, call *link.Call, result *Result) (bool, error) {
	if p.Op == wire.OpCheck {
		return true, nil // it changed nothing, whatever has become of the node since
	}
	var now wire.GetDataResponse
	err := o.session.Await(ctx, c, call, false)
	if err == nil {
		err = call.Decode(&now)
	}
	absent := errors.Is(err, ErrNoNode)
	if err != nil && !absent {
		return false, err
	}
	switch req := p.Request.(type) {
	case *wire.CreateRequest:
		result.Path = o.relative(p.path)
		ours := req.Flags&wire.FlagEphemeral == 0 || now.Stat.EphemeralOwner == c.Session()
		return !absent && ours && now.Stat.Version == 0 && bytes.Equal(now.Data, o.dataOrDefault(c, req.Data)), nil
	case *wire.SetDataRequest:
		result.Stat = stat(&now.Stat)
		return !absent && now.Stat.Version == req.Version+1 && bytes.Equal(now.Data, req.Data), nil
	}
	return p.Op != wire.OpDelete || absent, nil
}

// doubted is what a refusal means after a lost reply: the transaction may have
// been applied the first time, and somebody has changed its nodes since.
func doubted(refused error) error {
	var te *TransactionError
	var ge *session.GuardError
	if errors.As(refused, &te) || errors.As(refused, &ge) {
		return retry.Mark(fmt.Errorf("%w: sent again, it was refused: %w", ErrOutcomeUnknown, refused), retry.Stop)
	}
	return refused
}

// doubt is whether an attempt of a call had no reply, so that it may have taken
// effect.
type doubt bool

// note takes in how an attempt went.
func (d *doubt) note(err error) error {
	*d = *d || doubt(Ambiguous(err))
	return err
}

// then is note, and judges a refusal after an attempt without a reply. It says
// nothing: the node may have been as it should, and somebody has changed it since.
func (d *doubt) then(err error) error {
	if bool(*d) && (errors.Is(err, ErrBadVersion) || errors.Is(err, ErrNoNode)) {
		return retry.Mark(fmt.Errorf("%w: sent again, it was refused: %w", ErrOutcomeUnknown, err), retry.Stop)
	}
	return d.note(err)
}

// end is the error of the call: if the last attempt was not answered either, for
// whatever reason, the outcome is as unknown as it was.
func (d *doubt) end(o *op, err error) error {
	if err == nil || !bool(*d) || Ambiguous(err) || !Retryable(err) && !ended(err) && !errors.Is(err, ErrClosed) {
		return err
	}
	var in *OpError
	if errors.As(err, &in) {
		err = in.Err
	}
	return o.fail(fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
}

package framework

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/retry"
)

// commitment is one Commit across its attempts.
type commitment struct {
	*op
	*Ops
	receipt *receipt  // nil without
	before  ambiguity // whether an attempt had no reply
	askedIn int64     // the session of the attempts without a reply, 0 for several
}

func (t *commitment) attempt(ctx context.Context) ([]Result, error) {
	if t.before {
		if !t.idempotent { // a classifier of the caller's has it repeated
			return nil, unsettled("the reply was lost, and without Idempotent or Receipt it is sent once", nil)
		}
		if results, err := t.settle(ctx); results != nil || err != nil {
			return results, err
		}
	}
	results, in, err := t.sendWhole(ctx)
	if bool(t.before) && isRefusal(err) {
		return nil, unsettled("sent again, it was refused", err)
	}
	if Ambiguous(err) {
		if t.before && in != t.askedIn {
			in = 0
		}
		t.askedIn = in
	}
	return results, t.before.note(err)
}

// settle looks whether the attempts without a reply were applied. Results say
// that they were, no error that the transaction can be sent again.
func (t *commitment) settle(ctx context.Context) ([]Result, error) {
	results, err := t.readBack(ctx)
	if isRefusal(err) && !Ambiguous(err) {
		return nil, unsettled("reading back", err)
	}
	return results, err
}

func (t *commitment) readBack(ctx context.Context) ([]Result, error) {
	if t.receipt != nil {
		return t.findReceipt(ctx)
	}
	all := append(slices.Clone(t.ops), t.guards...)
	c, calls, err := t.readBehind(ctx, all, wire.OpGetData)
	if err != nil {
		return nil, err
	}
	results, done := make([]Result, len(t.ops)), true
	for i, p := range t.ops {
		here, err := p.wasDone(ctx, t.op, c, calls[i], &results[i])
		if err != nil {
			return nil, err
		}
		done = done && here
	}
	// The guards were read last: what the lock's node says of now it says of the
	// moment at which the others were read.
	verdict, err := t.judgeGuards(ctx, c, calls[len(t.ops):])
	switch {
	case verdict == neverApplied:
		// In its own session, and behind a barrier, it cannot be applied any more.
		t.before = t.before && ambiguity(c.SessionID() != t.askedIn)
		return nil, nil
	case err != nil || !done:
		return nil, err
	case verdict == notAlone:
		return nil, unsettled("all is as it was to be, which others who hold the lock may have done", nil)
	}
	return results, nil
}

// readBehind reads nodes behind every write that was sent before.
func (t *commitment) readBehind(ctx context.Context, nodes []pendingOp, read wire.Op) (*transport.Conn, []*transport.Call, error) {
	reading := t.on(t.path)
	reading.write = false
	c, err := reading.conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	calls := []*transport.Call{session.Barrier(t.path)}
	for _, p := range nodes {
		calls = append(calls, transport.NewCall(read, &wire.PathWatchRequest{Path: p.path}))
	}
	if err := t.session.Send(ctx, c, calls...); err != nil {
		return nil, nil, err
	}
	return c, calls[1:], session.AwaitBarrier(ctx, t.session, c, calls[0])
}

// verdict is what the nodes of a lock say about a transaction without a reply.
type verdict int

const (
	alone        verdict = iota // nobody but the holder can have done its work
	notAlone                    // others may hold the lock as well
	neverApplied                // a node is there that it would have deleted
)

// judgeGuards looks at the nodes of the lock. A node that is gone proves nothing:
// the transaction may have deleted it, or a client that gave the lock away.
func (t *commitment) judgeGuards(ctx context.Context, c *transport.Conn, calls []*transport.Call) (verdict, error) {
	v := alone
	for i, p := range t.guards {
		err := t.session.Await(ctx, c, calls[i], false)
		switch {
		case errors.Is(err, ErrNoNode):
			return v, unsettled("the lock's node is gone", &session.GuardError{Path: p.path, Err: err})
		case err != nil && !errors.Is(err, ErrNoAuth): // which is said of nodes that are there
			return v, err
		case p.Op == wire.OpDelete:
			return neverApplied, nil
		case !p.exclusive:
			v = notAlone
		}
	}
	return v, nil
}

// wasDone compares a node with what the operation would have made of it.
func (p *pendingOp) wasDone(ctx context.Context, o *op, c *transport.Conn, call *transport.Call, result *Result) (bool, error) {
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
		ours := otherOwner(req.Flags, c.SessionID(), now.Stat.EphemeralOwner) == nil
		return !absent && ours && now.Stat.Version == 0 && bytes.Equal(now.Data, o.dataOrDefault(c, req.Data)), nil
	case *wire.SetDataRequest:
		result.Stat = stat(&now.Stat)
		return !absent && now.Stat.Version == req.Version+1 && bytes.Equal(now.Data, req.Data), nil
	}
	return p.Op != wire.OpDelete || absent, nil
}

// isRefusal is whether an error is one that repeating does not cure.
func isRefusal(err error) bool {
	return err != nil && classify(err) == retry.Stop && !ended(err) && !errors.Is(err, ErrClosed)
}

// unsettled says that nobody knows whether a transaction was applied. What a server
// has refused since is in the text alone: to callers it would mean "not applied".
func unsettled(why string, refused error) error {
	return retry.Mark(&session.UnsettledError{Why: why, Refused: refused}, retry.Stop)
}

// ambiguity is whether an attempt of a call had no reply, so that it may have taken
// effect.
type ambiguity bool

// note takes in how an attempt went.
func (d *ambiguity) note(err error) error {
	*d = *d || ambiguity(Ambiguous(err))
	return err
}

// end is the error of the call. After an attempt without a reply the outcome is unknown,
// whatever came later. A later refusal may be about what the attempt has done, or about
// what others have made of it since.
func (d *ambiguity) end(o *op, err error) error {
	if err == nil || !bool(*d) || Ambiguous(err) {
		return err
	}
	var in *OpError
	if errors.As(err, &in) {
		err = in.Err
	}
	return o.fail(&unknownError{later: err})
}

// unknownError is ErrOutcomeUnknown, with what came later in the text. It matches
// nothing of that but the end of the context and the *retry.Error: an answer, or that
// nobody could be asked, would mean "not applied".
type unknownError struct{ later error }

// Error implements error.
func (e *unknownError) Error() string {
	text := ErrOutcomeUnknown.Error() + ": "
	if isRefusal(e.later) {
		text += "sent again, it was refused: "
	}
	return text + e.later.Error()
}

// Unwrap gives what it matches.
func (e *unknownError) Unwrap() []error {
	all := []error{ErrOutcomeUnknown}
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(e.later, end) {
			all = append(all, end)
		}
	}
	return all
}

// As finds the *retry.Error.
func (e *unknownError) As(target any) bool {
	attempts, ok := target.(**retry.Error)
	return ok && errors.As(e.later, attempts)
}

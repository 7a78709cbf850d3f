package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Receipt lets Commit find out what became of a transaction whose reply was lost,
// whatever others have done to its nodes since. The transaction also makes an
// ephemeral node below parent, the receipt. It exists if and only if the
// transaction was applied. After a lost reply Commit looks for the receipt. If it
// is not there, Commit sends the transaction again. Missing nodes of the path
// parent are made. The transaction may have operations on any version, but no
// sequential nodes.
//
// It costs one more operation, about 100 bytes and the path in the transaction, and
// a delete in the background afterwards. Nothing stays behind: Commit removes the
// receipt, also if its ctx has ended. A receipt that cannot be removed any more, or
// that the servers refuse to delete, goes with the session. Client.Errors tells of a refusal. So Commit still returns ErrOutcomeUnknown if the session
// ends before it has the answer, if ctx ends, or if Config.Retry gives up.
//
// If the servers refuse the receipt, for instance with ErrNoAuth, nothing was
// applied. parent must not be the path of a lock.
func Receipt(parent string) CommitOption { return receiptOption(parent) }

type receiptOption string

func (r receiptOption) commit(o *commitOptions) { o.receipts, o.hasReceipts = string(r), true }

// receipt is the node that stands for one transaction.
type receipt struct {
	parent, path string // in full
	asked        bool   // it may have been made
}

func (t *Ops) newReceipt(parent string) (*receipt, error) {
	full, err := t.base.full(parent, false)
	if err == nil {
		path := session.Join(full, session.NewProtection(t.base.session)+"receipt")
		if err = ValidatePath(path); err == nil {
			return &receipt{parent: full, path: path}, nil
		}
	}
	return nil, fmt.Errorf("receipt: %w", err)
}

// create is the operation that makes it.
func (r *receipt) create(o *op) wire.MultiOp {
	r.asked = true
	return wire.MultiOp{Op: wire.OpCreate, Request: &wire.CreateRequest{
		Path: r.path, Data: []byte{}, ACL: wireACL(o.defaultACL(r.path)), Flags: wire.FlagEphemeral,
	}}
}

// remove deletes it in the background. On the same connection that happens after
// the transaction, and in another session it goes with that in which it was made.
func (r *receipt) remove(o *op) {
	if r != nil && r.asked {
		o.on(r.path).guarantee(false)
	}
}

// receiptError says that the receipt was refused, and so the transaction.
type receiptError struct {
	path string
	err  error
}

// Error implements error.
func (e *receiptError) Error() string { return "receipt " + e.path + ": " + e.err.Error() }

// Unwrap gives the reason.
func (e *receiptError) Unwrap() error { return e.err }

// findReceipt is look for a transaction with a receipt.
func (t *commitment) findReceipt(ctx context.Context) ([]Result, error) {
	nodes := append([]pendingOp{{path: t.receipt.path}}, t.ops...)
	c, calls, err := t.readBehind(ctx, nodes, wire.OpExists)
	if err != nil {
		return nil, err
	}
	var made wire.StatResponse
	err = t.session.Await(ctx, c, calls[0], false)
	if err == nil {
		err = calls[0].Decode(&made)
	}
	switch {
	case errors.Is(err, ErrNoNode) && c.SessionID() == t.askedIn: // behind the barrier nothing of before can be applied any more
		t.before = false
		return nil, nil
	case errors.Is(err, ErrNoNode):
		return nil, unsettled("the session has ended, and its receipts with it", nil)
	case err != nil:
		return nil, err
	}
	results := make([]Result, len(t.ops))
	for i, p := range t.ops {
		switch p.Op {
		case wire.OpCreate, wire.OpCreateContainer:
			results[i].Path = t.relative(p.path)
		case wire.OpSetData:
			var now wire.StatResponse
			if err := t.session.Await(ctx, c, calls[i+1], false); err != nil && !isRefusal(err) {
				return nil, err
			} else if err == nil && calls[i+1].Decode(&now) == nil && now.Stat.Mzxid == made.Stat.Czxid {
				results[i].Stat = stat(&now.Stat) // nobody has changed the node since
			}
		}
	}
	return results, nil
}

package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
)

// Transaction is a framework.Transaction that is applied only by who holds the
// lock. It is not for use by several goroutines at once; Commit may be called
// again with more operations or after a failure.
type Transaction struct {
	framework.Ops
	hold *Hold
	conn *transport.Conn // that there was when a commit began
}

// Transaction begins writes that are applied only if every node of this hold
// still exists. Their paths are those of the client that the lock was made with,
// for a MultiLock the first member's; the members must be of one client.
//
// It is exact, without clocks: the servers apply the writes at an instant at
// which the lock is ours, or not at all.
func (h *Hold) Transaction() *Transaction {
	t := &Transaction{hold: h}
	if first := h.first(); first != nil {
		t.Ops = first.queue.client.Transaction().Ops
	}
	return t
}

// first is the first ownership under a hold that stands on a node, nil for none.
func (h *Hold) first() *ownership {
	if h.ownership == nil {
		return nil
	}
	if h.ownership.queue != nil {
		return h.ownership
	}
	for _, m := range h.members() {
		if o := m.first(); o != nil {
			return o
		}
	}
	return nil
}

// node is the full path of the first node that a hold stands on, "" for none.
func (h *Hold) node() string {
	if o := h.first(); o != nil {
		return o.nodePath()
	}
	return ""
}

// Commit applies the writes, or none of them. Without operations it asks the
// servers whether the lock is still ours.
//
// Nil says that this transaction was applied. With framework.Idempotent it says
// that the data is as it was to be, and that nobody else who held the lock did it.
//
// framework.ErrOutcomeUnknown says that the reply was lost: the transaction was
// applied, or not. It never comes together with one of the errors below.
// framework.Receipt finds out in most cases. framework.Idempotent finds out as
// long as the lock's node is there. It does not where others hold the lock at
// the same time and all is as it was to be.
//
// After any other error nothing was written:
//   - ErrFenced: the lock is gone. It also matches ErrLockLost here.
//   - ErrReleased: the hold was given back before.
//   - a *framework.TransactionError: an operation of yours was refused.
//   - ErrNoFence: the hold has no node, a node that may not be read, or nodes of
//     several clients.
//   - others as from framework.Transaction.Commit.
func (t *Transaction) Commit(ctx context.Context, opts ...framework.CommitOption) ([]framework.Result, error) {
	leaves, err := t.leaves()
	if err != nil {
		return nil, err
	}
	if err := t.begin(leaves); err != nil {
		return nil, err
	}
	err = framework.ErrOutcomeUnknown // unless send returns: a method of ctx may panic
	defer func() { t.end(leaves, err) }()
	results, err := t.send(ctx, leaves, nil, opts)
	return results, err
}

// CommitAndRelease also deletes the node, at the same instant. If this hold
// re-entered, the node stays for the outer ones.
//
// With the node goes what framework.Idempotent goes by: after a lost reply it can
// only say that nothing was applied, as long as the node is there, and send again.
// framework.Receipt does without.
//
// The contexts of the hold end before the transaction is sent, with a cause that
// matches ErrReleased. If another hold is held that was acquired under this one,
// they end when that is released. They stay ended whatever comes of it.
//
// After ErrOutcomeUnknown the hold is over and cleaned up as by Release, which is
// not waited for once ctx has ended. After any other error, also if nothing was
// sent, the lock is held as before. The hold is still to be released, and Bind
// gives a new context for it. The contexts go on where the error says that the
// hold could not have committed anything: ErrNoFence without a node, ErrReleased.
//
// While it runs, the lock cannot be re-entered under this hold. What Bind gives
// meanwhile has ended: the error is context.Canceled, and the cause matches
// ErrReleased.
func (t *Transaction) CommitAndRelease(ctx context.Context, opts ...framework.CommitOption) ([]framework.Result, error) {
	leaves, err := t.leaves()
	if err != nil {
		return nil, err
	}
	d, err := t.hold.beginRelease()
	if err != nil {
		return nil, t.refused(err)
	}
	if err := t.begin(leaves); err != nil {
		d.undo()
		return nil, err
	}
	// The servers may give the lock away with the transaction, so the contexts end
	// before it leaves.
	defer detach(d.leaveForNow())
	returned := false
	defer func() {
		if !returned { // a method of ctx has panicked
			t.end(leaves, framework.ErrOutcomeUnknown)
			d.reopen()
			hurry(leaves)
			_ = t.hold.Release()
		}
	}()
	results, err := t.send(ctx, leaves, d, opts)
	returned = true
	t.end(leaves, err)
	switch {
	case err == nil:
		d.done()
	case errors.Is(err, framework.ErrOutcomeUnknown):
		d.reopen()
		releaseUntil(ctx, t.hold, leaves)
	default:
		d.undo()
	}
	return results, err
}

// releaseUntil releases a hold, and waits for that until ctx ends. It goes on in the
// background then. The hold is also released if a method of ctx panics.
func releaseUntil(ctx context.Context, hold *Hold, leaves []*Hold) {
	stop := func() bool { return true }
	defer func() {
		_ = hold.Release()
		stop()
	}()
	stop = context.AfterFunc(ctx, func() { hurry(leaves) })
}

// hurry makes the release of holds not wait for the servers.
func hurry(leaves []*Hold) {
	for _, leaf := range leaves {
		leaf.ownership.hurry()
	}
}

// begin sees to it that the nodes stay with their holds as long as the servers
// may apply what is sent: it is their nodes that prove it, and a lock can pass to
// another goroutine with its node.
func (t *Transaction) begin(leaves []*Hold) error {
	for i, leaf := range leaves {
		if err := leaf.ownership.write(); err != nil {
			for _, begun := range leaves[:i] {
				begun.ownership.wrote(false)
			}
			return t.refused(err)
		}
	}
	t.conn = leaves[0].conn()
	return nil
}

// end says what became of it. A request that was lost with its connection may be
// applied late, also if another one after it was answered.
func (t *Transaction) end(leaves []*Hold, err error) {
	doubt := framework.Ambiguous(err) || t.conn == nil || t.conn != leaves[0].conn()
	for _, leaf := range leaves {
		leaf.ownership.wrote(doubt)
	}
}

// conn is the present connection of a hold that stands on one node.
func (h *Hold) conn() *transport.Conn {
	node := h.ownership.Node()
	c, err := node.Session().Current(node.ID())
	if err != nil {
		return nil
	}
	return c
}

// leaves are the holds that stand on one node each, without those that were
// released early.
func (t *Transaction) leaves() ([]*Hold, error) {
	h := t.hold
	if h == nil {
		return nil, opError("commit", "", ErrReleased)
	}
	if _, err := h.status(); err != nil {
		return nil, t.refused(err)
	}
	var leaves []*Hold
	if err := h.collect(&leaves); err != nil {
		return nil, t.refused(err)
	}
	if len(leaves) == 0 {
		return nil, t.refused(ErrReleased)
	}
	for _, leaf := range leaves {
		if leaf.ownership.session() != leaves[0].ownership.session() {
			return nil, t.refused(fmt.Errorf("%w: its locks are of several clients", ErrNoFence))
		}
	}
	return leaves, nil
}

func (h *Hold) collect(leaves *[]*Hold) error {
	switch {
	case h.State() == Released:
		return nil
	case h.ownership.queue != nil:
		*leaves = append(*leaves, h)
		return nil
	case len(h.members()) == 0:
		return fmt.Errorf("%w: it stands on no node of ours", ErrNoFence)
	}
	for _, m := range h.members() {
		if err := m.collect(leaves); err != nil {
			return err
		}
	}
	return nil
}

// refused is what the caller is told of a hold that can commit nothing.
func (t *Transaction) refused(err error) error {
	if errors.Is(err, ErrLockLost) {
		err = fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return opError("commit", t.hold.node(), err)
}

// send commits with a proof for each node, which deletes it if it departs.
func (t *Transaction) send(ctx context.Context, leaves []*Hold, d *pendingRelease, opts []framework.CommitOption) ([]framework.Result, error) {
	guards := make([]session.Guard, len(leaves))
	going := make(map[*ownership]bool)
	if d != nil {
		for _, leaf := range d.leaves(nil) {
			going[leaf.hold.ownership] = true
		}
	}
	for i, leaf := range leaves {
		o := leaf.ownership
		guards[i] = session.Guard{Path: o.nodePath(), Delete: going[o], Exclusive: o.queue.exclusive}
	}
	results, err := t.Guarded(session.Key{}, guards).Commit(ctx, opts...)
	var guard *session.GuardError
	var unsettled *session.UnsettledError
	switch {
	case errors.As(err, &guard):
		return nil, t.fenced(guard, leaves)
	case d == nil && errors.As(err, &unsettled) && errors.As(unsettled.Refused, &guard):
		t.noteGone(guard, leaves)
	}
	return results, err
}

// noteGone tells the session of a node that is gone.
func (t *Transaction) noteGone(guard *session.GuardError, leaves []*Hold) {
	if !errors.Is(guard, framework.ErrNoNode) {
		return
	}
	for _, leaf := range leaves {
		if o := leaf.ownership; o.nodePath() == guard.Path {
			o.node.Deleted()
		}
	}
}

// fenced is what a guard's refusal means: the transaction was not applied.
func (t *Transaction) fenced(guard *session.GuardError, leaves []*Hold) error {
	var fence error
	switch {
	case errors.Is(guard, framework.ErrNoNode):
		t.noteGone(guard, leaves)
		fence = fmt.Errorf("%w: %w", ErrFenced, &LostError{Path: guard.Path, Reason: ErrNodeDeleted})
	case errors.Is(guard, framework.ErrNoAuth):
		fence = fmt.Errorf("%w: %w", ErrNoFence, guard)
	default:
		fence = guard
	}
	return opError("commit", guard.Path, fence)
}

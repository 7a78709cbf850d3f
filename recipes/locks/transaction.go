package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
)

// Transaction is a framework.Transaction that the servers apply only while its hold's
// lock is held. It is not for use by several goroutines at once. Commit may be called
// again with more operations or after a failure.
type Transaction struct {
	_ noCopy
	framework.Ops
	hold *Hold
	conn *transport.Conn // that there was when a commit began
}

// Transaction begins writes that the servers apply only if every node of this hold still
// exists. Those of Members that you have released do not count. Paths are those of the
// client that the lock was made with; for a MultiLock, of the first member's client. All
// members must be of one client.
//
// It does not rely on clocks: the servers apply the writes at an instant at which this
// hold has the lock, or not at all.
func (h *Hold) Transaction() *Transaction {
	t := &Transaction{hold: h}
	if q := h.through(); q != nil {
		t.Ops = q.client.Transaction().Ops
	}
	return t
}

// node is the full path of the first node that a hold stands on, "" for none.
func (h *Hold) node() string {
	if o := h.first(); o != nil {
		return o.node.Path()
	}
	return ""
}

// Commit applies all writes, or none of them. Without operations it asks the servers
// whether this hold still has the lock.
//
// A nil error says that this transaction was applied. With framework.Idempotent it says
// that the data is as intended, and that no other holder of the lock wrote it.
//
// framework.ErrOutcomeUnknown says that the reply was lost: the transaction was
// applied, or not. It never comes together with one of the errors below.
// framework.Receipt finds out in most cases. framework.Idempotent finds out as long as
// the lock's node is there. It cannot if others hold the lock at the same time and all
// nodes are as intended.
//
// After any other error nothing was written:
//   - ErrFenced, together with ErrLockLost: the lock is gone.
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
	results, err := t.send(ctx, leaves, nil, opts)
	t.end(leaves, err)
	return results, err
}

// CommitAndRelease also deletes the node, at the same instant. If this hold
// re-entered, the node stays for the outer ones.
//
// framework.Idempotent relies on the node, which this transaction deletes. So it can
// help after a lost reply only if the node is still there. Nothing was applied then,
// and it sends the transaction again. framework.Receipt does not need the node.
//
// Like Release it ends the hold for good, whatever it returns, and the contexts before
// anything is sent. If the servers do not apply the transaction, or it could not be sent,
// CommitAndRelease gives the lock back by itself, as Release does, and stops waiting for
// that once ctx has ended. The error then says so. To keep the lock after a refusal, use
// Commit and then Release.
func (t *Transaction) CommitAndRelease(ctx context.Context, opts ...framework.CommitOption) ([]framework.Result, error) {
	leaves, err := t.leaves()
	if err == nil {
		err = t.begin(leaves)
	}
	if t.hold.isNone() {
		return nil, err
	}
	// The servers may give the lock away with the transaction, so the contexts end
	// before it leaves.
	g := givingBack{giveUp: doneOf(ctx)}
	ended := g.end(t.hold)
	switch {
	case err != nil:
		g.deleteNodes()
		return nil, givenBack(err, g.err())
	case !ended:
		t.end(leaves, ErrReleased)
		return nil, t.refused(ErrReleased)
	}
	results, err := t.send(ctx, leaves, &g, opts)
	t.end(leaves, err)
	if err == nil {
		g.deleted()
		return results, nil
	}
	g.deleteNodes()
	return results, givenBack(err, g.err())
}

// doneOf is closed when ctx has ended; nil for the nil context, which Commit refuses.
func doneOf(ctx context.Context) <-chan struct{} {
	if ctx == nil {
		return nil
	}
	return ctx.Done()
}

// givenBack is the error of a transaction whose hold was released after it.
func givenBack(err, released error) error {
	switch refused := refusals(released); {
	case refused != nil && !errors.Is(refused, ErrReleased):
		return errors.Join(err, refused)
	case errors.Is(err, ErrLockLost), errors.Is(err, ErrReleased):
		return err
	}
	return fmt.Errorf("%w (the hold is released)", err)
}

// begin makes the nodes stay with their holds as long as the servers may apply the
// transaction. The servers check these nodes, and a node could pass to another goroutine
// together with its lock.
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

// end says what became of the transaction. A request that was lost with its connection
// may be applied late, also if a later one was answered.
func (t *Transaction) end(leaves []*Hold, err error) {
	doubt := framework.Ambiguous(err) || t.conn == nil || t.conn != leaves[0].conn()
	for _, leaf := range leaves {
		leaf.ownership.wrote(doubt)
	}
}

// conn is the present connection of a hold that stands on one node.
func (h *Hold) conn() *transport.Conn {
	node := &h.ownership.node
	c, err := node.Session().ConnOf(node.SessionID())
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

// refused is the caller's error for a hold that can commit nothing.
func (t *Transaction) refused(err error) error {
	if errors.Is(err, ErrLockLost) {
		err = fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return opError("commit", t.hold.node(), err)
}

// send commits with a check of each node. For a node that goes with the release, it
// deletes the node instead.
func (t *Transaction) send(ctx context.Context, leaves []*Hold, g *givingBack, opts []framework.CommitOption) ([]framework.Result, error) {
	guards := make([]session.Guard, len(leaves))
	for i, leaf := range leaves {
		o := leaf.ownership
		guards[i] = session.Guard{Path: o.node.Path(), Delete: g != nil && slices.Contains(g.over, o), Exclusive: o.queue.exclusive}
	}
	results, err := t.Guarded(session.Key{}, guards).Commit(ctx, opts...)
	var guard *session.GuardError
	var unsettled *session.UnsettledError
	switch {
	case errors.As(err, &guard):
		return nil, t.fenced(guard, leaves)
	case g == nil && errors.As(err, &unsettled) && errors.As(unsettled.Refused, &guard):
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
		if o := leaf.ownership; o.node.Path() == guard.Path {
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

// String is the hold that the transaction rests on, for logs, without its operations.
func (t *Transaction) String() string { return "transaction under " + t.hold.String() }

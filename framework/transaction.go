package framework

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Ops collects writes. Mistakes are kept, and Commit returns all of them with the
// number of each operation, from 0. Parents and protection do not exist here. It is not
// for use by several goroutines at once.
type Ops struct {
	base     *base
	ops      []pendingOp
	guards   []pendingOp // sent before ops, and not the caller's
	mistakes []error     // each of an operation that is not in ops
}

type pendingOp struct {
	wire.MultiOp
	path string // in full

	exclusive bool // of a guard: nobody else can hold the lock while it holds
}

// Create adds a node to be made. The access list defaults to Config.ACL, nil
// data to Config.DefaultData.
func (t *Ops) Create(path string, data []byte, mode Mode, acl ...ACL) {
	full, ok := t.check("create", path, mode.sequential())
	if !ok {
		return
	}
	flags, known := modeFlags[mode]
	if !known {
		t.reject("create", full, fmt.Errorf("%w: mode %d", ErrInvalidArgument, mode))
		return
	}
	if len(acl) == 0 {
		acl = t.base.defaultACL(full)
	}
	if err := checkACL(acl); err != nil {
		t.reject("create", full, err)
		return
	}
	op := wire.OpCreate
	if mode == Container {
		op = wire.OpCreateContainer
	}
	t.add(op, full, &wire.CreateRequest{Path: full, Data: data, ACL: wireACL(acl), Flags: flags})
}

// Set adds data to be replaced if the node's version is as given. Nil data is
// stored as empty.
func (t *Ops) Set(path string, data []byte, version int32) {
	if data == nil {
		data = []byte{}
	}
	if full, ok := t.checkVersion("set", path, version); ok {
		t.add(wire.OpSetData, full, &wire.SetDataRequest{Path: full, Data: data, Version: version})
	}
}

// Delete adds a node to be removed if its version is as given.
func (t *Ops) Delete(path string, version int32) {
	if full, ok := t.checkVersion("delete", path, version); ok {
		t.add(wire.OpDelete, full, &wire.PathVersionRequest{Path: full, Version: version})
	}
}

// Check adds the condition that a node's version is as given.
func (t *Ops) Check(path string, version int32) {
	if full, ok := t.checkVersion("check", path, version); ok {
		t.add(wire.OpCheck, full, &wire.PathVersionRequest{Path: full, Version: version})
	}
}

func (t *Ops) add(op wire.Op, full string, req wire.Record) {
	t.ops = append(t.ops, pendingOp{MultiOp: wire.MultiOp{Op: op, Request: req}, path: full})
}

func (t *Ops) check(name, path string, sequential bool) (string, bool) {
	if t.base == nil {
		t.reject(name, path, ErrClosed)
		return "", false
	}
	full, err := t.base.full(path, sequential)
	if err != nil {
		t.reject(name, path, err)
		return "", false
	}
	return full, true
}

func (t *Ops) checkVersion(name, path string, version int32) (string, bool) {
	full, ok := t.check(name, path, false)
	if ok && version < AnyVersion {
		t.reject(name, full, badVersion(version))
		return "", false
	}
	return full, ok
}

// reject keeps a mistake.
func (t *Ops) reject(name, path string, err error) {
	n := len(t.ops) + len(t.mistakes)
	t.mistakes = append(t.mistakes, fmt.Errorf("operation %d of the transaction: %w", n, &OpError{Op: name, Path: path, Err: err}))
}

// Transaction applies its Ops all or not at all. Do not copy it.
type Transaction struct {
	_ noCopy
	Ops
}

// Transaction begins an empty one; nothing is sent before Commit.
func (c *Client) Transaction() *Transaction {
	if c.unusable() {
		return &Transaction{}
	}
	return &Transaction{Ops: Ops{base: c.base}}
}

// Result belongs to the operation at the same index.
type Result struct {
	Path string // of a created node
	Stat *Stat  // after Set; nil if the reply was lost, and the node has been changed since
}

// TransactionError says which operation was refused, and why. Nothing of the
// transaction was applied.
type TransactionError struct {
	Index int    // of the operation, from 0
	Path  string // in full, with chroot and namespace
	Err   error
}

// Error implements error.
func (e *TransactionError) Error() string {
	return fmt.Sprintf("operation %d on %s: %v", e.Index, e.Path, e.Err)
}

// Unwrap gives the reason.
func (e *TransactionError) Unwrap() error { return e.Err }

// Commit sends the transaction once, whatever Config.Retry says. A nil error
// means that this transaction was applied. If an operation is refused, the error
// is a *TransactionError, and nothing was applied. If the reply is lost, the
// error is ErrOutcomeUnknown and matches no refusal.
//
// With Idempotent, Commit reads the nodes back after a lost reply, and sends the
// transaction again if its operations are not done. A nil error then means that all
// nodes are as intended. With Receipt a node of the transaction's own shows whether
// it was applied. Either can still end in ErrOutcomeUnknown, since another client
// may have changed the nodes in between. If the servers refuse the second sending,
// the refusal is in the text alone.
//
// A transaction of checks alone is retried as a read is. For an empty one Commit
// returns ErrInvalidArgument. If operations were given bad paths, versions or modes,
// nothing is sent, and the error names each of them, joined by errors.Join.
func (t *Transaction) Commit(ctx context.Context, opts ...CommitOption) ([]Result, error) {
	if t.base == nil {
		return nil, &OpError{Op: "commit", Err: ErrClosed}
	}
	o := &op{base: t.base, name: "commit", path: t.place(), write: true}
	options, err := t.begin(ctx, opts)
	if err != nil {
		return nil, o.fail(err)
	}
	attempts := &commitment{op: o, Ops: &t.Ops}
	if options.hasReceipts && t.writes() {
		if attempts.receipt, err = t.newReceipt(options.receipts); err != nil {
			return nil, o.fail(err)
		}
	}
	o.idempotent = options.idempotent || attempts.receipt != nil || !t.writes()
	var results []Result
	err = o.do(ctx, func(ctx context.Context) (err error) {
		results, err = attempts.attempt(ctx)
		return err
	})
	if err == nil || bool(attempts.before) {
		attempts.receipt.remove(o)
	}
	if err != nil {
		return nil, attempts.before.end(o, err)
	}
	return results, nil
}

// place is what errors name: the first path.
func (t *Ops) place() string {
	switch {
	case len(t.ops) > 0:
		return t.ops[0].path
	case len(t.guards) > 0:
		return t.guards[0].path
	}
	return t.base.prefix + "/"
}

func (t *Ops) begin(ctx context.Context, opts []CommitOption) (commitOptions, error) {
	var options commitOptions
	for _, opt := range opts {
		if opt == nil {
			return options, fmt.Errorf("%w: option is nil", ErrInvalidArgument)
		}
		opt.commit(&options)
	}
	switch {
	case ctx == nil:
		return options, ErrNilContext
	case len(t.mistakes) > 0:
		return options, errors.Join(t.mistakes...)
	case len(t.ops) == 0 && len(t.guards) == 0:
		return options, fmt.Errorf("%w: the transaction is empty", ErrInvalidArgument)
	case options.idempotent || options.hasReceipts:
		return options, t.settleable(options.hasReceipts)
	}
	return options, nil
}

// settleable is whether it can be told afterwards if the transaction was applied,
// and what came of it.
func (t *Ops) settleable(receipt bool) error {
	for i, p := range t.ops {
		var reason string
		switch req := p.Request.(type) {
		case *wire.CreateRequest:
			if req.Flags&wire.FlagSequence != 0 {
				reason = "a sequential node cannot be recognised"
			}
		case *wire.SetDataRequest:
			if req.Version == AnyVersion && !receipt {
				reason = "it needs an exact version"
			}
		}
		if reason != "" {
			return fmt.Errorf("%w: operation %d on %s is not idempotent: %s", ErrInvalidArgument, i, p.path, reason)
		}
	}
	return nil
}

// writes is whether there is anything but checks.
func (t *Ops) writes() bool {
	notCheck := func(p pendingOp) bool { return p.Op != wire.OpCheck }
	return slices.ContainsFunc(t.guards, notCheck) || slices.ContainsFunc(t.ops, notCheck)
}

// sendWhole sends the transaction once, in the session that it returns. The
// parents of its receipt are made if they are missing.
func (t *commitment) sendWhole(ctx context.Context) (results []Result, in int64, err error) {
	for range mostTurns {
		c, err := t.conn(ctx)
		if err != nil {
			return nil, 0, err
		}
		results, err := t.send(ctx, t.op, c, t.receipt)
		var lacking *receiptError
		if !errors.As(err, &lacking) || !errors.Is(err, ErrNoNode) {
			return results, c.SessionID(), err
		}
		switch err := t.ensure(ctx, c, t.receipt.parent); {
		case Ambiguous(err) && ctx.Err() != nil: // of a node above; the transaction was not applied
			return nil, 0, contextend.Of(ctx)
		case Ambiguous(err):
			return nil, 0, fmt.Errorf("%w: the parent of the receipt: %v", ErrNotConnected, err) //nolint:errorlint // see above
		case err != nil:
			return nil, 0, err
		}
	}
	return nil, 0, &receiptError{t.receipt.path, ErrNoNode}
}

// send sends the transaction once.
func (t *Ops) send(ctx context.Context, o *op, c *transport.Conn, receipt *receipt) ([]Result, error) {
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, 0, len(t.guards)+len(t.ops)+1)}
	for _, p := range t.guards {
		req.Ops = append(req.Ops, p.MultiOp)
	}
	for _, p := range t.ops {
		if cr, ok := p.Request.(*wire.CreateRequest); ok && cr.Data == nil {
			filled := *cr
			filled.Data = o.dataOrDefault(c, nil)
			p.Request = &filled
		}
		req.Ops = append(req.Ops, p.MultiOp)
	}
	if receipt != nil {
		req.Ops = append(req.Ops, receipt.create(o))
	}
	var resp wire.MultiResponse
	if err := o.session.Round(ctx, c, wire.OpMulti, t.writes(), req, &resp); err != nil {
		return nil, err
	}
	if want := len(req.Ops); len(resp.Results) != want {
		return nil, session.Unreadable(t.writes(), fmt.Errorf("%d results for %d operations", len(resp.Results), want))
	}
	if receipt != nil {
		last := len(resp.Results) - 1
		if r := &resp.Results[last]; r.Refused() {
			return nil, &receiptError{receipt.path, o.session.Refusal(wire.OpCreate, receipt.path, r.Code)}
		}
		resp.Results = resp.Results[:last]
	}
	return t.results(o, resp.Results)
}

func (t *Ops) results(o *op, answered []wire.MultiResult) ([]Result, error) {
	first := answered[0].Op
	for i, p := range t.guards {
		if r := &answered[i]; r.Refused() {
			return nil, &session.GuardError{Path: p.path, Err: o.session.Refusal(p.Op, p.path, r.Code)}
		}
	}
	answered = answered[len(t.guards):]
	results := make([]Result, len(answered))
	for i := range answered {
		switch r := &answered[i]; r.Op {
		case wire.OpError:
			if r.Refused() {
				return nil, &TransactionError{Index: i, Path: t.ops[i].path, Err: o.session.Refusal(t.ops[i].Op, t.ops[i].path, r.Code)}
			}
		case wire.OpCreate, wire.OpCreate2: // the latter for a container
			results[i].Path = o.relative(r.Path)
		case wire.OpSetData:
			results[i].Stat = stat(&r.Stat)
		}
	}
	if first == wire.OpError {
		return nil, errors.New("every operation was undone and none was refused")
	}
	return results, nil
}

// Guarded is for the recipes of this module: nobody else can make a key. It is a
// transaction of the same operations that is applied only if the guards hold. A guard
// that does not is a *session.GuardError.
func (t Ops) Guarded(_ session.Key, guards []session.Guard) *Transaction {
	t.guards = make([]pendingOp, len(guards))
	for i, g := range guards {
		op := wire.OpCheck
		if g.Delete {
			op = wire.OpDelete
		}
		req := &wire.PathVersionRequest{Path: g.Path, Version: AnyVersion}
		t.guards[i] = pendingOp{MultiOp: wire.MultiOp{Op: op, Request: req}, path: g.Path, exclusive: g.Exclusive}
	}
	return &Transaction{Ops: t}
}

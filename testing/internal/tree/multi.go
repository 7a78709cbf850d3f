package tree

import "github.com/paddock-zk/paddock/internal/wire"

// multi is several changes at one zxid.
type multi []change

// multiRefusal is a multi of which nothing is applied. The operations before
// the refused one report success, the refused one reports its code, and those
// after it report a runtime inconsistency.
type multiRefusal []wire.MultiResult

// multi judges each operation against what the ones before it leave.
func (p *prep) multi(req *wire.MultiRequest) (change, wire.Code) {
	p.pending = make(map[string]*record)
	changes := make(multi, len(req.Ops))
	for i, op := range req.Ops {
		var code wire.Code
		switch req := op.Request.(type) {
		case *wire.CreateRequest:
			if timed(req.Flags) || p.tree.Release >= Release393 && !Known(req.Flags) {
				return nil, wire.CodeMarshallingError // there is no place for the time
			}
			changes[i], code = p.create(p.createOp(op.Op, req.Flags), req, 0)
		case *wire.CreateTTLRequest:
			changes[i], code = p.create(p.createOp(op.Op, req.Flags), &req.CreateRequest, req.TTL)
		case *wire.PathWatchRequest:
			return nil, wire.CodeMarshallingError // reads have no place here
		default:
			changes[i], code = p.prepare(op.Op, op.Request)
		}
		if code != wire.CodeOK {
			return refuse(len(req.Ops), i, code), wire.CodeOK
		}
	}
	return changes, wire.CodeOK
}

// createOp returns the request that a create within a multi stands for. Within
// a multi this follows from the flags, and elsewhere from the type. In
// ZooKeeper 3.9 the type counts where the flags do not decide.
//
// Source: ZooKeeper MultiOperationRecord.deserialize, Op.Create.
func (p *prep) createOp(op wire.Op, flags wire.Flags) wire.Op {
	switch {
	case timed(flags):
		return wire.OpCreateTTL
	case flags == wire.FlagContainer:
		return wire.OpCreateContainer
	case p.tree.Release >= Release393 && op != wire.OpCreateTTL:
		return op
	}
	return wire.OpCreate
}

func refuse(n, at int, code wire.Code) change {
	results := make(multiRefusal, n)
	for i := range results {
		results[i].Op = wire.OpError
		switch {
		case i == at:
			results[i].Code = code
		case i > at:
			results[i].Code = wire.CodeRuntimeInconsistency
		}
	}
	return results
}

func (m multi) apply(t *Tree, txn *Txn, out *Outcome) {
	results := make([]wire.MultiResult, len(m))
	for i, c := range m {
		c.apply(t, txn, out)
		results[i] = out.Result
		switch out.Result.Op {
		case wire.OpCreateContainer, wire.OpCreateTTL:
			results[i].Op = wire.OpCreate2 // the only result with a Stat
		}
	}
	out.Result = wire.MultiResult{Op: wire.OpMulti}
	out.Multi = results
}

func (m multiRefusal) apply(_ *Tree, _ *Txn, out *Outcome) {
	out.Result = wire.MultiResult{Op: wire.OpMulti}
	out.Multi = m
}

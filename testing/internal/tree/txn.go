package tree

import "github.com/paddock-zk/paddock/internal/wire"

// Caller is who sent a request.
type Caller struct {
	Session int64
	IDs     []ID
}

// Txn is one step of every replica's state. A refused request is a step too:
// it has a zxid and changes nothing.
type Txn struct {
	Zxid    int64
	Time    int64 // milliseconds since 1970
	Session int64 // whose request it was, 0 for the server's own
	// Op is the request's type.
	Op wire.Op

	change change
}

// change is what a Txn does to a tree.
type change interface {
	// apply sets out.Result and adds to out.Events.
	apply(t *Tree, txn *Txn, out *Outcome)
}

// Event is a change that watches can see. The parent of a created or deleted
// node changed its list of children, which has no event of its own here.
type Event struct {
	Type wire.EventType
	Path string
	// ACL says who may hear of it, by the right to read, and ParentACL who may
	// hear that the parent's children changed.
	ACL, ParentACL []wire.ACL
}

// Outcome is what a Txn did.
type Outcome struct {
	// Result has the Op OpError if the request was refused.
	Result wire.MultiResult
	// Multi has the results of an OpMulti, also if it was refused.
	Multi []wire.MultiResult
	// Events are in the order in which they happened.
	Events []Event
}

// Prepare judges a write against the state of t and returns its transaction.
// It changes nothing and keeps nothing of req. A nil req of a type that has a
// body stands for one that could not be read.
func (t *Tree) Prepare(zxid, now int64, who Caller, op wire.Op, req wire.Record) *Txn {
	p := prep{tree: t, zxid: zxid, now: now, who: who}
	txn := &Txn{Zxid: zxid, Time: now, Session: who.Session, Op: op}
	change, code := p.prepare(op, req)
	if code != wire.CodeOK {
		change = refusal{code}
	}
	txn.change = change
	return txn
}

// Refuse returns the transaction of a write that is refused before its
// contents matter.
func Refuse(zxid, now int64, who Caller, op wire.Op, code wire.Code) *Txn {
	return &Txn{Zxid: zxid, Time: now, Session: who.Session, Op: op, change: refusal{code}}
}

// Apply carries txn out.
func (t *Tree) Apply(txn *Txn) Outcome {
	var out Outcome
	txn.change.apply(t, txn, &out)
	return out
}

// prep turns one request into a change.
type prep struct {
	tree *Tree
	zxid int64
	now  int64
	who  Caller
	// pending has the nodes as the earlier operations of the same multi leave
	// them, nil for deleted ones. It is nil outside a multi.
	pending map[string]*record
	growth  int // how many bytes they add at most
}

// grow counts n bytes that are to be added, and reports whether there is room.
func (p *prep) grow(n int) bool {
	p.growth += n
	return p.tree.Limit == 0 || p.tree.size+int64(p.growth) <= p.tree.Limit
}

// record is what preparing needs to know of a node.
type record struct {
	acl                         []wire.ACL
	owner                       int64
	children                    int
	version, cversion, aversion int32
}

// record returns a copy of the node's record, nil without a node.
func (p *prep) record(path string) *record {
	if path == "" {
		path = rootPath
	}
	if r, ok := p.pending[path]; ok {
		if r == nil {
			return nil
		}
		c := *r
		return &c
	}
	n := p.tree.node(path)
	if n == nil {
		return nil
	}
	return &record{
		acl: n.acl, owner: n.owner, children: len(n.children),
		version: n.version, cversion: n.cversion, aversion: n.aversion,
	}
}

// put keeps a record for the operations that follow in the same multi.
func (p *prep) put(path string, r *record) {
	if p.pending == nil {
		return
	}
	if path == "" {
		path = rootPath
	}
	p.pending[path] = r
}

func (p *prep) prepare(op wire.Op, req wire.Record) (change, wire.Code) {
	switch req := req.(type) {
	case *wire.CreateRequest:
		return p.create(op, req, 0)
	case *wire.CreateTTLRequest:
		return p.create(op, &req.CreateRequest, req.TTL)
	case *wire.SetDataRequest:
		return p.setData(req)
	case *wire.SetACLRequest:
		return p.setACL(req)
	case *wire.PathVersionRequest:
		if op == wire.OpCheck {
			return p.check(req)
		}
		return p.delete(req)
	case *wire.MultiRequest:
		return p.multi(req)
	case *wire.PathRequest:
		return p.deleteContainer(req)
	case *SetSequenceRequest:
		return p.setSequence(req)
	}
	switch op {
	case wire.OpCreateSession:
		return nothing{}, wire.CodeOK
	case wire.OpCloseSession:
		return p.closeSession(), wire.CodeOK
	case wire.OpReconfig:
		if p.tree.Reconfig {
			return nil, wire.CodeUnimplemented
		}
		return nil, wire.CodeReconfigDisabled
	}
	return nil, wire.CodeMarshallingError
}

// refusal is the change of a request that was refused.
type refusal struct{ code wire.Code }

func (c refusal) apply(_ *Tree, _ *Txn, out *Outcome) {
	out.Result = wire.MultiResult{Op: wire.OpError, Code: c.code}
}

// nothing is the change of a step that only counts.
type nothing struct{}

func (nothing) apply(_ *Tree, txn *Txn, out *Outcome) {
	out.Result = wire.MultiResult{Op: txn.Op}
}

// next returns the version that follows, and refuses an expected one that is
// not the present one. AnyVersion is always right.
func next(present, expected int32) (int32, wire.Code) {
	if expected != anyVersion && expected != present {
		return 0, wire.CodeBadVersion
	}
	return present + 1, wire.CodeOK
}

const anyVersion int32 = -1

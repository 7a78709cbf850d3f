package tree

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
)

// created adds a node.
type created struct {
	op    wire.Op
	path  string
	data  []byte
	acl   []wire.ACL
	owner int64
	// cversion is the parent's count of children ever made, this one included.
	cversion int32
}

func (p *prep) create(op wire.Op, req *wire.CreateRequest, ttl int64) (change, wire.Code) {
	owner, code := p.owner(op, req.Flags, ttl)
	if code != wire.CodeOK {
		return nil, code
	}
	slash := strings.LastIndexByte(req.Path, '/')
	if slash < 0 || strings.IndexByte(req.Path, 0) >= 0 {
		return nil, wire.CodeBadArguments
	}
	acl, code := p.tree.fixACL(req.ACL, p.who.IDs)
	if code != wire.CodeOK {
		return nil, code
	}
	parentPath, path := req.Path[:slash], req.Path
	parent := p.record(parentPath)
	if parent == nil {
		return nil, wire.CodeNoNode
	}
	if !Allowed(parent.acl, wire.PermCreate, p.who.IDs) {
		return nil, wire.CodeNoAuth
	}
	if sequential(req.Flags) {
		path += fmt.Sprintf("%010d", parent.cversion)
	}
	if !validPath(path) {
		return nil, wire.CodeBadArguments
	}
	if p.record(path) != nil {
		return nil, wire.CodeNodeExists
	}
	if isSession(parent.owner) {
		return nil, wire.CodeNoChildrenForEphemerals
	}
	if !p.grow(len(path) + len(req.Data)) {
		return nil, wire.CodeQuotaExceeded
	}
	parent.cversion++
	parent.children++
	p.put(parentPath, parent)
	p.put(path, &record{acl: acl, owner: owner})
	return &created{op, path, bytes.Clone(req.Data), acl, owner, parent.cversion}, wire.CodeOK
}

// owner returns the new node's ephemeralOwner. It follows from the request's
// type first: only createContainer makes containers, whatever the flags say.
func (p *prep) owner(op wire.Op, flags wire.Flags, ttl int64) (int64, wire.Code) {
	if !Known(flags) {
		return 0, wire.CodeBadArguments
	}
	if timed(flags) && p.tree.NoTTL {
		return 0, wire.CodeUnimplemented
	}
	if timed(flags) != (op == wire.OpCreateTTL) {
		return 0, wire.CodeBadArguments
	}
	switch {
	case timed(flags):
		owner, ok := ownerTTL(ttl)
		if !ok {
			return 0, wire.CodeBadArguments
		}
		return owner, wire.CodeOK
	case op == wire.OpCreateContainer:
		return OwnerContainer, wire.CodeOK
	case flags == wire.FlagEphemeral || flags == wire.FlagEphemeralSequence:
		return p.who.Session, wire.CodeOK
	}
	return 0, wire.CodeOK
}

// Known reports whether there is such a mode.
func Known(f wire.Flags) bool {
	return f >= wire.FlagPersistent && f <= wire.FlagPersistentSequenceTTL
}

func timed(f wire.Flags) bool {
	return f == wire.FlagPersistentTTL || f == wire.FlagPersistentSequenceTTL
}

func sequential(f wire.Flags) bool {
	return f == wire.FlagSequence || f == wire.FlagEphemeralSequence || f == wire.FlagPersistentSequenceTTL
}

func (c *created) apply(t *Tree, txn *Txn, out *Outcome) {
	n := &node{
		data: c.data, acl: c.acl, owner: c.owner,
		czxid: txn.Zxid, mzxid: txn.Zxid, pzxid: txn.Zxid,
		ctime: txn.Time, mtime: txn.Time,
	}
	t.add(c.path, n)
	parentPath, _ := split(c.path)
	// The count never goes back: at its end, where adding one gives a negative
	// number, it stays, and so does the pzxid.
	parent := t.node(parentPath)
	if c.cversion > parent.cversion {
		parent.cversion = c.cversion
		parent.pzxid = txn.Zxid
	}
	out.Events = append(out.Events, Event{wire.EventNodeCreated, c.path, c.acl, parent.acl})
	out.Result = wire.MultiResult{Op: c.op, Path: c.path, Stat: t.stat(n)}
}

// OpSetSequence is the type of a SetSequenceRequest.
const OpSetSequence wire.Op = -1000

// SetSequenceRequest presets the number that the next sequential child of Path
// gets. No client can send it.
type SetSequenceRequest struct {
	Path string
	Next int32
}

// Encode implements wire.Record.
func (r *SetSequenceRequest) Encode(e *wire.Encoder) {
	e.String(r.Path)
	e.Int32(r.Next)
}

// Decode implements wire.Record.
func (r *SetSequenceRequest) Decode(d *wire.Decoder) {
	r.Path = d.String()
	r.Next = d.Int32()
}

// sequenceSet presets a parent's counter.
type sequenceSet struct {
	path string
	next int32
}

func (p *prep) setSequence(req *SetSequenceRequest) (change, wire.Code) {
	if p.record(req.Path) == nil {
		return nil, wire.CodeNoNode
	}
	return sequenceSet{req.Path, req.Next}, wire.CodeOK
}

func (c sequenceSet) apply(t *Tree, txn *Txn, out *Outcome) {
	t.node(c.path).cversion = c.next
	out.Result = wire.MultiResult{Op: txn.Op, Path: c.path}
}

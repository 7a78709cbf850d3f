package tree

import (
	"bytes"

	"github.com/paddock-zk/paddock/internal/wire"
)

// dataSet replaces a node's data.
type dataSet struct {
	path    string
	data    []byte
	version int32
}

func (p *prep) setData(req *wire.SetDataRequest) (change, wire.Code) {
	if !validPath(req.Path) {
		return nil, wire.CodeBadArguments
	}
	r := p.record(req.Path)
	if r == nil {
		return nil, wire.CodeNoNode
	}
	if !Allowed(r.acl, wire.PermWrite, p.who.IDs) {
		return nil, wire.CodeNoAuth
	}
	version, code := next(r.version, req.Version)
	if code != wire.CodeOK {
		return nil, code
	}
	if !p.grow(len(req.Data)) {
		return nil, wire.CodeQuotaExceeded
	}
	r.version = version
	p.put(req.Path, r)
	return &dataSet{req.Path, bytes.Clone(req.Data), version}, wire.CodeOK
}

func (c *dataSet) apply(t *Tree, txn *Txn, out *Outcome) {
	n := t.node(c.path)
	t.size += int64(len(c.data) - len(n.data))
	n.data, n.version, n.mzxid, n.mtime = c.data, c.version, txn.Zxid, txn.Time
	out.Events = append(out.Events, Event{Type: wire.EventNodeDataChanged, Path: c.path, ACL: n.acl})
	out.Result = wire.MultiResult{Op: wire.OpSetData, Stat: t.stat(n)}
}

// check compares a node's version.
func (p *prep) check(req *wire.PathVersionRequest) (change, wire.Code) {
	if !validPath(req.Path) {
		return nil, wire.CodeBadArguments
	}
	r := p.record(req.Path)
	if r == nil {
		return nil, wire.CodeNoNode
	}
	if !Allowed(r.acl, wire.PermRead, p.who.IDs) {
		return nil, wire.CodeNoAuth
	}
	if _, code := next(r.version, req.Version); code != wire.CodeOK {
		return nil, code
	}
	return checked{}, wire.CodeOK
}

// checked is the change of a check that held.
type checked struct{}

func (checked) apply(_ *Tree, _ *Txn, out *Outcome) {
	out.Result = wire.MultiResult{Op: wire.OpCheck}
}

// Exists returns a node's metadata.
func (t *Tree) Exists(path string) (wire.Stat, wire.Code) {
	n := t.node(path)
	if n == nil {
		return wire.Stat{}, wire.CodeNoNode
	}
	return t.stat(n), wire.CodeOK
}

// ExistsFor is Exists for a client, which from ZooKeeper 3.9 on needs the right
// to read. A refusal says that the node exists.
func (t *Tree) ExistsFor(who Caller, path string) (wire.Stat, wire.Code) {
	n := t.node(path)
	if n != nil && t.Release >= Release393 && !Allowed(n.acl, wire.PermRead, who.IDs) {
		return wire.Stat{}, wire.CodeNoAuth
	}
	return t.Exists(path)
}

// Get returns a node's data, which must not be changed, and metadata.
func (t *Tree) Get(who Caller, path string) ([]byte, wire.Stat, wire.Code) {
	n, code := t.readable(who, path)
	if code != wire.CodeOK {
		return nil, wire.Stat{}, code
	}
	return n.data, t.stat(n), wire.CodeOK
}

// readable returns the node at path if the caller may read it.
func (t *Tree) readable(who Caller, path string) (*node, wire.Code) {
	n := t.node(path)
	if n == nil {
		return nil, wire.CodeNoNode
	}
	if !Allowed(n.acl, wire.PermRead, who.IDs) {
		return nil, wire.CodeNoAuth
	}
	return n, wire.CodeOK
}

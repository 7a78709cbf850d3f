package tree

import (
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
)

// deleted removes nodes: one, or those that a session owned.
type deleted struct {
	op    wire.Op
	paths []string
}

func (p *prep) delete(req *wire.PathVersionRequest) (change, wire.Code) {
	parentPath, code := parentOf(req.Path)
	if code != wire.CodeOK {
		return nil, code
	}
	parent := p.record(parentPath)
	if parent == nil {
		return nil, wire.CodeNoNode
	}
	if !Allowed(parent.acl, wire.PermDelete, p.who.IDs) {
		return nil, wire.CodeNoAuth
	}
	r := p.record(req.Path)
	if r == nil {
		return nil, wire.CodeNoNode
	}
	if _, code := next(r.version, req.Version); code != wire.CodeOK {
		return nil, code
	}
	if r.children > 0 {
		return nil, wire.CodeNotEmpty
	}
	return p.removal(wire.OpDelete, req.Path, parentPath, parent), wire.CodeOK
}

// deleteContainer removes a container or a node with a TTL that has no
// children. Only the server itself sends this request. Before ZooKeeper 3.9.6 a
// client could send it, too.
func (p *prep) deleteContainer(req *wire.PathRequest) (change, wire.Code) {
	parentPath, code := parentOf(req.Path)
	if code != wire.CodeOK {
		return nil, code
	}
	if p.who.Session != 0 && p.tree.Release != Release393 {
		return nil, wire.CodeBadArguments
	}
	r := p.record(req.Path)
	if r == nil {
		return nil, wire.CodeNoNode
	}
	if r.children > 0 {
		return nil, wire.CodeNotEmpty
	}
	if isSession(r.owner) {
		return nil, wire.CodeBadVersion
	}
	return p.removal(wire.OpDeleteContainer, req.Path, parentPath, p.record(parentPath)), wire.CodeOK
}

func (p *prep) removal(op wire.Op, path, parentPath string, parent *record) change {
	parent.children--
	p.put(parentPath, parent)
	p.put(path, nil)
	return &deleted{op, []string{path}}
}

// parentOf returns the parent of a node that is to be deleted, and refuses
// paths and nodes for which that is never possible.
func parentOf(path string) (string, wire.Code) {
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", wire.CodeBadArguments
	}
	switch path {
	case rootPath, systemPath, quotaPath, configPath:
		return "", wire.CodeBadArguments
	}
	return path[:slash], wire.CodeOK
}

// closeSession removes what the session owns, in the order of the paths.
func (p *prep) closeSession() change {
	return &deleted{wire.OpCloseSession, p.tree.Ephemerals(p.who.Session)}
}

func (c *deleted) apply(t *Tree, txn *Txn, out *Outcome) {
	for _, path := range c.paths {
		parentPath, _ := split(path)
		parent := t.node(parentPath)
		out.Events = append(out.Events, Event{wire.EventNodeDeleted, path, t.node(path).acl, parent.acl})
		t.remove(path)
		parent.pzxid = txn.Zxid
	}
	out.Result = wire.MultiResult{Op: c.op}
}

// Ephemerals lists the nodes that a session owns, sorted.
func (t *Tree) Ephemerals(session int64) []string {
	paths := make([]string, 0, len(t.ephemerals[session]))
	for path := range t.ephemerals[session] {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Sweeps reports whether there are containers or nodes with a time to live.
func (t *Tree) Sweeps() bool { return len(t.swept) > 0 }

// Sweepable lists the nodes that the server should remove, sorted. now is in
// milliseconds since 1970. These are containers that had children and have none
// left, and nodes without children whose time to live is over.
//
// Source: ZooKeeper ContainerManager.getCandidates.
func (t *Tree) Sweepable(now int64) []string {
	var paths []string
	for path := range t.swept {
		n := t.nodes[path]
		switch {
		case len(n.children) > 0:
		case isTTL(n.owner):
			if now-n.mtime > n.owner&^ownerTTLMask {
				paths = append(paths, path)
			}
		case n.cversion > 0:
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

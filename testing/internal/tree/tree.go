package tree

import (
	"maps"
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Tree is one replica's data. Make it with New.
type Tree struct {
	nodes map[string]*node
	// ephemerals has the nodes of each session that owns some.
	ephemerals map[int64]map[string]struct{}
	// swept are the containers and the nodes with a TTL.
	swept map[string]struct{}
	size  int64 // of all paths and data

	// Limit bounds Size; 0 is no bound.
	Limit int64
	// Reconfig is whether reconfig requests are looked at.
	Reconfig bool
	// NoTTL is whether nodes with a time to live are refused.
	NoTTL bool
	// SASL and X509 are whether access lists may have these schemes.
	SASL, X509 bool
	// Containers is whether clients see of a container that it is one.
	Containers bool
	// Release is the ZooKeeper that the tree is like.
	Release Release
}

// node is a node without its name.
type node struct {
	data     []byte
	acl      []wire.ACL
	children []string // names, sorted
	owner    int64    // a session, or an owner that stands for a container or a TTL

	czxid, mzxid, pzxid         int64
	ctime, mtime                int64
	version, cversion, aversion int32 // cversion counts the children ever made
}

// The nodes that every tree has. ZooKeeper refuses to delete them.
const (
	rootPath   = "/"
	systemPath = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	configPath = "/zookeeper/config"
)

// New returns a tree as a new server has it.
func New() *Tree {
	t := &Tree{
		nodes:      make(map[string]*node),
		ephemerals: make(map[int64]map[string]struct{}),
		swept:      make(map[string]struct{}),
	}
	t.nodes[rootPath] = &node{data: []byte{}, acl: openACL, children: []string{"zookeeper"}}
	t.nodes[systemPath] = &node{data: []byte{}, acl: openACL, children: []string{"config", "quota"}}
	t.nodes[quotaPath] = &node{data: []byte{}, acl: openACL}
	// The server sets the list of the config node with an unchecked version, hence the -1.
	t.nodes[configPath] = &node{data: []byte{}, acl: readACL, aversion: -1}
	for path := range t.nodes {
		t.size += int64(len(path))
	}
	return t
}

// node returns the node at path, nil without one. As in ZooKeeper the empty
// path is the root.
func (t *Tree) node(path string) *node {
	if path == "" {
		path = rootPath
	}
	return t.nodes[path]
}

// stat returns a node's metadata as clients see it. That a node has a time to live they do
// not see, nor, unless Containers is set, that it is a container.
func (t *Tree) stat(n *node) wire.Stat {
	children := int32(len(n.children))
	owner := n.owner
	if !isSession(owner) && (!t.Containers || owner != OwnerContainer) {
		owner = 0
	}
	return wire.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Pzxid: n.pzxid,
		Ctime: n.ctime, Mtime: n.mtime,
		// Clients see the changes to the list of children: each child that was
		// made counts once, and each that is gone once more.
		Version: n.version, Cversion: n.cversion*2 - children, Aversion: n.aversion,
		EphemeralOwner: owner, DataLength: int32(len(n.data)), NumChildren: children,
	}
}

// add puts a node into the tree, below a parent that exists.
func (t *Tree) add(path string, n *node) {
	parent, name := split(path)
	p := t.node(parent)
	if i, found := slices.BinarySearch(p.children, name); !found {
		p.children = slices.Insert(p.children, i, name)
	}
	t.nodes[path] = n
	t.size += int64(len(path) + len(n.data))
	switch {
	case isSession(n.owner):
		own := t.ephemerals[n.owner]
		if own == nil {
			own = make(map[string]struct{})
			t.ephemerals[n.owner] = own
		}
		own[path] = struct{}{}
	case n.owner != 0:
		t.swept[path] = struct{}{}
	}
}

// remove takes a node without children out of the tree.
func (t *Tree) remove(path string) {
	n := t.nodes[path]
	parent, name := split(path)
	p := t.node(parent)
	if i, found := slices.BinarySearch(p.children, name); found {
		p.children = slices.Delete(p.children, i, i+1)
	}
	t.size -= int64(len(path) + len(n.data))
	delete(t.nodes, path)
	delete(t.swept, path)
	if own := t.ephemerals[n.owner]; own != nil {
		delete(own, path)
		if len(own) == 0 {
			delete(t.ephemerals, n.owner)
		}
	}
}

// Len returns the number of nodes.
func (t *Tree) Len() int { return len(t.nodes) }

// Size is how many bytes all paths and data have.
func (t *Tree) Size() int64 { return t.size }

// EphemeralCount returns the number of ephemeral nodes.
func (t *Tree) EphemeralCount() int {
	n := 0
	for _, paths := range t.ephemerals {
		n += len(paths)
	}
	return n
}

// SetConfig gives the config node its data, before anything else happens.
func (t *Tree) SetConfig(data string) {
	n := t.nodes[configPath]
	t.size += int64(len(data) - len(n.data))
	n.data = []byte(data)
}

// Sessions lists the sessions that own nodes, sorted.
func (t *Tree) Sessions() []int64 { return slices.Sorted(maps.Keys(t.ephemerals)) }

// Walk calls fn for each node, parents before children and siblings in order.
// Unlike the one in stat, owner tells containers and times to live.
func (t *Tree) Walk(fn func(path string, data []byte, stat wire.Stat, owner int64)) {
	var walk func(path string)
	walk = func(path string) {
		n := t.nodes[path]
		fn(path, n.data, t.stat(n), n.owner)
		for _, name := range n.children {
			walk(join(path, name))
		}
	}
	walk(rootPath)
}

func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

func join(parent, name string) string {
	if parent == rootPath {
		return rootPath + name
	}
	return parent + "/" + name
}

// Clone returns a copy that shares nothing that Apply changes.
func (t *Tree) Clone() *Tree {
	c := &Tree{
		nodes:      make(map[string]*node, len(t.nodes)),
		ephemerals: make(map[int64]map[string]struct{}, len(t.ephemerals)),
		swept:      maps.Clone(t.swept),
		size:       t.size,
		Limit:      t.Limit,
		Reconfig:   t.Reconfig,
		NoTTL:      t.NoTTL,
		Release:    t.Release,
	}
	for path, n := range t.nodes {
		copied := *n
		copied.children = slices.Clone(n.children)
		c.nodes[path] = &copied
	}
	for session, paths := range t.ephemerals {
		c.ephemerals[session] = maps.Clone(paths)
	}
	return c
}

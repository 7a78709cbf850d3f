package tree

import (
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Children returns the names below a node, sorted, and its metadata. The
// slice is the tree's own and good until the next Apply.
func (t *Tree) Children(who Caller, path string) ([]string, wire.Stat, wire.Code) {
	n, code := t.readable(who, path)
	if code != wire.CodeOK {
		return nil, wire.Stat{}, code
	}
	return n.children, t.stat(n), wire.CodeOK
}

// CountBelow returns how many nodes stand below a node, at any depth.
func (t *Tree) CountBelow(who Caller, path string) (int32, wire.Code) {
	if _, code := t.readable(who, path); code != wire.CodeOK {
		return 0, code
	}
	if path == rootPath {
		return int32(len(t.nodes) - 1), wire.CodeOK
	}
	var count int32
	for p := range t.nodes {
		if len(p) > len(path) && p[len(path)] == '/' && strings.HasPrefix(p, path) {
			count++
		}
	}
	return count, wire.CodeOK
}

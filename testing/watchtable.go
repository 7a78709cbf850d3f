package zktest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// watches are those of one member, guarded by ensemble.mu. As in ZooKeeper
// there are two tables: what exists and getData set, and what getChildren sets;
// persistent watches stand in both.
type watches struct{ data, child watchTable }

func newWatches() watches { return watches{newWatchTable(), newWatchTable()} }

// watchMode is how a watch ends, and how far it sees.
type watchMode int

const (
	watchOnce watchMode = iota
	watchPersistent
	watchRecursive
)

// watchTable has at most one watch of each connection on each path; the mode
// set last counts.
//
// Source: ZooKeeper WatchManager, WatcherModeManager.
type watchTable struct {
	byPath    map[string]map[*conn]watchMode
	byConn    map[*conn]map[string]struct{}
	recursive int // how many of them are recursive
	n         int // how many there are
}

func newWatchTable() watchTable {
	return watchTable{
		byPath: make(map[string]map[*conn]watchMode),
		byConn: make(map[*conn]map[string]struct{}),
	}
}

func (t *watchTable) add(path string, c *conn, mode watchMode) {
	t.remove(path, c)
	watchers := t.byPath[path]
	if watchers == nil {
		watchers = make(map[*conn]watchMode)
		t.byPath[path] = watchers
	}
	watchers[c] = mode
	paths := t.byConn[c]
	if paths == nil {
		paths = make(map[string]struct{})
		t.byConn[c] = paths
	}
	paths[path] = struct{}{}
	t.n++
	if mode == watchRecursive {
		t.recursive++
	}
	c.m.e.wakeWaitersLocked()
}

// watched reports whether anybody watches path. ZooKeeper 3.8.0 takes this
// for the answer to whether one connection does.
func (t *watchTable) watched(path string) bool { return len(t.byPath[path]) > 0 }

func (t *watchTable) remove(path string, c *conn) bool {
	mode, ok := t.byPath[path][c]
	if !ok {
		return false
	}
	if mode == watchRecursive {
		t.recursive--
	}
	t.n--
	delete(t.byPath[path], c)
	if len(t.byPath[path]) == 0 {
		delete(t.byPath, path)
	}
	delete(t.byConn[c], path)
	if len(t.byConn[c]) == 0 {
		delete(t.byConn, c)
	}
	return true
}

func (t *watchTable) drop(c *conn) {
	for path := range t.byConn[c] {
		t.remove(path, c)
	}
}

// trigger collects who is to hear of an event on path, and removes the watches
// that are good for one event only. Recursive ones hear what happens below
// their path too, but nothing about lists of children.
func (t *watchTable) trigger(path string, typ wire.EventType, to map[*conn]struct{}) {
	for c, mode := range t.byPath[path] {
		if mode == watchRecursive && typ == wire.EventNodeChildrenChanged {
			continue
		}
		to[c] = struct{}{}
		if mode == watchOnce {
			t.remove(path, c)
		}
	}
	if t.recursive == 0 || typ == wire.EventNodeChildrenChanged {
		return
	}
	for above := path; above != "/"; {
		above = above[:max(1, strings.LastIndexByte(above, '/'))]
		for c, mode := range t.byPath[above] {
			if mode == watchRecursive {
				to[c] = struct{}{}
			}
		}
	}
}

// fireLocked tells those who watch what changed.
//
// Source: ZooKeeper DataTree.createNode, deleteNode, setData.
func (w *watches) fireLocked(ev tree.Event) {
	if len(w.data.byPath) == 0 && len(w.child.byPath) == 0 {
		return
	}
	to := make(map[*conn]struct{})
	w.data.trigger(ev.Path, ev.Type, to)
	if ev.Type == wire.EventNodeDeleted {
		w.child.trigger(ev.Path, ev.Type, to)
	}
	send(to, ev.Type, ev.Path, ev.ACL)
	if ev.Type == wire.EventNodeDataChanged {
		return
	}
	clear(to)
	parent := ev.Path[:max(1, strings.LastIndexByte(ev.Path, '/'))]
	w.child.trigger(parent, wire.EventNodeChildrenChanged, to)
	send(to, wire.EventNodeChildrenChanged, parent, ev.ParentACL)
}

// send notifies connections in the order in which they were accepted, save
// those whose clients may not read the node; their watches are used up too.
//
// Source: ZooKeeper NIOServerCnxn.process.
func send(to map[*conn]struct{}, typ wire.EventType, path string, acl []wire.ACL) {
	if len(to) == 0 {
		return
	}
	conns := slices.SortedFunc(maps.Keys(to), byNum)
	for _, c := range conns {
		if tree.Allowed(acl, wire.PermRead, c.ids) {
			c.notifyLocked(typ, path)
		}
	}
}

func byNum(a, b *conn) int { return cmp.Compare(a.num, b.num) }

// notifyLocked queues one event.
func (c *conn) notifyLocked(typ wire.EventType, path string) {
	c.m.notifications++
	c.sendLocked(
		&wire.ReplyHeader{Xid: wire.XidNotification, Zxid: -1},
		&wire.WatcherEvent{Type: typ, State: wire.StateSyncConnected, Path: path},
	)
}

func (w *watches) dropLocked(c *conn) {
	w.data.drop(c)
	w.child.drop(c)
}

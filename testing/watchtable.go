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
// there are two tables: what exists and getData set, and what getChildren sets.
// Persistent watches stand in both; recursive ones did so in ZooKeeper 3.8.
type watches struct {
	data, child watchTable
	release     tree.Release
}

func newWatches(release tree.Release) watches {
	return watches{newWatchTable(release), newWatchTable(release), release}
}

// watchModes are the ways in which a connection watches a path.
type watchModes uint8

const (
	watchOnce watchModes = 1 << iota
	watchPersistent
	watchRecursive

	watchAll = watchOnce | watchPersistent | watchRecursive
)

// watchTable has how connections watch paths.
//
// Source: ZooKeeper WatchManager; WatcherModeManager of 3.8, WatchStats of 3.9.
type watchTable struct {
	byPath    map[string]map[*conn]watchModes
	byConn    map[*conn]map[string]struct{}
	recursive int  // how many of them are recursive
	n         int  // how many pairs of a path and a connection there are
	one       bool // the mode set last takes the place of the others, as in ZooKeeper 3.8
}

func newWatchTable(release tree.Release) watchTable {
	return watchTable{
		byPath: make(map[string]map[*conn]watchModes),
		byConn: make(map[*conn]map[string]struct{}),
		one:    release < tree.Release393,
	}
}

func (t *watchTable) add(path string, c *conn, mode watchModes) {
	modes := t.byPath[path][c]
	if t.one {
		modes = 0
	}
	t.set(path, c, modes|mode)
	c.m.e.wakeWaitersLocked()
}

// set replaces all modes of a connection on a path; 0 is no watch.
func (t *watchTable) set(path string, c *conn, modes watchModes) {
	before := t.byPath[path][c]
	t.recursive += int(modes&watchRecursive/watchRecursive) - int(before&watchRecursive/watchRecursive)
	switch {
	case before == modes:
	case modes == 0:
		t.n--
		removeKey(t.byPath, path, c)
		removeKey(t.byConn, c, path)
	default:
		if before == 0 {
			t.n++
			addKey(t.byConn, c, path, struct{}{})
		}
		addKey(t.byPath, path, c, modes)
	}
}

func addKey[A, B comparable, V any](m map[A]map[B]V, a A, b B, v V) {
	if m[a] == nil {
		m[a] = make(map[B]V)
	}
	m[a][b] = v
}

func removeKey[A, B comparable, V any](m map[A]map[B]V, a A, b B) {
	delete(m[a], b)
	if len(m[a]) == 0 {
		delete(m, a)
	}
}

// watched reports whether any connection watches path. ZooKeeper 3.8 gives this
// answer when asked whether one connection does.
func (t *watchTable) watched(path string) bool { return len(t.byPath[path]) > 0 }

// remove takes modes away and reports whether there was one of them.
func (t *watchTable) remove(path string, c *conn, modes watchModes) bool {
	before := t.byPath[path][c]
	t.set(path, c, before&^modes)
	return before&modes != 0
}

func (t *watchTable) drop(c *conn) {
	for path := range t.byConn[c] {
		t.set(path, c, 0)
	}
}

// trigger collects the connections that have to hear of an event on path, and
// removes the watches that are for one event only. Recursive watches also get
// the events below their path, but none about lists of children.
func (t *watchTable) trigger(path string, typ wire.EventType, to map[*conn]struct{}) {
	for c, modes := range t.byPath[path] {
		if modes == watchRecursive && typ == wire.EventNodeChildrenChanged {
			continue
		}
		to[c] = struct{}{}
		t.remove(path, c, watchOnce)
	}
	if t.recursive == 0 || typ == wire.EventNodeChildrenChanged {
		return
	}
	for above := path; above != "/"; {
		above = above[:max(1, strings.LastIndexByte(above, '/'))]
		for c, modes := range t.byPath[above] {
			if modes&watchRecursive != 0 {
				to[c] = struct{}{}
			}
		}
	}
}

// fireLocked sends the events of a change to the connections that watch.
//
// Source: ZooKeeper DataTree.createNode, deleteNode, setData.
func (w *watches) fireLocked(ev tree.Event, zxid int64) {
	if len(w.data.byPath) == 0 && len(w.child.byPath) == 0 {
		return
	}
	to := make(map[*conn]struct{})
	w.data.trigger(ev.Path, ev.Type, to)
	if ev.Type == wire.EventNodeDeleted {
		w.child.trigger(ev.Path, ev.Type, to)
	}
	send(to, ev.Type, ev.Path, ev.ACL, zxid)
	if ev.Type == wire.EventNodeDataChanged {
		return
	}
	clear(to)
	parent := ev.Path[:max(1, strings.LastIndexByte(ev.Path, '/'))]
	w.child.trigger(parent, wire.EventNodeChildrenChanged, to)
	send(to, wire.EventNodeChildrenChanged, parent, ev.ParentACL, zxid)
}

// send notifies connections in the order in which they were accepted. It leaves
// out those whose clients may not read the node; their watches are used up too.
//
// Source: ZooKeeper NIOServerCnxn.process.
func send(to map[*conn]struct{}, typ wire.EventType, path string, acl []wire.ACL, zxid int64) {
	if len(to) == 0 {
		return
	}
	conns := slices.SortedFunc(maps.Keys(to), byNum)
	for _, c := range conns {
		if tree.Allowed(acl, wire.PermRead, c.ids) {
			c.notifyLocked(typ, path, zxid)
		}
	}
}

func byNum(a, b *conn) int { return cmp.Compare(a.num, b.num) }

// noZxid is the zxid of events that tell of no transaction: of all events
// before ZooKeeper 3.9, and of those that answer setWatches.
const noZxid int64 = -1

// notifyLocked queues one event.
func (c *conn) notifyLocked(typ wire.EventType, path string, zxid int64) {
	c.m.notifications++
	c.sendLocked(
		&wire.ReplyHeader{Xid: wire.XidNotification, Zxid: zxid},
		&wire.WatcherEvent{Type: typ, State: wire.StateSyncConnected, Path: path},
	)
}

func (w *watches) dropLocked(c *conn) {
	w.data.drop(c)
	w.child.drop(c)
}

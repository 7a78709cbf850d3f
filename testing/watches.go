package zktest

import (
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// setWatchesLocked renews watches after a reconnect. For a node that has
// changed since the client looked last it sends the event at once; otherwise it
// sets the watch. A list that is null is an error, after the lists before it
// were handled.
//
// Source: ZooKeeper DataTree.setWatches.
func (c *conn) setWatchesLocked(req *wire.SetWatchesRequest) (wire.Record, wire.Code) {
	w, since := &c.m.watches, req.RelativeZxid
	if !c.m.watchableLocked(len(req.Data) + len(req.Exist) + len(req.Child)) {
		return nil, wire.CodeQuotaExceeded
	}
	if req.Data == nil {
		return nil, wire.CodeMarshallingError
	}
	for _, path := range req.Data {
		switch stat, code := c.m.data.Exists(path); {
		case code != wire.CodeOK:
			c.tellLocked(wire.EventNodeDeleted, path)
		case stat.Mzxid > since:
			c.tellLocked(wire.EventNodeDataChanged, path)
		default:
			w.data.add(path, c, watchOnce)
		}
	}
	if req.Exist == nil {
		return nil, wire.CodeMarshallingError
	}
	for _, path := range req.Exist {
		if _, code := c.m.data.Exists(path); code == wire.CodeOK {
			c.tellLocked(wire.EventNodeCreated, path)
		} else {
			w.data.add(path, c, watchOnce)
		}
	}
	if req.Child == nil {
		return nil, wire.CodeMarshallingError
	}
	for _, path := range req.Child {
		switch stat, code := c.m.data.Exists(path); {
		case code != wire.CodeOK:
			c.tellLocked(wire.EventNodeDeleted, path)
		case stat.Pzxid > since:
			c.tellLocked(wire.EventNodeChildrenChanged, path)
		default:
			w.child.add(path, c, watchOnce)
		}
	}
	return wire.Empty{}, wire.CodeOK
}

// tellLocked sends an event that answers setWatches. From ZooKeeper 3.9.6 on it
// is withheld from a client that may not read the node, as all others are.
func (c *conn) tellLocked(typ wire.EventType, path string) {
	_, code := c.m.data.ExistsFor(c.callerLocked(), path)
	if code != wire.CodeNoAuth || c.m.watches.release < tree.Release396 {
		c.notifyLocked(typ, javaText(path), noZxid)
	}
}

func (c *conn) setWatches2Locked(req *wire.SetWatches2Request) (wire.Record, wire.Code) {
	if !c.m.watchableLocked(2 * (len(req.Persistent) + len(req.PersistentRecursive))) {
		return nil, wire.CodeQuotaExceeded
	}
	res, code := c.setWatchesLocked(&req.SetWatchesRequest)
	if code != wire.CodeOK {
		return res, code
	}
	if req.Persistent == nil {
		return nil, wire.CodeMarshallingError
	}
	for _, path := range req.Persistent {
		c.m.watches.addPersistent(path, c, watchPersistent)
	}
	if req.PersistentRecursive == nil {
		return nil, wire.CodeMarshallingError
	}
	for _, path := range req.PersistentRecursive {
		c.m.watches.addPersistent(path, c, watchRecursive)
	}
	return res, code
}

func (w *watches) addPersistent(path string, c *conn, mode watchModes) {
	w.data.add(path, c, mode)
	if mode != watchRecursive || w.release < tree.Release393 {
		w.child.add(path, c, mode)
	}
}

func (c *conn) addWatchLocked(req *wire.AddWatchRequest) (wire.Record, wire.Code) {
	if !c.m.watchableLocked(2) {
		return nil, wire.CodeQuotaExceeded
	}
	switch req.Mode {
	case wire.AddWatchPersistent:
		c.m.watches.addPersistent(req.Path, c, watchPersistent)
	case wire.AddWatchPersistentRecursive:
		c.m.watches.addPersistent(req.Path, c, watchRecursive)
	default:
		return nil, wire.CodeMarshallingError
	}
	return &wire.ErrorResponse{}, wire.CodeOK
}

func (c *conn) checkWatchesLocked(req *wire.WatchesRequest) (wire.Record, wire.Code) {
	w := &c.m.watches
	data, child, code := w.kinds(req.Type)
	if code != wire.CodeOK {
		return nil, code
	}
	if w.release < tree.Release393 { // which asks whether anybody watches
		return found(data != 0 && w.data.watched(req.Path) || child != 0 && w.child.watched(req.Path))
	}
	return found(w.data.byPath[req.Path][c]&data|w.child.byPath[req.Path][c]&child != 0)
}

func (c *conn) removeWatchesLocked(req *wire.WatchesRequest) (wire.Record, wire.Code) {
	w := &c.m.watches
	data, child, code := w.kinds(req.Type)
	if code != wire.CodeOK {
		return nil, code
	}
	fromData, fromChild := w.data.remove(req.Path, c, data), w.child.remove(req.Path, c, child)
	return found(fromData || fromChild)
}

// kinds returns which watches of each table a request speaks of. ZooKeeper 3.8
// knows only the tables.
//
// Source: ZooKeeper DataTree.removeWatch, Watcher.WatcherType.
func (w *watches) kinds(typ int32) (data, child watchModes, code wire.Code) {
	one := watchAll
	if w.release >= tree.Release393 {
		one = watchOnce
	}
	switch {
	case typ == wire.WatchData:
		return one, 0, wire.CodeOK
	case typ == wire.WatchChildren:
		return 0, one, wire.CodeOK
	case typ == wire.WatchAny:
		return watchAll, watchAll, wire.CodeOK
	case w.release < tree.Release393:
	case typ == wire.WatchPersistent:
		return watchPersistent, watchPersistent, wire.CodeOK
	case typ == wire.WatchPersistentRecursive:
		return watchRecursive, 0, wire.CodeOK
	}
	return 0, 0, wire.CodeMarshallingError
}

// found is the answer to whether there is a watch.
func found(there bool) (wire.Record, wire.Code) {
	if !there {
		return nil, wire.CodeNoWatcher
	}
	return wire.Empty{}, wire.CodeOK
}

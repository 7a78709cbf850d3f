package zktest

import "github.com/paddock-zk/paddock/internal/wire"

// setWatchesLocked renews watches after a reconnect: what has changed since the
// client looked last is told at once, the rest is watched.
//
// Source: ZooKeeper DataTree.setWatches.
func (c *conn) setWatchesLocked(req *wire.SetWatchesRequest) (wire.Record, wire.Code) {
	w, since := &c.m.watches, req.RelativeZxid
	if !c.m.watchableLocked(len(req.Data) + len(req.Exist) + len(req.Child)) {
		return nil, wire.CodeQuotaExceeded
	}
	for _, path := range req.Data {
		switch stat, code := c.m.data.Exists(path); {
		case code != wire.CodeOK:
			c.notifyLocked(wire.EventNodeDeleted, path)
		case stat.Mzxid > since:
			c.notifyLocked(wire.EventNodeDataChanged, path)
		default:
			w.data.add(path, c, watchOnce)
		}
	}
	for _, path := range req.Exist {
		if _, code := c.m.data.Exists(path); code == wire.CodeOK {
			c.notifyLocked(wire.EventNodeCreated, path)
		} else {
			w.data.add(path, c, watchOnce)
		}
	}
	for _, path := range req.Child {
		switch stat, code := c.m.data.Exists(path); {
		case code != wire.CodeOK:
			c.notifyLocked(wire.EventNodeDeleted, path)
		case stat.Pzxid > since:
			c.notifyLocked(wire.EventNodeChildrenChanged, path)
		default:
			w.child.add(path, c, watchOnce)
		}
	}
	return wire.Empty{}, wire.CodeOK
}

func (c *conn) setWatches2Locked(req *wire.SetWatches2Request) (wire.Record, wire.Code) {
	if !c.m.watchableLocked(2 * (len(req.Persistent) + len(req.PersistentRecursive))) {
		return nil, wire.CodeQuotaExceeded
	}
	res, code := c.setWatchesLocked(&req.SetWatchesRequest)
	if code != wire.CodeOK {
		return res, code
	}
	for _, path := range req.Persistent {
		c.m.watches.addPersistent(path, c, watchPersistent)
	}
	for _, path := range req.PersistentRecursive {
		c.m.watches.addPersistent(path, c, watchRecursive)
	}
	return res, code
}

func (w *watches) addPersistent(path string, c *conn, mode watchMode) {
	w.data.add(path, c, mode)
	w.child.add(path, c, mode)
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
	data, child := w.data.watched(req.Path), w.child.watched(req.Path)
	return watchResult(req.Type, data, child, data || child)
}

func (c *conn) removeWatchesLocked(req *wire.WatchesRequest) (wire.Record, wire.Code) {
	w := &c.m.watches
	var data, child bool
	switch req.Type {
	case wire.WatchData:
		data = w.data.remove(req.Path, c)
	case wire.WatchChildren:
		child = w.child.remove(req.Path, c)
	case wire.WatchAny:
		data, child = w.data.remove(req.Path, c), w.child.remove(req.Path, c)
	}
	return watchResult(req.Type, data, child, data || child)
}

// watchResult picks the answer for a kind of watch.
func watchResult(typ int32, data, child, either bool) (wire.Record, wire.Code) {
	found := false
	switch typ {
	case wire.WatchData:
		found = data
	case wire.WatchChildren:
		found = child
	case wire.WatchAny:
		found = either
	default:
		return nil, wire.CodeMarshallingError
	}
	if !found {
		return nil, wire.CodeNoWatcher
	}
	return wire.Empty{}, wire.CodeOK
}

package zktest

import (
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
)

func (c *conn) getChildrenLocked(req *wire.PathWatchRequest) (wire.Record, wire.Code) {
	names, _, code := c.listLocked(req)
	return &wire.GetChildrenResponse{Children: names}, code
}

func (c *conn) getChildren2Locked(req *wire.PathWatchRequest) (wire.Record, wire.Code) {
	names, stat, code := c.listLocked(req)
	return &wire.GetChildren2Response{Children: names, Stat: stat}, code
}

func (c *conn) listLocked(req *wire.PathWatchRequest) ([]string, wire.Stat, wire.Code) {
	if req.Watch && !c.m.watchableLocked(1) {
		return nil, wire.Stat{}, wire.CodeQuotaExceeded
	}
	names, stat, code := c.m.data.Children(c.callerLocked(), req.Path)
	if code == wire.CodeOK && req.Watch {
		c.m.watches.child.add(req.Path, c, watchOnce)
	}
	return names, stat, code
}

func (c *conn) getAllChildrenNumberLocked(req *wire.PathRequest) (wire.Record, wire.Code) {
	n, code := c.m.data.CountBelow(c.callerLocked(), req.Path)
	return &wire.GetAllChildrenNumberResponse{Total: n}, code
}

func (c *conn) getEphemeralsLocked(req *wire.PathRequest) (wire.Record, wire.Code) {
	paths := c.m.data.Ephemerals(c.session.id)
	if prefix := req.Path; strings.TrimSpace(prefix) != "" && strings.TrimSpace(prefix) != "/" {
		kept := paths[:0]
		for _, p := range paths {
			if strings.HasPrefix(p, prefix) {
				kept = append(kept, p)
			}
		}
		paths = kept
	}
	return &wire.GetEphemeralsResponse{Paths: paths}, wire.CodeOK
}

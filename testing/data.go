package zktest

import (
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
)

func (c *conn) existsLocked(req *wire.PathWatchRequest) (wire.Record, wire.Code) {
	if strings.IndexByte(req.Path, 0) >= 0 {
		return nil, wire.CodeBadArguments
	}
	if req.Watch && !c.m.watchableLocked(1) {
		return nil, wire.CodeQuotaExceeded
	}
	stat, code := c.m.data.ExistsFor(c.callerLocked(), req.Path)
	if req.Watch && code != wire.CodeNoAuth {
		c.m.watches.data.add(req.Path, c, watchOnce)
	}
	return &wire.StatResponse{Stat: stat}, code
}

func (c *conn) getDataLocked(req *wire.PathWatchRequest) (wire.Record, wire.Code) {
	if req.Watch && !c.m.watchableLocked(1) {
		return nil, wire.CodeQuotaExceeded
	}
	data, stat, code := c.m.data.Get(c.callerLocked(), req.Path)
	if code == wire.CodeOK && req.Watch {
		c.m.watches.data.add(req.Path, c, watchOnce)
	}
	return &wire.GetDataResponse{Data: data, Stat: stat}, code
}

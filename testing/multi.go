package zktest

import "github.com/paddock-zk/paddock/internal/wire"

// multiReadLocked answers each read for itself; one that is refused does not harm the others.
func (c *conn) multiReadLocked(req *wire.MultiRequest) (wire.Record, wire.Code) {
	res := &wire.MultiResponse{Results: make([]wire.MultiResult, len(req.Ops))}
	for i, op := range req.Ops {
		r, ok := op.Request.(*wire.PathWatchRequest)
		if !ok {
			return nil, wire.CodeMarshallingError
		}
		out := wire.MultiResult{Op: op.Op}
		var code wire.Code
		switch op.Op {
		case wire.OpGetData:
			out.Data, out.Stat, code = c.m.data.Get(c.callerLocked(), r.Path)
		case wire.OpGetChildren:
			var names []string
			names, _, code = c.m.data.Children(c.callerLocked(), r.Path)
			out.Children = wire.NamesOf(names)
		}
		if code != wire.CodeOK {
			out = wire.MultiResult{Op: wire.OpError, Code: code}
			if c.m.e.cfg.keeper != nil {
				out.Op = op.Op
			}
		}
		res.Results[i] = out
	}
	return res, wire.CodeOK
}

package zktest

import (
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// opConnect is the name of the handshake among the operations.
const opConnect = "connect"

// kind is how a request is handled.
type kind struct {
	// body returns an empty body to decode into; nil if there is none.
	body func() wire.Record
	// write is for requests that become transactions. They are answered when
	// the transaction is applied.
	write bool
	// read answers all others.
	read func(c *conn, req wire.Record) (wire.Record, wire.Code)
}

func body[T any, P interface {
	*T
	wire.Record
}]() func() wire.Record {
	return func() wire.Record { return P(new(T)) }
}

// read adapts a handler of one type of body.
func read[T wire.Record](fn func(c *conn, req T) (wire.Record, wire.Code)) func(*conn, wire.Record) (wire.Record, wire.Code) {
	return func(c *conn, req wire.Record) (wire.Record, wire.Code) { return fn(c, req.(T)) }
}

// kinds has the requests that a client may send, save closeSession, ping and
// auth, which conn.process answers itself.
var kinds map[wire.Op]kind

func init() {
	path := body[wire.PathRequest]()
	watched := body[wire.PathWatchRequest]()
	create := body[wire.CreateRequest]()
	version := body[wire.PathVersionRequest]()
	watches := body[wire.WatchesRequest]()
	kinds = map[wire.Op]kind{
		wire.OpCreate:          {body: create, write: true},
		wire.OpCreate2:         {body: create, write: true},
		wire.OpCreateContainer: {body: create, write: true},
		wire.OpCreateTTL:       {body: body[wire.CreateTTLRequest](), write: true},
		wire.OpDelete:          {body: version, write: true},
		wire.OpDeleteContainer: {write: true}, // always refused
		wire.OpSetData:         {body: body[wire.SetDataRequest](), write: true},
		wire.OpSetACL:          {body: body[wire.SetACLRequest](), write: true},
		wire.OpCheck:           {body: version, write: true},
		wire.OpMulti:           {body: body[wire.MultiRequest](), write: true},
		wire.OpReconfig:        {body: body[wire.ReconfigRequest](), write: true},

		wire.OpExists:               {body: watched, read: read((*conn).exists)},
		wire.OpGetData:              {body: watched, read: read((*conn).getData)},
		wire.OpGetChildren:          {body: watched, read: read((*conn).getChildren)},
		wire.OpGetChildren2:         {body: watched, read: read((*conn).getChildren2)},
		wire.OpGetACL:               {body: path, read: read((*conn).getACL)},
		wire.OpGetAllChildrenNumber: {body: path, read: read((*conn).getAllChildrenNumber)},
		wire.OpGetEphemerals:        {body: path, read: read((*conn).getEphemerals)},
		wire.OpSync:                 {body: path, read: read((*conn).sync)},
		wire.OpMultiRead:            {body: body[wire.MultiRequest](), read: read((*conn).multiRead)},
		wire.OpWhoAmI:               {body: body[wire.Empty](), read: read((*conn).whoAmI)},

		wire.OpSetWatches:    {body: body[wire.SetWatchesRequest](), read: read((*conn).setWatches)},
		wire.OpSetWatches2:   {body: body[wire.SetWatches2Request](), read: read((*conn).setWatches2)},
		wire.OpAddWatch:      {body: body[wire.AddWatchRequest](), read: read((*conn).addWatch)},
		wire.OpCheckWatches:  {body: watches, read: read((*conn).checkWatches)},
		wire.OpRemoveWatches: {body: watches, read: read((*conn).removeWatches)},

		wire.OpAuth:         {body: body[wire.AuthRequest]()},
		wire.OpPing:         {},
		wire.OpCloseSession: {},
	}
}

// handle takes one frame. An error ends the connection.
func (c *conn) handle(frame []byte) error {
	d := wire.NewDecoder(frame)
	var h wire.RequestHeader
	h.Decode(d)
	if d.Err() != nil {
		return d.Err()
	}
	k, known := kinds[h.Op]
	var req wire.Record
	if k.body != nil {
		req = k.body()
		req.Decode(d)
		if d.Err() != nil {
			req = nil
		}
	}
	v, err := c.judge(h.Op.String(), req, 0)
	if err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.m.e.mu.Unlock()
	c.m.e.requests[h.Op.String()]++
	c.m.e.touchLocked(c.session)
	if v.fail {
		c.replyLocked(h.Xid, v.code, wire.Empty{})
		return nil
	}
	if !known {
		c.replyAtLocked(h.Xid, -1, wire.CodeUnimplemented, wire.Empty{})
		return errOver
	}
	c.mute = v.cut
	err = c.processLocked(h, k, req)
	if v.cut {
		return errOver
	}
	return err
}

// processLocked carries out a request. A nil req of a kind that has a body
// stands for one that could not be read.
func (c *conn) processLocked(h wire.RequestHeader, k kind, req wire.Record) error {
	e := c.m.e
	switch {
	case h.Op == wire.OpPing:
		c.replyLocked(wire.XidPing, wire.CodeOK, wire.Empty{})
	case h.Op == wire.OpCloseSession:
		e.closeSessionLocked(c.session, reply{c, h.Xid})
		return errOver
	case h.Op == wire.OpAuth:
		return c.authLocked(h.Xid, req)
	case h.Op == wire.OpDeleteContainer:
		e.submitLocked(reply{c, h.Xid}, c.callerLocked(), h.Op, &wire.PathRequest{})
	case k.write:
		e.submitLocked(reply{c, h.Xid}, c.callerLocked(), h.Op, req)
	case req == nil:
		c.replyLocked(h.Xid, wire.CodeMarshallingError, wire.Empty{})
	default:
		res, code := k.read(c, req)
		if code != wire.CodeOK {
			res = wire.Empty{}
		}
		c.replyLocked(h.Xid, code, res)
	}
	return nil
}

// The handlers of reads run with the ensemble's lock held, and answer from the
// member's replica.

func (c *conn) exists(req *wire.PathWatchRequest) (wire.Record, wire.Code) {
	if strings.IndexByte(req.Path, 0) >= 0 {
		return nil, wire.CodeBadArguments
	}
	if req.Watch {
		c.m.watches.data.add(req.Path, c, watchOnce)
	}
	stat, code := c.m.data.Exists(req.Path)
	return &wire.StatResponse{Stat: stat}, code
}

func (c *conn) getData(req *wire.PathWatchRequest) (wire.Record, wire.Code) {
	data, stat, code := c.m.data.Get(c.callerLocked(), req.Path)
	if code == wire.CodeOK && req.Watch {
		c.m.watches.data.add(req.Path, c, watchOnce)
	}
	return &wire.GetDataResponse{Data: data, Stat: stat}, code
}

func (c *conn) getChildren(req *wire.PathWatchRequest) (wire.Record, wire.Code) {
	names, _, code := c.list(req)
	return &wire.GetChildrenResponse{Children: names}, code
}

func (c *conn) getChildren2(req *wire.PathWatchRequest) (wire.Record, wire.Code) {
	names, stat, code := c.list(req)
	return &wire.GetChildren2Response{Children: names, Stat: stat}, code
}

func (c *conn) list(req *wire.PathWatchRequest) ([]string, wire.Stat, wire.Code) {
	names, stat, code := c.m.data.Children(c.callerLocked(), req.Path)
	if code == wire.CodeOK && req.Watch {
		c.m.watches.child.add(req.Path, c, watchOnce)
	}
	return names, stat, code
}

func (c *conn) getACL(req *wire.PathRequest) (wire.Record, wire.Code) {
	acl, stat, code := c.m.data.ACL(c.callerLocked(), req.Path)
	return &wire.GetACLResponse{ACL: acl, Stat: stat}, code
}

func (c *conn) getAllChildrenNumber(req *wire.PathRequest) (wire.Record, wire.Code) {
	n, code := c.m.data.CountBelow(c.callerLocked(), req.Path)
	return &wire.GetAllChildrenNumberResponse{Total: n}, code
}

func (c *conn) getEphemerals(req *wire.PathRequest) (wire.Record, wire.Code) {
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

func (c *conn) sync(req *wire.PathRequest) (wire.Record, wire.Code) {
	return &wire.PathResponse{Path: req.Path}, wire.CodeOK
}

// multiRead answers each read for itself; one that is refused does not harm the others.
func (c *conn) multiRead(req *wire.MultiRequest) (wire.Record, wire.Code) {
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
			out.Children, _, code = c.m.data.Children(c.callerLocked(), r.Path)
		}
		if code != wire.CodeOK {
			out = wire.MultiResult{Op: wire.OpError, Code: code}
		}
		res.Results[i] = out
	}
	return res, wire.CodeOK
}

func (c *conn) whoAmI(*wire.Empty) (wire.Record, wire.Code) {
	res := &wire.WhoAmIResponse{}
	for _, id := range c.ids {
		user := id.ID
		if id.Scheme == "digest" {
			user, _, _ = strings.Cut(id.ID, ":")
		}
		res.Clients = append(res.Clients, wire.ClientInfo{Scheme: id.Scheme, User: user})
	}
	return res, wire.CodeOK
}

// authLocked adds an identity. A wrong one ends the connection.
//
// Source: ZooKeeper ZooKeeperServer.processPacket, DigestAuthenticationProvider, IPAuthenticationProvider.
func (c *conn) authLocked(xid int32, req wire.Record) error {
	auth, ok := req.(*wire.AuthRequest)
	if !ok {
		return wire.ErrMalformed
	}
	switch auth.Scheme {
	case "ip":
		c.addIDLocked(tree.ID{Scheme: "ip", ID: host(c.raw.RemoteAddr())})
	case "digest":
		digest := tree.Digest(string(auth.Auth))
		if digest == c.m.e.cfg.super {
			c.addIDLocked(tree.SuperID)
		}
		c.addIDLocked(tree.ID{Scheme: "digest", ID: digest})
	default:
		c.replyAtLocked(xid, 0, wire.CodeAuthFailed, wire.Empty{})
		return errOver
	}
	c.replyAtLocked(xid, 0, wire.CodeOK, wire.Empty{})
	return nil
}

func (c *conn) addIDLocked(id tree.ID) {
	for _, have := range c.ids {
		if have == id {
			return
		}
	}
	c.ids = append(c.ids, id)
}

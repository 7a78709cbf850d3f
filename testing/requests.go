package zktest

import (
	"strconv"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// The names of what is no operation of the protocol.
const (
	opConnect = "connect" // the handshake
	opUnknown = "unknown"
)

// kind is how a request is handled.
type kind struct {
	// body returns an empty body to decode into; nil if there is none.
	body func() wire.Record
	// write is for requests that become transactions. They are answered when
	// the transaction is applied.
	write bool
	// read answers all others, from the member's replica and with the
	// ensemble's lock held.
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

// kinds has the requests that a client may send. Those without write and read
// are processLocked's own.
var kinds = makeKinds()

func makeKinds() map[wire.Op]kind {
	path := body[wire.PathRequest]()
	watched := body[wire.PathWatchRequest]()
	create := body[wire.CreateRequest]()
	version := body[wire.PathVersionRequest]()
	watches := body[wire.WatchesRequest]()
	return map[wire.Op]kind{
		wire.OpCreate:          {body: create, write: true},
		wire.OpCreate2:         {body: create, write: true},
		wire.OpCreateContainer: {body: create, write: true},
		wire.OpCreateTTL:       {body: body[wire.CreateTTLRequest](), write: true},
		wire.OpDelete:          {body: version, write: true},
		wire.OpSetData:         {body: body[wire.SetDataRequest](), write: true},
		wire.OpSetACL:          {body: body[wire.SetACLRequest](), write: true},
		wire.OpCheck:           {body: version, write: true},
		wire.OpMulti:           {body: body[wire.MultiRequest](), write: true},
		wire.OpReconfig:        {body: body[wire.ReconfigRequest](), write: true},
		wire.OpSync:            {body: path, write: true},

		wire.OpExists:               {body: watched, read: read((*conn).existsLocked)},
		wire.OpGetData:              {body: watched, read: read((*conn).getDataLocked)},
		wire.OpGetChildren:          {body: watched, read: read((*conn).getChildrenLocked)},
		wire.OpGetChildren2:         {body: watched, read: read((*conn).getChildren2Locked)},
		wire.OpGetACL:               {body: path, read: read((*conn).getACLLocked)},
		wire.OpGetAllChildrenNumber: {body: path, read: read((*conn).getAllChildrenNumberLocked)},
		wire.OpGetEphemerals:        {body: path, read: read((*conn).getEphemeralsLocked)},
		wire.OpMultiRead:            {body: body[wire.MultiRequest](), read: read((*conn).multiReadLocked)},
		wire.OpWhoAmI:               {body: body[wire.Empty](), read: read((*conn).whoAmILocked)},

		wire.OpSetWatches:    {body: body[wire.SetWatchesRequest](), read: read((*conn).setWatchesLocked)},
		wire.OpSetWatches2:   {body: body[wire.SetWatches2Request](), read: read((*conn).setWatches2Locked)},
		wire.OpAddWatch:      {body: body[wire.AddWatchRequest](), read: read((*conn).addWatchLocked)},
		wire.OpCheckWatches:  {body: watches, read: read((*conn).checkWatchesLocked)},
		wire.OpRemoveWatches: {body: watches, read: read((*conn).removeWatchesLocked)},

		wire.OpAuth:            {body: body[wire.AuthRequest]()},
		wire.OpSASL:            {body: body[wire.SASLRequest]()},
		wire.OpPing:            {},
		wire.OpCloseSession:    {},
		wire.OpDeleteContainer: {body: path},
	}
}

// requestNames are the names that a rule can be asked about.
var requestNames = makeRequestNames()

func makeRequestNames() []string {
	names := []string{opConnect, opUnknown}
	for op := range kinds {
		names = append(names, op.String())
	}
	return names
}

// handle takes one frame. An error ends the connection.
func (c *conn) handle(frame []byte) error {
	d := wire.NewDecoder(frame)
	d.AnyCount = true
	var h wire.RequestHeader
	h.Decode(d)
	if d.Err() != nil {
		return d.Err()
	}
	k, known := kinds[h.Op]
	name := opUnknown
	if known {
		name = h.Op.String()
	}
	var req wire.Record
	if k.body != nil {
		req = k.body()
		req.Decode(d)
	}
	broken := d.Err() != nil
	early := c.refusedEarly(h.Op, req, broken)
	if broken {
		req = nil
	}
	v, err := c.judge(name, req, 0)
	if err != nil {
		return err
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.m.e.mu.Unlock() // settle lets go of it and takes it again
	c.m.e.requests[name]++
	c.receivedLocked(4+len(frame), shortOps[h.Op])
	c.stirLocked(name, h.Op, req)
	if h.Op != wire.OpPing {
		said := req
		if k.body == nil {
			said = wire.Empty{} // rather than one that could not be read
		}
		c.sayLocked("> "+h.Op.String(), "#"+strconv.Itoa(int(h.Xid)), said)
	}
	c.m.touchLocked(c.session)
	if !k.write && h.Op != wire.OpAuth {
		if err := c.settle(0); err != nil {
			return err
		}
	} else if err := c.settle(c.m.e.cfg.limits.Outstanding - 1); err != nil {
		return err
	}
	if v.fail {
		c.replyLocked(h.Xid, v.code, wire.Empty{})
		if h.Op == wire.OpAuth || h.Op == wire.OpSASL {
			return errOver // as after every failed auth
		}
		return nil
	}
	if k := c.m.e.cfg.keeper; k != nil && (!known || broken || !k.knows(h.Op, req)) {
		return errOver
	}
	if !known || h.Op == wire.OpCheck && c.m.e.cfg.release >= tree.Release393 { // which has it inside multis only
		c.replyAtLocked(h.Xid, -1, wire.CodeUnimplemented, wire.Empty{})
		return errOver
	}
	c.mute = v.cut
	if v.drop {
		c.dropped = append(c.dropped, h.Xid)
	}
	c.part = v.part
	err = c.processLocked(h, k, req, early)
	switch {
	case v.cut:
		return errOver
	case v.part > 0 && err == nil:
		_ = c.settle(0) // the reply may take a while
		return errOver
	}
	return err
}

// processLocked carries out a request. A nil req of a kind that has a body
// stands for one that could not be read.
func (c *conn) processLocked(h wire.RequestHeader, k kind, req wire.Record, early bool) error {
	switch {
	case c.needsSASLLocked(h.Op):
		c.replyAtLocked(h.Xid, 0, wire.CodeSessionClosedNeedsSASL, wire.Empty{})
		return errOver
	case h.Op == wire.OpPing:
		c.replyLocked(wire.XidPing, wire.CodeOK, wire.Empty{})
	case h.Op == wire.OpCloseSession:
		return c.leaveLocked(h.Xid)
	case h.Op == wire.OpAuth:
		return c.authLocked(h.Xid, req)
	case h.Op == wire.OpSASL:
		return c.saslLocked(h.Xid, req)
	case h.Op == wire.OpDeleteContainer && c.m.e.cfg.release >= tree.Release396:
		return errOver
	case h.Op == wire.OpDeleteContainer && c.m.e.cfg.release < tree.Release393:
		// It reads a client's request such that it is always refused.
		c.askLocked(h, &wire.PathRequest{}, false)
	case k.write, h.Op == wire.OpDeleteContainer:
		c.askLocked(h, req, early)
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

// askLocked hands a request to the leader, unless it is refused before.
func (c *conn) askLocked(h wire.RequestHeader, req wire.Record, early bool) {
	switch {
	case c.m.role == roleReadOnly:
		c.replyLocked(h.Xid, wire.CodeNotReadOnly, wire.Empty{})
	case early:
		c.replyLocked(h.Xid, wire.CodeMarshallingError, wire.Empty{})
	default:
		c.proposeLocked(proposal{to: reply{c, h.Xid}, who: c.callerLocked(), op: h.Op, req: req})
	}
}

// refusedEarly reports whether a write, which may be broken, is refused as
// unreadable before it gets a zxid: it is then no transaction.
//
// Source: ZooKeeper PrepRequestProcessor.pRequestHelper.
func (c *conn) refusedEarly(op wire.Op, req wire.Record, broken bool) bool {
	switch {
	case op == wire.OpSync, op == wire.OpReconfig:
		return broken
	case c.m.e.cfg.release < tree.Release393:
		return false
	case op != wire.OpMulti:
		return broken
	}
	for _, op := range req.(*wire.MultiRequest).Ops { // in whose order it is read
		create, ok := op.Request.(*wire.CreateRequest)
		switch {
		case ok && !tree.Known(create.Flags):
			return false
		case ok && create.ACL == nil: // which is not foreseen there
			return true
		}
	}
	return false
}

// leaveLocked ends the session at its client's wish. The connection ends with
// the answer.
func (c *conn) leaveLocked(xid int32) error {
	if c.m.role == roleReadOnly {
		c.replyLocked(xid, wire.CodeOK, wire.Empty{})
		return errOver
	}
	c.proposeLocked(proposal{to: reply{c, xid}, who: c.callerLocked(), op: wire.OpCloseSession})
	if c.mute {
		return errOver
	}
	return c.settle(0)
}

// proposeLocked sends a proposal on its way, and counts it until it is answered.
func (c *conn) proposeLocked(p proposal) {
	c.waiting++
	c.m.proposeLocked(p)
}

// answeredLocked counts an answer.
func (c *conn) answeredLocked() {
	c.waiting--
	if c.settled != nil {
		close(c.settled)
		c.settled = nil
	}
}

// settle waits until at most n of the connection's proposals are unanswered:
// reads see what was written before them, as in ZooKeeper's CommitProcessor. It
// is called with the lock, which it lets go of meanwhile.
func (c *conn) settle(n int) error {
	for c.waiting > n {
		if c.isOverLocked() {
			return errOver
		}
		if c.settled == nil {
			c.settled = make(chan struct{})
		}
		settled := c.settled
		c.m.e.mu.Unlock()
		select {
		case <-settled:
			c.queueUp()
		case <-c.over:
		}
		c.m.e.mu.Lock()
	}
	if c.isOverLocked() {
		return errOver
	}
	return nil
}

// answerLocked sends the outcome of a write to the client that asked for it.
func (c *conn) answerLocked(xid int32, txn *tree.Txn, out tree.Outcome) {
	res := out.Result
	if res.Op == wire.OpError {
		if res.Code == wire.CodeSessionMoved {
			c.finishLocked() // the session is somebody else's now
			return
		}
		c.replyLocked(xid, res.Code, wire.Empty{})
		return
	}
	var body wire.Record = wire.Empty{}
	switch txn.Op {
	case wire.OpCreate:
		body = &wire.CreateResponse{Path: res.Path}
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		body = &wire.Create2Response{Path: res.Path, Stat: res.Stat}
	case wire.OpSetData, wire.OpSetACL:
		body = &wire.StatResponse{Stat: res.Stat}
	case wire.OpMulti:
		body = &wire.MultiResponse{Results: out.Multi}
	case wire.OpCreateSession:
		c.welcomeLocked(false)
		return
	case wire.OpCheck:
		if c.m.e.cfg.keeper == nil {
			return // ZooKeeper has no answer to a check that holds, outside a multi
		}
	case wire.OpCloseSession:
		if c.m.e.cfg.keeper != nil {
			return // the end of the connection says it
		}
	}
	c.replyLocked(xid, wire.CodeOK, body)
}

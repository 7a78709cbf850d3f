package transport

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// flush is one write of joint requests, and what becomes of them. The replies are taken
// in by the goroutine that reads the connection, in the order of the wire.
type flush struct {
	conn      *Conn
	deletions []*Joint // in one transaction
	creations []*Joint // in another
	alone     []*Joint // each as a request of its own
	listed    []*Joint // creations that were applied by this write, and whose lists come behind; others are nil
}

// calls are the requests in the order in which they have to be sent.
func (f *flush) calls() (calls []*Call) {
	for _, part := range []*[]*Joint{&f.deletions, &f.creations} {
		if len(*part) < leastJoint && !slices.ContainsFunc(*part, func(j *Joint) bool { return j.makes }) {
			f.alone, *part = append(f.alone, *part...), nil
		}
	}
	for _, j := range f.alone {
		if !j.creates() {
			calls = append(calls, j.Write)
		}
	}
	if len(f.deletions) > 0 {
		calls = append(calls, f.transaction(f.deletions))
	}
	if len(f.creations) > 0 {
		calls = append(calls, f.transaction(f.creations))
	}
	for _, j := range f.alone {
		if j.creates() {
			calls = append(calls, j.Write, j.List)
		}
	}
	if n := len(f.creations); n > 0 {
		f.listed = make([]*Joint, n)
		calls = append(calls, f.lists()...)
	}
	return calls
}

// headerSize is what stands before the body of a request: its length, id and operation.
const headerSize = 12

// multiSize is what a request for several operations takes without them.
const multiSize = 8 + 9

// transaction is the request for several writes.
func (f *flush) transaction(of []*Joint) *Call {
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, 0, len(of))}
	bodies := make([]wire.Body, len(of))
	var carries wire.Op
	for i, j := range of {
		if j.makes {
			req.Ops = append(req.Ops, j.Make)
			carries = j.Make.Op
		}
		bodies[i] = j.Write.frame[headerSize:]
		op := j.Write.op
		if op == wire.OpCreate2 {
			op = wire.OpCreate // in a transaction both answer the same
		}
		req.Ops = append(req.Ops, wire.MultiOp{Op: op, Request: &bodies[i]})
		j.markSent()
	}
	f.conn.transport.batched.add(len(of))
	call := NewCall(wire.OpMulti, req)
	call.carries = carries
	call.OnReply = func(call *Call) {
		f.answered(of, len(req.Ops), call)
		call.Free()
	}
	return call
}

// markSent says that a call is an operation of a request that is about to be written. The
// connection's mu is held.
func (j *Joint) markSent() {
	for _, call := range j.calls() {
		if call.phase == queued {
			call.phase = sent
		}
	}
}

// answered takes in the answer to a transaction.
func (f *flush) answered(of []*Joint, ops int, call *Call) {
	if call.err == nil && call.header.Code == wire.CodeUnimplemented && call.carries != 0 {
		for _, j := range of { // each makes its parent itself, in another way
			j.makes, j.alone = false, j.alone || j.makes
		}
		f.conn.again(of)
		return
	}
	if call.err != nil || call.header.Code != wire.CodeOK { // it is about all of them
		for _, j := range of {
			j.answer(call, call.header.Code, nil)
			j.endList(&LostError{Cause: errUndone})
		}
		return
	}
	var resp wire.MultiResponse
	err := call.Decode(&resp)
	if err == nil && len(resp.Results) != ops {
		err = fmt.Errorf("%w: %d results for %d operations", ErrProtocol, len(resp.Results), ops)
	}
	switch {
	case err != nil: // nobody knows what has happened
		for _, j := range of {
			j.end(&LostError{Sent: true, Cause: err})
		}
	case ops > 0 && resp.Results[0].Op == wire.OpError:
		f.undone(of, resp.Results, call)
	default:
		f.applied(of, resp.Results, call)
	}
}

// applied ends the writes of a transaction that was applied.
func (f *flush) applied(of []*Joint, results []wire.MultiResult, call *Call) {
	creates := of[0].creates()
	if creates {
		copy(f.listed, of)
		f.conn.knowParents(of...)
	}
	var room wire.Encoder
	for i, at := 0, 0; i < len(of); i, at = i+1, at+1 {
		j := of[i]
		if j.makes {
			at++
		}
		from := len(room.B)
		if creates {
			// The reply to a write carries its own zxid, since servers apply one at a time.
			//
			// Source: ZooKeeper's FinalRequestProcessor, CommitProcessor.
			made := wire.Create2Response{Path: results[at].Path, Stat: wire.Stat{Czxid: call.header.Zxid}}
			made.Encode(&room)
		}
		j.answer(call, wire.CodeOK, room.B[from:len(room.B):len(room.B)])
	}
}

// errUndone is why a list did not come: the creation before it was refused.
var errUndone = errors.New("the creation before it was refused")

// undone takes in that a transaction was refused: for one operation, which its results
// name. Nothing has happened for the others, which leave again, together.
func (f *flush) undone(of []*Joint, results []wire.MultiResult, call *Call) {
	f.conn.transport.batched.undone.Add(1)
	at, parent, code := stopped(of, results)
	again := make([]*Joint, 0, len(of))
	for i, j := range of {
		j.undone++
		j.alone = j.alone || j.undone >= mostUndone
		if i != at {
			again = append(again, j)
			continue
		}
		switch {
		case parent && code == wire.CodeNodeExists: // somebody else has made it
			j.makes = false
			f.conn.knowParents(j)
		case parent: // as a request of its own it is told what is wrong
			j.alone, j.makes = true, false
		case code == wire.CodeNoNode && j.creates() && !j.asked && j.Make.Op != 0:
			// Servers remove containers that are empty. So it may be with the others.
			f.conn.forgetParents(of)
		default:
			f.conn.refused(j, code)
			j.answer(call, code, nil)
			j.endList(&LostError{Cause: errUndone})
			continue
		}
		again = append(again, j)
	}
	f.conn.again(again)
}

// stopped is the request for which a transaction was refused, -1 if the results do not
// say, and whether that was for the parent that it was to make.
func stopped(of []*Joint, results []wire.MultiResult) (at int, parent bool, code wire.Code) {
	op := 0
	for i, j := range of {
		if j.makes {
			if results[op].Refused() {
				return i, true, results[op].Code
			}
			op++
		}
		if results[op].Refused() {
			return i, false, results[op].Code
		}
		op++
	}
	return -1, false, wire.CodeOK
}

// lists are the requests for the lists behind the creations.
func (f *flush) lists() (calls []*Call) {
	if len(f.creations) > 1 {
		ops := make([]wire.MultiOp, len(f.creations))
		bodies := make([]wire.Body, len(f.creations))
		for i, j := range f.creations {
			bodies[i] = j.List.frame[headerSize:]
			ops[i] = wire.MultiOp{Op: wire.OpGetChildren, Request: &bodies[i]}
		}
		call := NewCall(wire.OpMultiRead, &wire.MultiRequest{Ops: ops})
		call.OnReply = f.readTogether
		return []*Call{call}
	}
	for i, j := range f.creations {
		body := wire.Body(j.List.frame[headerSize:])
		call := NewCall(wire.OpGetChildren, &body)
		call.OnReply = func(call *Call) {
			if j := f.listed[i]; j != nil {
				f.listAlone(j, call)
			}
		}
		calls = append(calls, call)
	}
	return calls
}

// listAlone takes in a list that was asked for by itself.
func (f *flush) listAlone(j *Joint, call *Call) {
	if call.err != nil {
		j.endList(call.err)
		return
	}
	j.answerList(call, call.header.Code, call.body, call.memory)
}

// readTogether takes in all lists at once. They share the memory of the reply.
func (f *flush) readTogether(call *Call) {
	var resp wire.MultiResponse
	err := call.err
	if err == nil && call.header.Code == wire.CodeOK {
		if err = call.Decode(&resp); err == nil && len(resp.Results) != len(f.listed) {
			err = fmt.Errorf("%w: %d lists instead of %d", ErrProtocol, len(resp.Results), len(f.listed))
		}
	}
	apart := errors.Is(err, ErrTooLong) || err == nil && call.header.Code != wire.CodeOK
	for i, j := range f.listed {
		switch {
		case j == nil:
		case apart:
			j.listAgain()
		case err != nil:
			j.endList(lostWith(err))
		default:
			j.answerList(call, resp.Results[i].Code, childrenIn(&resp.Results[i]), nil)
		}
	}
}

// lostWith is an error as a *LostError.
func lostWith(err error) error {
	var lost *LostError
	if errors.As(err, &lost) {
		return lost
	}
	return &LostError{Sent: true, Cause: err}
}

// childrenIn is the list in a result as the reply to a request of its own has it.
func childrenIn(r *wire.MultiResult) []byte {
	if r.Op == wire.OpError {
		return nil
	}
	var e wire.Encoder
	r.Children.Encode(&e)
	return e.B
}

// listAgain asks for a list by itself.
func (j *Joint) listAgain() {
	j.conn.mu.Lock()
	over := j.List.phase == ended
	j.conn.mu.Unlock()
	if over {
		return
	}
	if err := j.conn.Send(j.List); err != nil {
		j.endList(err)
	}
}

// askParents are the requests that ask which parents exist. Nothing was sent yet for the
// requests that wait for them, so they can be taken back. Each is a request of its own: one
// for several could only read data or lists, however long.
//
// Source: ZooKeeper's FinalRequestProcessor, multiRead.
func (c *Conn) askParents(of []*Joint) []*Call {
	calls := make([]*Call, len(of))
	for i, j := range of {
		calls[i] = NewCall(wire.OpExists, &wire.PathWatchRequest{Path: j.Parent})
	}
	calls[len(calls)-1].OnReply = func(*Call) { c.toldParents(of, calls) }
	return calls
}

// toldParents takes in which parents exist, once all calls have ended.
func (c *Conn) toldParents(of []*Joint, calls []*Call) {
	var lost *LostError
	if errors.As(calls[len(calls)-1].err, &lost) {
		for _, j := range of {
			j.end(&LostError{Cause: lost.Cause})
		}
		return
	}
	for i, j := range of {
		j.asked = true
		switch calls[i].header.Code {
		case wire.CodeNoNode:
			j.makes = !c.transport.Suspects.Doubts(j.Make.Op)
			j.alone = j.alone || !j.makes
		case wire.CodeOK, wire.CodeNoAuth:
			c.knowParents(j)
		default:
			j.alone = true
		}
	}
	c.again(of)
}

// forgetParents lets the client ask again whether parents exist, except those that the
// transaction was to make.
func (c *Conn) forgetParents(of []*Joint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range of {
		if !j.makes {
			c.batch.parents.remove(j.Parent)
			j.asked = false
		}
	}
}

// refused remembers for a while that writes below a parent are refused, so as not to undo
// those of others with them.
func (c *Conn) refused(j *Joint, code wire.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if code == wire.CodeNoNode {
		if j.creates() {
			c.batch.parents.remove(j.Parent)
		}
		return
	}
	c.batch.refused.add(j.Parent, time.Now().Add(refusedFor))
}

// refusedFor is how long a refusal is remembered.
const refusedFor = 10 * time.Second

// end ends both calls of a request without an answer.
func (j *Joint) end(err error) {
	j.Write.endAs(j.conn, Call{err: err})
	j.endList(err)
}

func (j *Joint) endList(err error) {
	if j.List != nil {
		j.List.endAs(j.conn, Call{err: err})
	}
}

// answer ends the write with the answer to the request that carried it.
func (j *Joint) answer(carrier *Call, code wire.Code, body []byte) {
	header := carrier.header
	header.Code = code
	j.Write.endAs(j.conn, Call{err: carrier.err, header: header, body: body, sentAt: carrier.sentAt})
}

// answerList likewise ends the list.
func (j *Joint) answerList(carrier *Call, code wire.Code, body []byte, memory *[]byte) {
	header := carrier.header
	header.Code = code
	j.List.endAs(j.conn, Call{header: header, body: body, memory: memory, sentAt: carrier.sentAt})
}

// endAs ends a call with the results of another one, unless it has ended.
func (c *Call) endAs(conn *Conn, as Call) {
	conn.mu.Lock()
	over := c.phase == ended
	c.phase = ended
	conn.mu.Unlock()
	if over {
		return
	}
	c.err, c.header, c.body, c.memory, c.sentAt = as.err, as.header, as.body, as.memory, as.sentAt
	c.end()
}

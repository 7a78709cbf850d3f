package batch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// flush is one write of joint requests, and what becomes of them. The replies are taken
// in by the goroutine that reads the connection, in the order of the wire.
type flush struct {
	batches   *Batches
	deletions []*joint // in one transaction
	creations []*joint // in another
	alone     []*joint // each as a request of its own
	listed    []*joint // creations that were applied by this write, and whose lists come behind; others are nil
}

// calls are the requests in the order in which they have to be sent.
func (f *flush) calls() (calls []*transport.Call) {
	for _, part := range []*[]*joint{&f.deletions, &f.creations} {
		if len(*part) < leastJoint && !slices.ContainsFunc(*part, func(j *joint) bool { return j.makes }) {
			f.alone, *part = append(f.alone, *part...), nil
		}
	}
	for _, j := range f.alone {
		if !j.creates() {
			calls = append(calls, j.write)
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
			j.list.Tell(f.batches, false)
			calls = append(calls, j.write, j.list)
		}
	}
	if n := len(f.creations); n > 0 {
		f.listed = make([]*joint, n)
		calls = append(calls, f.lists())
	}
	return calls
}

// headerSize is what stands before the body of a request: its length, id and operation.
const headerSize = 12

// multiSize is what a request for several operations takes without them.
const multiSize = 8 + 9

// transaction is the request for several writes.
func (f *flush) transaction(of []*joint) *transport.Call {
	req := &wire.MultiRequest{Ops: make([]wire.MultiOp, 0, len(of))}
	bodies := make([]wire.Body, len(of))
	var carries wire.Op
	for i, j := range of {
		if j.makes {
			req.Ops = append(req.Ops, j.make)
			carries = j.make.Op
		}
		bodies[i] = j.write.Frame()[headerSize:]
		op := j.write.Op()
		if op == wire.OpCreate2 {
			op = wire.OpCreate // in a transaction both answer the same
		}
		req.Ops = append(req.Ops, wire.MultiOp{Op: op, Request: &bodies[i]})
	}
	f.batches.counts.batches.Add(1)
	f.batches.counts.requests.Add(int64(len(of)))
	call := transport.NewCall(wire.OpMulti, req)
	call.Carry(carries)
	call.OnReply = func(call *transport.Call) {
		f.answered(of, len(req.Ops), call)
		call.Free()
	}
	return call
}

// answered takes in the answer to a transaction.
func (f *flush) answered(of []*joint, ops int, call *transport.Call) {
	if call.Err() == nil && call.Code() == wire.CodeUnimplemented && ops > len(of) {
		for _, j := range of { // each makes its parent itself, in another way
			j.makes, j.alone = false, j.alone || j.makes
		}
		f.batches.again(of)
		return
	}
	if call.Err() != nil || call.Code() != wire.CodeOK { // it is about all of them
		for _, j := range of {
			j.refuse(call, call.Code())
		}
		return
	}
	var resp wire.MultiResponse
	err := call.Decode(&resp)
	if err == nil && len(resp.Results) != ops {
		err = fmt.Errorf("%w: %d results for %d operations", transport.ErrProtocol, len(resp.Results), ops)
	}
	switch {
	case err != nil: // nobody knows what has happened
		for _, j := range of {
			j.fail(&transport.LostError{Sent: true, Cause: err})
		}
	case ops > 0 && resp.Results[0].Op == wire.OpError:
		f.undone(of, resp.Results, call)
	default:
		f.applied(of, resp.Results, call)
	}
}

// applied ends the writes of a transaction that was applied.
func (f *flush) applied(of []*joint, results []wire.MultiResult, call *transport.Call) {
	creates := of[0].creates()
	if creates {
		copy(f.listed, of)
		f.batches.knowParents(of...)
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
			made := wire.Create2Response{Path: results[at].Path, Stat: wire.Stat{Czxid: call.Zxid()}}
			made.Encode(&room)
		}
		j.write.EndAs(call, wire.CodeOK, room.B[from:len(room.B):len(room.B)])
	}
}

// errUndone is why a list did not come: the creation before it was refused.
var errUndone = errors.New("the creation before it was refused")

// undone takes in that a transaction was refused: for one operation, which its results
// name. Nothing has happened for the others, which leave again, together.
func (f *flush) undone(of []*joint, results []wire.MultiResult, call *transport.Call) {
	f.batches.counts.undone.Add(1)
	at, parent, code := stopped(of, results)
	again := make([]*joint, 0, len(of))
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
			f.batches.knowParents(j)
		case parent: // as a request of its own it is told what is wrong
			j.alone, j.makes = true, false
		case code == wire.CodeNoNode && j.creates() && !j.asked && j.make.Op != 0:
			// Servers remove containers that are empty. So it may be with the others.
			f.batches.forgetParents(of)
		default:
			f.batches.noteRefusal(j, code)
			j.refuse(call, code)
			continue
		}
		again = append(again, j)
	}
	f.batches.again(again)
}

// stopped is the request for which a transaction was refused, -1 if the results do not
// say, and whether that was for the parent that it was to make.
func stopped(of []*joint, results []wire.MultiResult) (at int, parent bool, code wire.Code) {
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

// lists is the request for the lists behind the creations.
func (f *flush) lists() *transport.Call {
	if only := f.creations[0]; len(f.creations) == 1 {
		body := wire.Body(only.list.Frame()[headerSize:])
		call := transport.NewCall(wire.OpGetChildren, &body)
		call.OnReply = func(call *transport.Call) {
			if f.listed[0] != nil {
				only.list.EndAs(call, call.Code(), call.Body())
			}
		}
		return call
	}
	ops := make([]wire.MultiOp, len(f.creations))
	bodies := make([]wire.Body, len(f.creations))
	for i, j := range f.creations {
		bodies[i] = j.list.Frame()[headerSize:]
		ops[i] = wire.MultiOp{Op: wire.OpGetChildren, Request: &bodies[i]}
	}
	call := transport.NewCall(wire.OpMultiRead, &wire.MultiRequest{Ops: ops})
	call.OnReply = f.readTogether
	return call
}

// readTogether takes in all lists at once. They share the memory of the reply.
func (f *flush) readTogether(call *transport.Call) {
	var resp wire.MultiResponse
	err := call.Err()
	apart := errors.Is(err, transport.ErrTooLong) || err == nil && call.Code() != wire.CodeOK
	if err == nil && !apart {
		if err = call.Decode(&resp); err == nil && len(resp.Results) != len(f.listed) {
			err = fmt.Errorf("%w: %d lists instead of %d", transport.ErrProtocol, len(resp.Results), len(f.listed))
		}
		if err != nil {
			err = &transport.LostError{Sent: true, Cause: err}
		}
	}
	for i, j := range f.listed {
		switch {
		case j == nil:
		case apart: // each is asked for by itself
			if err := f.batches.conn.Send(j.list); err != nil {
				j.list.Fail(err)
			}
		case err != nil:
			j.list.Fail(err)
		default:
			j.list.EndAs(call, resp.Results[i].Code, childrenIn(&resp.Results[i]))
		}
	}
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

// askParents are the requests that ask which parents exist. Nothing was sent yet for the
// requests that wait for them, so they can be taken back. Each is a request of its own: one
// for several could only read data or lists, however long.
//
// Source: ZooKeeper's FinalRequestProcessor, multiRead.
func (b *Batches) askParents(of []*joint) []*transport.Call {
	if len(of) == 0 {
		return nil
	}
	calls := make([]*transport.Call, len(of))
	for i, j := range of {
		calls[i] = transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: j.parent})
	}
	calls[len(calls)-1].OnReply = func(*transport.Call) { b.toldParents(of, calls) }
	return calls
}

// toldParents takes in which parents exist, once all calls have ended.
func (b *Batches) toldParents(of []*joint, calls []*transport.Call) {
	answered := calls[len(calls)-1].Replied() // else the connection has ended, and End follows
	left := make([]*joint, 0, len(of))
	b.mu.Lock()
	for i, j := range of {
		at := slices.Index(b.asking, j)
		if at < 0 {
			continue // it was taken back
		}
		b.asking = slices.Delete(b.asking, at, at+1)
		left = append(left, j)
		if j.asked = answered; !answered {
			continue
		}
		switch calls[i].Code() {
		case wire.CodeNoNode:
			j.makes = !b.conn.Doubts(j.make.Op)
			j.alone = j.alone || !j.makes
		case wire.CodeOK, wire.CodeNoAuth:
			b.parents.add(j.parent)
		default:
			j.alone = true
		}
	}
	b.mu.Unlock()
	b.again(left)
}

// forgetParents lets the client ask again whether parents exist, except those that the
// transaction was to make.
func (b *Batches) forgetParents(of []*joint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range of {
		if !j.makes {
			b.parents.remove(j.parent)
			j.asked = false
		}
	}
}

// noteRefusal remembers for a while that writes below a parent are refused, so as not to undo
// those of others with them.
func (b *Batches) noteRefusal(j *joint, code wire.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if code == wire.CodeNoNode {
		if j.creates() {
			b.parents.remove(j.parent)
		}
		return
	}
	if now := time.Now(); now.Sub(b.refusal) >= refusedFor {
		b.refused, b.refusal = pathSet{}, now
	}
	b.refused.add(j.parent)
}

// refusedFor is how long refusals are remembered at most: all are forgotten together.
const refusedFor = 10 * time.Second

// fail ends both calls of a request without an answer.
func (j *joint) fail(err error) {
	for _, call := range j.calls() {
		call.Fail(err)
	}
}

// abandon likewise ends a request that was not sent. Without a cause it was taken back.
func (j *joint) abandon(cause error) {
	for _, call := range j.calls() {
		call.Abandon(cause)
	}
}

// refuse ends a request whose write was refused, with all that the carrier says but the code.
func (j *joint) refuse(carrier *transport.Call, code wire.Code) {
	j.write.EndAs(carrier, code, nil)
	if j.list != nil {
		j.list.Abandon(errUndone)
	}
}

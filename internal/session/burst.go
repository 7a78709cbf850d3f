package session

import (
	"context"

	"github.com/paddock-zk/paddock/internal/transport"
)

// A server answers the requests of a connection in order, and a ping waits for its turn
// like any other. So a call that has thousands of requests does not send them at once: a
// ping behind them could come too late for the session. It sends a chunk, and the next
// chunks as the first are answered. Each chunk takes its slots in the window, which
// limits all requests on their way.
//
// chunkCalls and chunkBytes bound one chunk. A request that is larger than
// chunkBytes is a chunk of its own.
//
// ChunksAhead is how many chunks of one burst are on their way: the server works
// on one while the other travels. MostAhead is how many requests that may be.
const (
	chunkCalls  = 128
	chunkBytes  = 128 << 10
	ChunksAhead = 2
	MostAhead   = ChunksAhead * chunkCalls
)

// burst sends chunks on one connection.
type burst struct {
	session *Session
	conn    *transport.Conn
	ends    []*transport.Call // the last call of each chunk that is on its way, oldest first
}

// most is how large the next chunk may be, and how long the replies to it.
func (b *burst) most() load {
	most := b.session.window.most()
	return load{min(chunkCalls, most.requests/ChunksAhead), most.bytes / ChunksAhead}
}

// hasRoom is whether the next chunk can be sent without waiting for another.
func (b *burst) hasRoom() bool { return len(b.ends) < ChunksAhead }

// send sends one chunk, back to back.
func (b *burst) send(ctx context.Context, chunk []*transport.Call) error {
	if err := b.session.Send(ctx, b.conn, chunk...); err != nil {
		return err
	}
	b.ends = append(b.ends, chunk[len(chunk)-1])
	return nil
}

// wait waits until the oldest chunk has ended.
func (b *burst) wait(ctx context.Context) {
	b.session.AwaitLast(ctx, b.ends[0])
	b.ends = b.ends[1:]
}

// Each sends n requests on one connection, a few hundred at a time, and hands each
// to reply with the error that it ended with. Both functions are called in order,
// in the caller's goroutine. An error of reply, or one that keeps a request from
// being sent, ends it: requests that were sent by then go on by themselves.
//
// write is as for Await.
func (s *Session) Each(ctx context.Context, c *transport.Conn, write bool, n int,
	request func(i int) *transport.Call, reply func(i int, call *transport.Call, err error) error) error {
	b := burst{session: s, conn: c}
	var sent []*transport.Call // those that reply has not seen
	defer func() {
		for _, call := range sent {
			c.Cancel(call)
		}
	}()
	for taken, made := 0, 0; taken < n; {
		if made < n && b.hasRoom() {
			from, most := len(sent), b.most()
			for size, replies := 0, 0; made < n && len(sent)-from < most.requests && size < chunkBytes && replies < most.bytes; made++ {
				call := request(made)
				size += call.Size()
				replies += s.window.expects(call).bytes
				sent = append(sent, call)
			}
			if err := b.send(ctx, sent[from:]); err != nil {
				sent = sent[:from]
				return err
			}
			continue
		}
		end := b.ends[0]
		b.wait(ctx)
		for over := false; !over; taken++ {
			call := sent[0]
			sent = sent[1:]
			over = call == end
			if err := reply(taken, call, s.Await(ctx, c, call, write)); err != nil {
				return err
			}
		}
	}
	return nil
}

// SendAll is Send for any number of calls: a few hundred of them are on their way
// at a time, and it returns when the last has been sent. Every call ends: one that
// was not sent, because of the error that is returned, with a *transport.LostError.
func (s *Session) SendAll(ctx context.Context, c *transport.Conn, calls []*transport.Call) (err error) {
	b := burst{session: s, conn: c}
	defer func() {
		for _, call := range calls {
			call.Abandon(err)
		}
	}()
	for len(calls) > 0 {
		n, most := 0, b.most()
		for size, replies := 0, 0; n < len(calls) && n < most.requests && size < chunkBytes && replies < most.bytes; n++ {
			size += calls[n].Size()
			replies += s.window.expects(calls[n]).bytes
		}
		if !b.hasRoom() {
			b.wait(ctx)
		}
		if err := b.send(ctx, calls[:n]); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

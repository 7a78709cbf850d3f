package lockview

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// ask is a node to read: the names of its children, or its data.
type ask struct {
	path string
	data bool
}

// answer is what a read has found. Its error harms no other.
type answer struct {
	names []string
	data  []byte
	stat  wire.Stat
	err   error
}

// page is how many nodes are read with one request. A server answers it at once, so others
// wait meanwhile.
const page = 256

// readAll reads nodes in pages. A page whose reply would be too large is halved.
func readAll(ctx context.Context, client *framework.Client, n int, asks func(i int) ask) ([]answer, error) {
	core := client.Core(session.Key{})
	if core == nil {
		return nil, framework.ErrClosed
	}
	r := &reader{core: core, asks: asks, answers: make([]answer, n)}
	var todo []span
	for from := 0; from < n; from += page {
		todo = append(todo, span{from, min(from+page, n)})
	}
	for len(todo) > 0 {
		var again []span
		err := core.Read(ctx, "read", "/", func(ctx context.Context, c *transport.Conn) (err error) {
			again, err = r.read(ctx, c, todo)
			return err
		})
		if err != nil {
			return nil, err
		}
		todo = again
	}
	return r.answers, nil
}

// span is a page of reads.
type span struct{ from, to int }

type reader struct {
	core    session.Core
	asks    func(i int) ask
	answers []answer
}

// read reads pages, and returns those that have to be smaller.
func (r *reader) read(ctx context.Context, c *transport.Conn, pages []span) (again []span, err error) {
	s := r.core.Session()
	requests := make([]*wire.MultiRequest, len(pages))
	for i, p := range pages {
		if requests[i], err = r.request(p); err != nil {
			return nil, err
		}
	}
	request := func(i int) *transport.Call { return transport.NewCall(wire.OpMultiRead, requests[i]) }
	err = s.Each(ctx, c, false, len(pages), request, func(i int, call *transport.Call, err error) error {
		p := pages[i]
		switch {
		case errors.Is(err, framework.ErrReplyTooLarge) && p.to-p.from > 1:
			middle := (p.from + p.to) / 2
			again = append(again, span{p.from, middle}, span{middle, p.to})
			return nil
		case errors.Is(err, framework.ErrReplyTooLarge):
			r.answers[p.from].err = err
			return nil
		case err != nil:
			return err
		}
		return r.take(p, call)
	})
	return again, err
}

// request is a page of reads as one request.
func (r *reader) request(p span) (*wire.MultiRequest, error) {
	req := new(wire.MultiRequest)
	for i := p.from; i < p.to; i++ {
		one := r.asks(i)
		full, err := r.core.Full(one.path)
		if err != nil {
			return nil, err
		}
		op := wire.OpGetChildren
		if one.data {
			op = wire.OpGetData
		}
		req.Ops = append(req.Ops, wire.MultiOp{Op: op, Request: &wire.PathWatchRequest{Path: full}})
	}
	return req, nil
}

// take takes in the answers of a page.
func (r *reader) take(p span, call *transport.Call) error {
	var resp wire.MultiResponse
	if err := call.Decode(&resp); err != nil {
		return err
	}
	if len(resp.Results) != p.to-p.from {
		return fmt.Errorf("%w: %d answers instead of %d", transport.ErrProtocol, len(resp.Results), p.to-p.from)
	}
	for i, result := range resp.Results {
		a := answer{data: result.Data, stat: result.Stat, names: result.Children.Strings()}
		if result.Op == wire.OpError {
			a.err = session.Error(result.Code)
		}
		r.answers[p.from+i] = a
	}
	return nil
}

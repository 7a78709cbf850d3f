package framework

import (
	"bytes"
	"context"
	"errors"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Read says what to read of a node: its data and Stat, or the names of its children.
type Read struct {
	Path     string
	Children bool
}

// ReadResult is what one Read has brought.
type ReadResult struct {
	Read
	Data []byte
	Stat *Stat // nil with Children
	// Names are those of the children, in no order.
	Names []string
	// Zxid is the state that the result shows. Results with the same one show the nodes at
	// one moment.
	Zxid int64
	// Err is an *OpError if this node could not be read: with ErrNoNode, ErrNoAuth or
	// ErrReplyTooLarge.
	Err error
}

// ReadAll reads many nodes in few requests, and returns a result for each read, in their
// order. A node that cannot be read does not harm the others. Then Err is set in its result,
// and the error of ReadAll is nil.
//
// One request has up to 128 reads, and fewer if the nodes are large. Few are on their way if
// the servers take long for them. So locks and other requests of the client have their turn
// in between. Results of several requests can show different states.
//
// Errors: ErrNotConnected, ErrNoNode if the chroot does not exist, ErrInvalidPath of any of
// the reads, ErrAuthFailed, ErrClosed, ErrNilContext, and ctx.Err(). There are no results then.
func (c *Client) ReadAll(ctx context.Context, reads ...Read) ([]ReadResult, error) {
	o, err := c.begin(ctx, "read all", "/", false, false)
	if err != nil {
		return nil, err
	}
	ops, err := o.readOps(reads)
	if err != nil {
		return nil, err
	}
	results, missing := make([]ReadResult, len(reads)), make([]int, len(reads))
	for i := range reads {
		results[i].Read, missing[i] = reads[i], i
	}
	err = o.do(ctx, func(ctx context.Context) error {
		missing, err = o.readMissing(ctx, ops, results, missing)
		return err
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// readOps are reads as the session knows them, or what is wrong with one.
func (b *base) readOps(reads []Read) ([]session.ReadOp, error) {
	ops := make([]session.ReadOp, len(reads))
	for i, read := range reads {
		full, err := b.full(read.Path, false)
		if err != nil {
			return nil, &OpError{Op: readName(read.Children), Path: read.Path, Err: err}
		}
		ops[i] = session.ReadOp{Path: full, Children: read.Children}
	}
	return ops, nil
}

func readName(children bool) string {
	if children {
		return "children"
	}
	return "get"
}

// readMissing asks for the results that are missing, and returns those that still are.
func (o *op) readMissing(ctx context.Context, ops []session.ReadOp, results []ReadResult, missing []int) ([]int, error) {
	if len(missing) == 0 {
		return nil, nil
	}
	c, err := o.conn(ctx)
	if err != nil {
		return missing, err
	}
	answers := make(chan *session.Answer, len(missing)) // as many as there can be, so that none blocks
	reader := session.NewReader(o.session, c, func(a *session.Answer) { answers <- a })
	defer reader.Stop()
	// The same node may be asked for twice.
	places, asked := make(map[session.ReadOp][]int, len(missing)), make([]session.ReadOp, len(missing))
	for i, at := range missing {
		asked[i] = ops[at]
		places[ops[at]] = append(places[ops[at]], at)
	}
	reader.Ask(asked)
	absent := false
	for left := len(asked); left > 0; {
		var a *session.Answer
		select {
		case a = <-answers:
		case <-ctx.Done():
			return missing, contextend.Of(ctx)
		case <-o.session.Life().Done():
			return missing, ErrClosed
		}
		left -= len(a.Ops)
		if a.Err != nil && !errors.Is(a.Err, ErrReplyTooLarge) {
			err = a.Err
			continue
		}
		for i, result := range o.readResults(a) {
			at := places[a.Ops[i]][0]
			places[a.Ops[i]] = places[a.Ops[i]][1:]
			result.Read = results[at].Read
			results[at] = result
			absent = absent || errors.Is(result.Err, ErrNoNode)
		}
	}
	missing = nil
	for _, some := range places {
		missing = append(missing, some...)
	}
	var chroot *chrootError
	if absent && err == nil && errors.As(o.absent(ctx, ErrNoNode), &chroot) {
		err = chroot
	}
	return missing, err
}

// readResults are an answer as callers know it. They share no memory with it.
func (o *op) readResults(a *session.Answer) []ReadResult {
	results := make([]ReadResult, len(a.Ops))
	stats := make([]wire.Stat, len(a.Ops))
	for i, op := range a.Ops {
		r := &results[i]
		r.Read = Read{o.relative(op.Path), op.Children}
		r.Zxid = a.Zxid
		err := a.Err
		if err == nil && a.Results[i].Op == wire.OpError {
			code := wire.OpGetData
			if op.Children {
				code = wire.OpGetChildren
			}
			err = o.session.Refusal(code, op.Path, a.Results[i].Code)
		}
		switch {
		case err != nil:
			r.Err = &OpError{Op: readName(op.Children), Path: op.Path, Err: err}
		case op.Children:
			r.Names = a.Results[i].Children.Strings()
		default:
			stats[i] = a.Results[i].Stat
			r.Data, r.Stat = bytes.Clone(a.Results[i].Data), stat(&stats[i])
		}
	}
	a.Free()
	return results
}

package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Delete removes a node if its version is as given.
//
// Errors: ErrNoNode, ErrNotEmpty, ErrBadVersion, ErrNoAuth (on the parent),
// ErrNotConnected, and ErrOutcomeUnknown unless Idempotent or IfExists is given. With
// these, ErrNoNode means that the chroot does not exist.
//
// Source: Curator's DeleteBuilder.
func (c *Client) Delete(ctx context.Context, path string, version int32, opts ...DeleteOption) error {
	o, err := c.begin(ctx, "delete", path, true, false)
	if err != nil {
		return err
	}
	var options deleteOptions
	for _, opt := range opts {
		if opt == nil {
			return o.fail(fmt.Errorf("%w: option is nil", ErrInvalidArgument))
		}
		opt.delete(&options)
	}
	switch {
	case version < AnyVersion:
		return o.fail(badVersion(version))
	case o.path == "/":
		return o.fail(fmt.Errorf("%w: the root cannot be deleted", ErrInvalidPath))
	}
	o.absentIsFine = options.ifExists || options.idempotent
	o.idempotent = o.absentIsFine
	var before ambiguity
	err = o.do(ctx, func(ctx context.Context) error {
		c, err := o.conn(ctx)
		if err != nil {
			return err
		}
		if options.recursive {
			err = o.deleteTree(ctx, c, version)
		} else {
			err = o.deleteOne(ctx, c, version)
		}
		return before.note(err)
	})
	err = before.end(o, err)
	if err != nil && options.guaranteed && undone(err) {
		o.guarantee(options.recursive)
	}
	return err
}

func (o *op) deleteOne(ctx context.Context, c *transport.Conn, version int32) error {
	return o.session.Round(ctx, c, wire.OpDelete, true, &wire.PathVersionRequest{Path: o.path, Version: version}, wire.Empty{})
}

// deleteTree deletes a node with all below. The version is looked at before
// anything is deleted, and decides in the end. What others create meanwhile is
// deleted as well, for a few turns.
func (o *op) deleteTree(ctx context.Context, c *transport.Conn, version int32) error {
	if version != AnyVersion {
		stat, err := session.Stat(ctx, o.session, c, o.path)
		if err != nil {
			return err
		}
		if stat.Version != version {
			return ErrBadVersion
		}
	}
	var err error
	for range mostTurns {
		if err = o.deleteBelow(ctx, c, o.path); err != nil {
			return err
		}
		if err = o.deleteOne(ctx, c, version); !errors.Is(err, ErrNotEmpty) {
			return err
		}
	}
	return err
}

// undone is whether a delete that failed may have left the node, in a way that
// may pass.
func undone(err error) bool {
	return (Retryable(err) || Ambiguous(err) || ended(err)) && !errors.Is(err, ErrClosed)
}

// guarantee deletes in the background until it is done, or refused.
func (o *op) guarantee(recursive bool) {
	o.name = "guaranteed delete"
	work := func(ctx context.Context) error {
		c, err := o.session.AwaitConn(ctx, true)
		if err != nil {
			return err
		}
		if !recursive {
			return o.deleteNow(ctx, c, o.path)
		}
		err = o.deleteTree(ctx, c, AnyVersion)
		if errors.Is(err, ErrNoNode) {
			return nil
		}
		return err
	}
	o.session.Go(func(ctx context.Context) {
		if err := session.RetryUntilDone(ctx, o.session, work); err != nil && ctx.Err() == nil {
			o.session.Report(cleanup.Refused, o.fail(err))
		}
	})
}

// deleteBelow deletes everything below a path.
func (o *op) deleteBelow(ctx context.Context, c *transport.Conn, path string) error {
	var resp wire.GetChildrenResponse
	err := o.session.Round(ctx, c, wire.OpGetChildren, false, &wire.PathWatchRequest{Path: path}, &resp)
	if err != nil {
		return err
	}
	return o.deleteAll(ctx, c, path, resp.Children)
}

// deleteAll deletes children of a path: first each of them, then below those
// that have children of their own.
func (o *op) deleteAll(ctx context.Context, c *transport.Conn, path string, children []string) error {
	var full []string
	request := func(i int) *transport.Call {
		return transport.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: session.Join(path, children[i]), Version: AnyVersion})
	}
	err := o.session.Each(ctx, c, true, len(children), request, func(i int, _ *transport.Call, err error) error {
		switch {
		case errors.Is(err, ErrNotEmpty):
			full = append(full, session.Join(path, children[i]))
			return nil
		case errors.Is(err, ErrNoNode):
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, child := range full {
		if err := o.on(child).deleteTree(ctx, c, AnyVersion); err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	return nil
}

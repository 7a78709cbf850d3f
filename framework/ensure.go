package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// EnsurePath makes path and what is missing above it, as containers; what
// exists is left alone. It needs no right on nodes above the lowest one that
// exists. Servers that have no containers get persistent nodes.
//
// Errors: ErrNoAuth, ErrNoChildrenForEphemerals, ErrInvalidACL, ErrNotConnected.
//
// Source: Curator's ZKPaths.mkdirs and EnsureContainers.
func (c *Client) EnsurePath(ctx context.Context, path string) error {
	o, err := c.begin(ctx, "ensure path", path, true, false)
	if err != nil {
		return err
	}
	o.idempotent = true
	return o.do(ctx, func(ctx context.Context) error {
		conn, err := o.conn(ctx)
		if err != nil {
			return err
		}
		return o.ensure(ctx, conn, o.path)
	})
}

// ensure makes a path in two round trips, however long it is: one asks for all
// of its ancestors, one makes those that are missing.
func (o *op) ensure(ctx context.Context, c *link.Conn, path string) error {
	var err error
	for range mostTurns {
		var missing []string
		missing, err = o.missing(ctx, c, path)
		if err != nil || len(missing) == 0 {
			return err
		}
		if err = o.makeAll(ctx, c, missing); !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	return err
}

// missing lists what does not exist of a path, from the top. The chroot is not
// ours to make.
func (o *op) missing(ctx context.Context, c *link.Conn, path string) ([]string, error) {
	var paths []string
	for p := path; p != o.plan.chroot && p != "/"; p, _ = PathAndNode(p) {
		paths = append(paths, p)
	}
	if o.plan.chroot != "" {
		paths = append(paths, o.plan.chroot)
	}
	calls := make([]*link.Call, len(paths))
	for i, p := range paths {
		calls[i] = link.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: p})
	}
	if len(calls) == 0 {
		return nil, nil
	}
	if err := o.session.Send(ctx, c, calls...); err != nil {
		return nil, err
	}
	// From the bottom, to stop at the lowest one that exists: those above may be
	// hidden from us.
	for i, call := range calls {
		switch err := o.session.Await(ctx, c, call, false); {
		case err == nil, errors.Is(err, ErrNoAuth): // ZooKeeper 3.9 refuses to describe what is there
			return reversed(paths[:i]), nil
		case !errors.Is(err, ErrNoNode):
			return nil, err
		}
	}
	if o.plan.chroot != "" {
		return nil, fmt.Errorf("chroot %s: %w", o.plan.chroot, ErrNoNode)
	}
	return reversed(paths), nil
}

func reversed(paths []string) []string {
	down := make([]string, 0, len(paths))
	for i := len(paths) - 1; i >= 0; i-- {
		down = append(down, paths[i])
	}
	return down
}

// makeAll makes nodes from the top, in one go.
func (o *op) makeAll(ctx context.Context, c *link.Conn, paths []string) error {
	calls := make([]*link.Call, len(paths))
	asContainers := !o.plan.NoContainers && !o.plain.noContainers.Load()
	for i, p := range paths {
		req := &wire.CreateRequest{Path: p, Data: []byte{}, ACL: wireACL(o.defaultACL(p))}
		code := wire.OpCreate
		if asContainers {
			code, req.Flags = wire.OpCreateContainer, wire.FlagContainer
		}
		calls[i] = link.NewCall(code, req)
	}
	if err := o.session.Send(ctx, c, calls...); err != nil {
		return err
	}
	for _, call := range calls {
		err := o.session.Await(ctx, c, call, true)
		var refused *session.CodeError
		if asContainers && errors.As(err, &refused) && refused.Code == wire.CodeUnimplemented {
			o.plain.noContainers.Store(true)
			return o.makeAll(ctx, c, paths)
		}
		if err != nil && !errors.Is(err, ErrNodeExists) {
			return err
		}
	}
	return nil
}

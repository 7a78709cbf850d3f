package framework

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// EnsurePath makes path and what is missing above it, as containers. It leaves
// nodes that exist as they are, and needs no right on nodes above the lowest one
// that exists. Servers that have no containers get persistent nodes. A node that the
// servers refuse to describe, as ZooKeeper 3.9 does without the right to read, counts
// as there.
//
// Errors: ErrNoAuth, ErrNoChildrenForEphemerals if path or a node above it is
// ephemeral, with the session that has it, ErrInvalidACL, ErrNotConnected, and
// ErrNoNode if others delete the path each time that EnsurePath makes it.
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
func (o *op) ensure(ctx context.Context, c *transport.Conn, path string) error {
	return o.ensureAll(ctx, c, session.Parents{Paths: []string{path}})
}

// ensureAll is ensure for several paths, in the same two round trips.
func (o *op) ensureAll(ctx context.Context, c *transport.Conn, parents session.Parents) error {
	for range mostTurns {
		missing, err := o.missing(ctx, c, parents)
		if err != nil || len(missing) == 0 {
			return err
		}
		raced, err := o.makeAll(ctx, c, missing, parents, o.containers())
		if !errors.Is(err, ErrNoNode) && (err != nil || !raced) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", session.ErrKeepsVanishing, ErrNoNode)
}

// missing lists what does not exist of some paths, each node behind its parent.
// The chroot is not ours to make.
func (o *op) missing(ctx context.Context, c *transport.Conn, parents session.Parents) ([]string, error) {
	asked := make(map[string]error) // what the servers say of each node
	var nodes []string
	for _, path := range parents.Paths {
		for p := range o.upwards(path) {
			if _, known := asked[p]; known {
				break
			}
			asked[p] = nil
			nodes = append(nodes, p)
		}
	}
	looks := len(parents.Of)
	request := func(i int) *transport.Call {
		if i < looks {
			return session.NewList(parents.Of[i])
		}
		return transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: nodes[i-looks]})
	}
	err := o.session.Each(ctx, c, false, looks+len(nodes), request, func(i int, call *transport.Call, err error) error {
		if i < looks {
			return parents.Look(parents.Of[i], call, err)
		}
		if err == nil {
			err = canHaveChildren(nodes[i-looks], call)
		}
		asked[nodes[i-looks]] = err
		return nil
	})
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, path := range parents.Paths {
		above, err := o.missingOf(path, asked)
		if err != nil {
			return nil, err
		}
		missing = append(missing, above...)
	}
	return missing, nil
}

// canHaveChildren looks at what the servers say of a node that is there.
func canHaveChildren(path string, exists *transport.Call) error {
	var there wire.StatResponse
	err := exists.Decode(&there)
	if owner := there.Stat.EphemeralOwner; err == nil && owner != 0 {
		return fmt.Errorf("%w: %s is ephemeral, of session %#x", ErrNoChildrenForEphemerals, path, uint64(owner))
	}
	return err
}

// upwards are a path and its ancestors, up to the chroot.
func (o *op) upwards(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for p := path; p != o.plan.chroot && p != "/"; p, _ = PathAndNode(p) {
			if !yield(p) {
				return
			}
		}
		if o.plan.chroot != "" {
			yield(o.plan.chroot)
		}
	}
}

// missingOf lists what does not exist of one path, from the top, and marks it as
// there, since it is about to be made.
func (o *op) missingOf(path string, asked map[string]error) (missing []string, err error) {
	defer func() { slices.Reverse(missing) }()
	// From the bottom, to stop at the lowest one that exists: those above may be
	// hidden from us.
	for p := range o.upwards(path) {
		switch err := asked[p]; {
		case err == nil, errors.Is(err, ErrNoAuth): // ZooKeeper 3.9 refuses to describe what is there
			return missing, nil
		case !errors.Is(err, ErrNoNode):
			return nil, err
		case p == o.plan.chroot:
			return nil, &chrootError{p, ErrNoNode}
		}
		asked[p] = nil
		missing = append(missing, p)
	}
	return missing, nil
}

// makeAll makes nodes, of which each stands behind its parent, in one go. raced says
// that somebody else has made one of parents.Paths meanwhile, of whatever kind. Unless
// Check has agreed, those of parents.Paths that it may have made go again.
func (o *op) makeAll(ctx context.Context, c *transport.Conn, paths []string, parents session.Parents, asContainers bool) (raced bool, err error) {
	request := func(i int) *transport.Call {
		if i >= len(paths) {
			return session.NewList(parents.Of[i-len(paths)])
		}
		parent := o.makes(paths[i], asContainers)
		return transport.NewCall(parent.Op, parent.Request)
	}
	var made []string // or maybe
	if len(parents.Of) > 0 {
		made = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !slices.Contains(parents.Paths, p) })
	}
	err = o.session.Each(ctx, c, true, len(paths)+len(parents.Of), request, func(i int, call *transport.Call, err error) error {
		switch {
		case i >= len(paths):
			return parents.Look(parents.Of[i-len(paths)], call, err)
		case errors.Is(err, ErrNodeExists):
			raced = raced || slices.Contains(parents.Paths, paths[i])
			made = slices.DeleteFunc(made, func(p string) bool { return p == paths[i] })
			return nil
		}
		return err
	})
	if asContainers && errors.Is(err, ErrUnsupported) {
		return o.makeAll(ctx, c, paths, parents, false)
	}
	if err != nil {
		o.unmake(ctx, c, made)
	}
	return raced, err
}

// unmake deletes nodes that nobody has used meanwhile, in the background if need be. Others
// would take them for parts of a lock that has the path, and servers keep a container that
// never had a child.
func (o *op) unmake(ctx context.Context, c *transport.Conn, paths []string) {
	s := o.session
	request := func(i int) *transport.Call {
		return transport.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: paths[i], Version: -1})
	}
	attempt := func(ctx context.Context, c *transport.Conn) error {
		return s.Each(ctx, c, true, len(paths), request, func(_ int, _ *transport.Call, err error) error {
			if session.Passing(err) || ctx.Err() != nil {
				return err
			}
			return nil // it is gone, or in use
		})
	}
	if len(paths) == 0 || attempt(ctx, c) == nil {
		return
	}
	s.Go(func(ctx context.Context) {
		_ = session.RetryUntilDone(ctx, s, func(ctx context.Context) error {
			c, err := s.AwaitConn(ctx, true)
			if err != nil {
				return err
			}
			return attempt(ctx, c)
		})
	})
}

// containers is whether parents are made as containers.
func (b *base) containers() bool {
	return !b.plan.NoContainers && !b.session.Lacks(wire.OpCreateContainer)
}

// makes is what makes a parent.
func (b *base) makes(path string, asContainer bool) wire.MultiOp {
	req := &wire.CreateRequest{Path: path, Data: []byte{}, ACL: wireACL(b.defaultACL(path))}
	if !asContainer {
		return wire.MultiOp{Op: wire.OpCreate, Request: req}
	}
	req.Flags = wire.FlagContainer
	return wire.MultiOp{Op: wire.OpCreateContainer, Request: req}
}

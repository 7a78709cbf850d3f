package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Create makes a node and returns its path, which a sequential mode or
// Protected extends: with that it must be shorter than MaxPathLength. Nil data is
// Config.DefaultData. A sequential path may end in a slash, so that the name is the
// number alone.
//
// Errors: ErrNodeExists, ErrNoNode (the parent is missing), ErrNoAuth,
// ErrInvalidACL, ErrNoChildrenForEphemerals, ErrInvalidArgument, ErrInvalidPath,
// ErrTooLarge, ErrNotConnected, and ErrOutcomeUnknown if the reply was lost and
// neither Protected nor Idempotent was given.
//
// A nil error means that the node is there, and that it is ephemeral or not as mode
// says. An ephemeral node is one of this client's session. With Idempotent or OrSet, a
// node of another session in its place is ErrNodeExists, and the text says whose it is.
//
// Source: Curator's CreateBuilder.
func (c *Client) Create(ctx context.Context, path string, data []byte, mode Mode, opts ...CreateOption) (string, error) {
	o, err := c.begin(ctx, "create", path, true, mode.sequential())
	if err != nil {
		return "", err
	}
	options, err := createOptionsOf(mode, opts)
	if err != nil {
		return "", o.fail(err)
	}
	cr := &creation{op: o, opts: options, mode: mode, given: path, data: data, target: o.path}
	if cr.opts.protected {
		parent, node := PathAndNode(o.path)
		cr.parent, cr.protection = parent, session.NewProtection(o.session)
		cr.target = session.Join(parent, cr.protection+node)
		if err := ValidatePath(cr.target + digitsOf(mode.sequential())); err != nil {
			return "", o.fail(err)
		}
	}
	if !options.hasACL {
		cr.opts.acl = o.defaultACL(cr.target)
	}
	if err := checkACL(cr.opts.acl); err != nil {
		return "", o.fail(err)
	}
	o.idempotent = cr.opts.protected || cr.opts.idempotent
	var made string
	var before ambiguity
	err = o.do(ctx, func(ctx context.Context) (err error) {
		made, err = cr.attempt(ctx)
		return before.note(err)
	})
	if err != nil {
		if cr.opts.protected {
			if cr.maybeMade {
				cleanup.Sweep(cr.session, cr.madeIn, cr.parent, cr.protection)
			}
			return "", err
		}
		return "", before.end(o, err)
	}
	return o.relative(made), nil
}

// creation is one Create across its attempts.
type creation struct {
	*op
	opts   createOptions
	mode   Mode
	given  string // the path as the caller knows it
	data   []byte
	packed bool // data is what goes to the servers
	target string

	parent     string // of a protected node
	protection string
	maybeMade  bool  // an attempt had no reply
	madeIn     int64 // the session of the last one, 0 if the node outlives sessions

	there *transport.Call // for OrSet: describes the node, right behind the request that makes it
}

// mostTurns bounds how often what an attempt needs can vanish again before it
// is used: a parent that is reaped, a node that is deleted.
const mostTurns = 5

func (cr *creation) attempt(ctx context.Context) (string, error) {
	c, err := cr.conn(ctx)
	if err != nil {
		return "", err
	}
	if err := cr.pack(c); err != nil {
		return "", err
	}
	if cr.opts.protected && cr.maybeMade {
		if made, err := cr.find(ctx, c); made != "" || err != nil {
			return made, err
		}
	}
	var made string
	for range mostTurns {
		made, err = cr.send(ctx, c)
		again := false
		switch {
		case errors.Is(err, ErrNoNode) && (cr.opts.parents || cr.namespace != ""):
			again, err = cr.makeParents(ctx, c, err)
		case errors.Is(err, ErrNodeExists) && cr.opts.orSet:
			again, err = cr.setInstead(ctx, c)
			made = cr.target
		case errors.Is(err, ErrNodeExists) && cr.opts.idempotent:
			err = cr.accept(ctx, c, err)
			made = cr.target
		}
		if !again {
			break
		}
	}
	if Ambiguous(err) {
		if cr.maybeMade = true; cr.mode.ephemeral() {
			cr.madeIn = c.SessionID()
		}
	}
	return made, err
}

// pack compresses the data, if that is to be.
func (cr *creation) pack(c *transport.Conn) error {
	if !cr.opts.compressed || cr.packed {
		return nil
	}
	data, err := cr.compress(cr.given, cr.content(c))
	if err == nil {
		cr.data, cr.packed = data, true
	}
	return err
}

// send sends the request itself.
func (cr *creation) send(ctx context.Context, c *transport.Conn) (string, error) {
	call := cr.request(c)
	calls := []*transport.Call{call}
	if cr.opts.orSet { // in the same round trip
		cr.there = transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: cr.target})
		calls = append(calls, cr.there)
	}
	if err := cr.session.Send(ctx, c, calls...); err != nil {
		return "", err
	}
	err := cr.session.Await(ctx, c, call, true)
	if err != nil {
		return "", err
	}
	var resp wire.CreateResponse // longer replies begin with it
	err = session.Unreadable(true, call.Decode(&resp))
	return resp.Path, err
}

// request is what makes the node.
func (cr *creation) request(c *transport.Conn) *transport.Call {
	req := wire.CreateRequest{Path: cr.target, Data: cr.content(c), ACL: wireACL(cr.opts.acl), Flags: modeFlags[cr.mode]}
	switch {
	case cr.opts.hasTTL:
		ttl := &wire.CreateTTLRequest{CreateRequest: req, TTL: cr.opts.ttl.Milliseconds()}
		ttl.Flags = wire.FlagPersistentTTL
		if cr.mode.sequential() {
			ttl.Flags = wire.FlagPersistentSequenceTTL
		}
		return transport.NewCall(wire.OpCreateTTL, ttl)
	case cr.mode == Container:
		return transport.NewCall(wire.OpCreateContainer, &req)
	}
	return transport.NewCall(wire.OpCreate, &req)
}

// defaultACL is what the configuration gives a node: it knows paths without the chroot.
func (b *base) defaultACL(full string) []ACL { return b.plan.ACL(full[len(b.plan.chroot):]) }

func (cr *creation) content(c *transport.Conn) []byte { return cr.dataOrDefault(c, cr.data) }

// dataOrDefault is what nil data stands for.
func (b *base) dataOrDefault(c *transport.Conn, data []byte) []byte {
	switch {
	case data != nil:
		return data
	case b.plan.DefaultData != nil:
		return b.plan.DefaultData
	}
	return c.LocalIP()
}

// makeParents makes what is missing above, if this Create does so. The
// namespace's own node is made in any case, and a chroot that is missing is told.
func (cr *creation) makeParents(ctx context.Context, c *transport.Conn, missing error) (again bool, err error) {
	above, _ := PathAndNode(cr.target)
	if !cr.opts.parents {
		above = cr.prefix
		if there, err := cr.exists(ctx, c, above); err != nil || there {
			return false, errors.Join(missing, err)
		}
	}
	err = cr.ensure(ctx, c, above)
	var lost *transport.LostError
	switch {
	case err == nil:
		return true, missing
	case cr.maybeMade || !Ambiguous(err):
		return false, err
	case ctx.Err() != nil: // of the node itself it is known that it was not made
		return false, contextend.Of(ctx)
	case errors.As(err, &lost):
		return false, fmt.Errorf("%w: while the parents were made: %w", ErrNotConnected, lost)
	}
	return false, err
}

func (o *op) exists(ctx context.Context, c *transport.Conn, path string) (bool, error) {
	var resp wire.StatResponse
	err := o.session.Round(ctx, c, wire.OpExists, false, &wire.PathWatchRequest{Path: path}, &resp)
	switch {
	case errors.Is(err, ErrNoNode):
		return false, nil
	case errors.Is(err, ErrNoAuth): // ZooKeeper 3.9 refuses to describe what is there
		return true, nil
	}
	return err == nil, err
}

// setInstead is OrSet; again says that the node has vanished.
func (cr *creation) setInstead(ctx context.Context, c *transport.Conn) (again bool, err error) {
	var now wire.StatResponse
	err = cr.session.Await(ctx, c, cr.there, false)
	if err == nil {
		err = cr.there.Decode(&now)
	}
	if err == nil {
		err = cr.otherOwner(c, &now.Stat)
	}
	if err != nil && !errors.Is(err, ErrNoAuth) { // ZooKeeper 3.9 may refuse to describe it. The reply below does
		return errors.Is(err, ErrNoNode), err
	}
	req := &wire.SetDataRequest{Path: cr.target, Data: cr.content(c), Version: AnyVersion}
	if err = cr.session.Round(ctx, c, wire.OpSetData, true, req, &now); err != nil {
		return errors.Is(err, ErrNoNode), err
	}
	if err = cr.otherOwner(c, &now.Stat); err != nil { // it has taken the node's place since
		err = fmt.Errorf("its data was set, but %w", err)
	}
	return false, err
}

func (cr *creation) otherOwner(c *transport.Conn, there *wire.Stat) error {
	return otherOwner(modeFlags[cr.mode], c.SessionID(), there.EphemeralOwner)
}

// accept is Idempotent: a node that is as this Create would have made it.
func (cr *creation) accept(ctx context.Context, c *transport.Conn, exists error) error {
	var resp wire.GetDataResponse
	err := cr.session.Round(ctx, c, wire.OpGetData, false, &wire.PathWatchRequest{Path: cr.target}, &resp)
	switch {
	case err != nil:
		return fmt.Errorf("%w, and reading it: %w", exists, err)
	case resp.Stat.Version != 0 || !bytes.Equal(resp.Data, cr.content(c)):
		return exists
	}
	return cr.otherOwner(c, &resp.Stat)
}

// find looks for what an earlier attempt has made. A node of another owner, as of a
// session that is over, is not what was asked for, and is deleted.
func (cr *creation) find(ctx context.Context, c *transport.Conn) (string, error) {
	ours := func(name []byte) bool { return bytes.HasPrefix(name, []byte(cr.protection)) }
	names, err := session.Find(ctx, cr.session, c, cr.parent, cr.mode.ephemeral(), ours)
	if errors.Is(err, ErrNoNode) {
		return "", nil
	}
	for _, name := range names {
		path := session.Join(cr.parent, name)
		var stat wire.Stat
		stat, err = session.Stat(ctx, cr.session, c, path)
		switch {
		case errors.Is(err, ErrNoNode):
			err = nil
		case errors.Is(err, ErrNoAuth) && !cr.mode.ephemeral():
			return path, nil // by its name
		case err != nil:
		case cr.otherOwner(c, &stat) == nil:
			return path, nil
		default: // first, as the next node may have the same name
			err = cr.deleteNow(ctx, c, path)
		}
		if err != nil {
			return "", err
		}
	}
	return "", err
}

// deleteNow deletes a node of any version that may be gone already.
func (o *op) deleteNow(ctx context.Context, c *transport.Conn, path string) error {
	err := o.session.Round(ctx, c, wire.OpDelete, true, &wire.PathVersionRequest{Path: path, Version: AnyVersion}, wire.Empty{})
	if errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}

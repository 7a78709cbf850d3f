package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Set replaces a node's data if its version is as given. Nil data is stored as
// empty.
//
// Errors: ErrNoNode, ErrBadVersion, ErrNoAuth, ErrTooLarge, ErrNotConnected, and
// ErrOutcomeUnknown if a reply was lost and Idempotent does not settle it. With
// Idempotent the repetition may be refused, since another client has changed the
// node in between. The error is then ErrOutcomeUnknown alone, with the refusal
// in its text.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32, opts ...SetOption) (*Stat, error) {
	o, options, err := c.beginSet(ctx, "set", path, version, opts)
	if err != nil {
		return nil, err
	}
	if data == nil {
		data = []byte{}
	}
	if options.compressed {
		if data, err = c.compress(path, data); err != nil {
			return nil, o.fail(err)
		}
	}
	var resp wire.StatResponse
	var before ambiguity
	err = o.do(ctx, func(ctx context.Context) error {
		err := o.round(ctx, wire.OpSetData, &wire.SetDataRequest{Path: o.path, Data: data, Version: version}, &resp)
		if errors.Is(err, ErrBadVersion) && options.idempotent {
			err = o.acceptData(ctx, data, version, err, &resp)
		}
		return before.note(err)
	})
	if err != nil {
		return nil, before.end(o, err)
	}
	return stat(&resp.Stat), nil
}

func (c *Client) beginSet(ctx context.Context, name, path string, version int32, opts []SetOption) (*op, setOptions, error) {
	var options setOptions
	o, err := c.begin(ctx, name, path, true, false)
	if err != nil {
		return nil, options, err
	}
	if version < AnyVersion {
		return nil, options, o.fail(badVersion(version))
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, options, o.fail(fmt.Errorf("%w: option is nil", ErrInvalidArgument))
		}
		opt.set(&options)
	}
	o.idempotent = options.idempotent
	return o, options, nil
}

func badVersion(version int32) error {
	return fmt.Errorf("%w: version %d: use 0 or more, or AnyVersion", ErrInvalidArgument, version)
}

// acceptData is Idempotent: data that is as this Set would have made it.
//
// Source: Curator's SetDataBuilder.
func (o *op) acceptData(ctx context.Context, data []byte, version int32, refused error, resp *wire.StatResponse) error {
	var now wire.GetDataResponse
	reading := o.on(o.path)
	reading.write = false
	err := reading.round(ctx, wire.OpGetData, &wire.PathWatchRequest{Path: o.path}, &now)
	switch {
	case err != nil:
		return fmt.Errorf("%w, and reading it: %w", refused, err)
	case now.Stat.Version != version+1 || !bytes.Equal(now.Data, data):
		return refused
	}
	resp.Stat = now.Stat
	return nil
}

// SetACL replaces the access list if its version (Stat.Aversion) is as given.
//
// Errors: ErrNoNode, ErrBadVersion, ErrNoAuth, ErrInvalidACL, ErrNotConnected,
// and ErrOutcomeUnknown as from Set.
func (c *Client) SetACL(ctx context.Context, path string, acl []ACL, version int32, opts ...SetOption) (*Stat, error) {
	o, options, err := c.beginSet(ctx, "set ACL", path, version, opts)
	if err != nil {
		return nil, err
	}
	if err := checkACL(acl); err != nil {
		return nil, o.fail(err)
	}
	list := wireACL(acl)
	var resp wire.StatResponse
	var before ambiguity
	err = o.do(ctx, func(ctx context.Context) error {
		err := o.round(ctx, wire.OpSetACL, &wire.SetACLRequest{Path: o.path, ACL: list, Version: version}, &resp)
		if errors.Is(err, ErrBadVersion) && options.idempotent {
			err = o.acceptACL(ctx, list, version, err, &resp)
		}
		return before.note(err)
	})
	if err != nil {
		return nil, before.end(o, err)
	}
	return stat(&resp.Stat), nil
}

// acceptACL is Idempotent for access lists. The server may give a list back in
// other words (identities instead of "auth"), so a list that differs is refused.
func (o *op) acceptACL(ctx context.Context, acl []wire.ACL, version int32, refused error, resp *wire.StatResponse) error {
	var now wire.GetACLResponse
	reading := o.on(o.path)
	reading.write = false
	err := reading.round(ctx, wire.OpGetACL, &wire.PathRequest{Path: o.path}, &now)
	switch {
	case err != nil:
		return fmt.Errorf("%w, and reading it: %w", refused, err)
	case now.Stat.Aversion != version+1 || !slices.Equal(now.ACL, acl):
		return refused
	}
	resp.Stat = now.Stat
	return nil
}

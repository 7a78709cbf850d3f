package framework

import (
	"context"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Get reads a node's data.
//
// Errors: ErrNoNode, ErrNoAuth, ErrNotConnected, and with Compressed those of
// Config.Compression.
func (c *Client) Get(ctx context.Context, path string, opts ...GetOption) ([]byte, *Stat, error) {
	o, options, err := c.beginGet(ctx, "get", path, opts)
	if err != nil {
		return nil, nil, err
	}
	var resp wire.GetDataResponse
	if err := o.read(ctx, wire.OpGetData, &resp); err != nil {
		return nil, nil, err
	}
	data, err := o.decompressed(path, resp.Data, options)
	if err != nil {
		return nil, nil, err
	}
	return data, stat(&resp.Stat), nil
}

func (c *Client) beginGet(ctx context.Context, name, path string, opts []GetOption) (*op, getOptions, error) {
	o, err := c.begin(ctx, name, path, false, false)
	if err != nil {
		return nil, getOptions{}, err
	}
	options, err := getOptionsOf(opts)
	if err != nil {
		return nil, options, o.fail(err)
	}
	return o, options, nil
}

// Exists returns false and no error for a node of which a server has said that it
// is absent. From ZooKeeper 3.9 on it needs the right to read a node that is
// there; before, no right is needed.
//
// Errors: ErrNoAuth (the node exists), ErrNotConnected, and ErrNoNode if the chroot
// does not exist.
func (c *Client) Exists(ctx context.Context, path string) (bool, *Stat, error) {
	o, err := c.begin(ctx, "exists", path, false, false)
	if err != nil {
		return false, nil, err
	}
	var resp wire.StatResponse
	there := false
	o.absentIsFine = true
	err = o.do(ctx, func(ctx context.Context) error {
		err := o.round(ctx, wire.OpExists, &wire.PathWatchRequest{Path: o.path}, &resp)
		there = err == nil
		return err
	})
	if err != nil || !there {
		return false, nil, err
	}
	return true, stat(&resp.Stat), nil
}

// Children lists the names below path, in no order.
//
// Errors: ErrNoNode, ErrNoAuth, ErrNotConnected.
func (c *Client) Children(ctx context.Context, path string) ([]string, *Stat, error) {
	var resp wire.GetChildren2Response
	if err := c.read(ctx, "children", path, wire.OpGetChildren2, &resp); err != nil {
		return nil, nil, err
	}
	return resp.Children, stat(&resp.Stat), nil
}

func (c *Client) read(ctx context.Context, name, path string, code wire.Op, resp wire.Record) error {
	o, err := c.begin(ctx, name, path, false, false)
	if err != nil {
		return err
	}
	return o.read(ctx, code, resp)
}

func (o *op) read(ctx context.Context, code wire.Op, resp wire.Record) error {
	return o.do(ctx, func(ctx context.Context) error {
		return o.round(ctx, code, &wire.PathWatchRequest{Path: o.path}, resp)
	})
}

// GetACL reads the access list.
//
// Errors: ErrNoNode, ErrNoAuth, ErrNotConnected.
func (c *Client) GetACL(ctx context.Context, path string) ([]ACL, *Stat, error) {
	o, err := c.begin(ctx, "get ACL", path, false, false)
	if err != nil {
		return nil, nil, err
	}
	var resp wire.GetACLResponse
	err = o.do(ctx, func(ctx context.Context) error {
		return o.round(ctx, wire.OpGetACL, &wire.PathRequest{Path: o.path}, &resp)
	})
	if err != nil {
		return nil, nil, err
	}
	acl := make([]ACL, len(resp.ACL))
	for i, a := range resp.ACL {
		acl[i] = ACL(a)
	}
	return acl, stat(&resp.Stat), nil
}

// Sync waits until the server that the client reads from has caught up with the
// ensemble leader. Reads that follow see every write that was finished before.
//
// There is one exception. A follower may have told its client of a write that the
// leader has not applied yet, and the leader does not wait for that before it
// answers. To read such a write without exception, make a write of any kind before
// the read, in place of the sync.
//
// Source: ZooKeeper, whose servers do not vote on a sync.
func (c *Client) Sync(ctx context.Context, path string) error {
	o, err := c.begin(ctx, "sync", path, false, false)
	if err != nil {
		return err
	}
	return o.do(ctx, func(ctx context.Context) error {
		return o.round(ctx, wire.OpSync, &wire.PathRequest{Path: o.path}, &wire.PathResponse{})
	})
}

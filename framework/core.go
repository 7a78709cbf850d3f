package framework

import (
	"context"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Core is for the recipes of this module: nobody else can make a key. The core is nil for a
// client that is nil or zero, and the tracer for one without.
func (c *Client) Core(session.Key) (session.Core, monitor.Tracer) {
	switch {
	case c.unusable():
		return nil, nil
	case c.plan.Tracer == nil:
		return core{c.base}, nil
	}
	return core{c.base}, tracer{c.plan.Tracer}
}

// core is what the recipes of this module do with a client beyond its API.
type core struct{ base *base }

func (c core) Session() *session.Session { return c.base.session }

func (c core) Full(path string) (string, error) { return c.base.full(path, false) }

func (c core) Relative(full string) string { return c.base.relative(full) }

func (c core) ACL(full string) []wire.ACL { return wireACL(c.base.defaultACL(full)) }

func (c core) Data(conn *transport.Conn) []byte {
	if conn == nil && c.base.plan.DefaultData == nil {
		return nil // the address that a connection would have
	}
	return c.base.dataOrDefault(conn, nil)
}

func (c core) Parent(full string) wire.MultiOp { return c.base.makes(full, c.base.containers()) }

func (c core) Read(ctx context.Context, name, full string, attempt func(context.Context, *transport.Conn) error) error {
	o := &op{base: c.base, name: name, path: full}
	return o.do(ctx, func(ctx context.Context) error {
		conn, err := o.conn(ctx)
		if err != nil {
			return err
		}
		return attempt(ctx, conn)
	})
}

func (c core) Ensure(ctx context.Context, conn *transport.Conn, parents session.Parents) error {
	return (&op{base: c.base, path: parents.Paths[0]}).ensureAll(ctx, conn, parents)
}

func (c core) CheckChroot(ctx context.Context) error { return (&op{base: c.base}).checkChroot(ctx) }

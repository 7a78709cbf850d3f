package framework

import (
	"context"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Core is for the recipes of this module: nobody else can make a key. It is nil for a
// client that is nil or zero.
func (c *Client) Core(session.Key) session.Core {
	if c.unusable() {
		return nil
	}
	return core{c.scope}
}

// core is what the recipes of this module do with a client beyond its API.
type core struct{ scope *scope }

func (c core) Session() *session.Session { return c.scope.session }

func (c core) Full(path string) (string, error) { return c.scope.full(path, false) }

func (c core) Relative(full string) string { return c.scope.relative(full) }

func (c core) ACL(full string) []wire.ACL { return wireACL(c.scope.defaultACL(full)) }

func (c core) Data(conn *transport.Conn) []byte {
	if conn == nil && c.scope.plan.DefaultData == nil {
		return nil // the address that a connection would have
	}
	return c.scope.dataOrDefault(conn, nil)
}

func (c core) Parent(full string) wire.MultiOp { return c.scope.makes(full, c.scope.containers()) }

func (c core) Read(ctx context.Context, name, full string, attempt func(context.Context, *transport.Conn) error) error {
	o := &op{scope: c.scope, name: name, path: full}
	return o.do(ctx, func(ctx context.Context) error {
		conn, err := o.conn(ctx)
		if err != nil {
			return err
		}
		return attempt(ctx, conn)
	})
}

func (c core) Ensure(ctx context.Context, conn *transport.Conn, parents session.Parents) error {
	return (&op{scope: c.scope, path: parents.Paths[0]}).ensureAll(ctx, conn, parents)
}

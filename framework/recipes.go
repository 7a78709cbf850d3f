package framework

import (
	"context"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

func init() {
	session.ScopeOf = func(client any) *session.Scope {
		c, _ := client.(*Client)
		if c.unusable() {
			return nil
		}
		return c.door
	}
}

// newDoor is what package locks sees of a client.
func newDoor(sc *scope) *session.Scope {
	return &session.Scope{
		Session:  sc.session,
		Full:     func(path string) (string, error) { return sc.full(path, false) },
		Relative: sc.relative,
		ACL:      func(full string) []wire.ACL { return wireACL(sc.defaultACL(full)) },
		Data:     func(c *transport.Conn) []byte { return sc.dataOrDefault(c, nil) },
		Read: func(ctx context.Context, name, full string, attempt func(context.Context, *transport.Conn) error) error {
			o := &op{scope: sc, name: name, path: full}
			return o.do(ctx, func(ctx context.Context) error {
				c, err := o.conn(ctx)
				if err != nil {
					return err
				}
				return attempt(ctx, c)
			})
		},
		Begin: func() any { return Ops{scope: sc} },
		Guarded: func(ops any, guards []session.Guard) any {
			return ops.(Ops).guarded(guards) //nolint:forcetypeassert // recipes pass nothing else
		},
		Ensure: func(ctx context.Context, c *transport.Conn, parents session.Parents) error {
			return (&op{scope: sc, path: parents.Paths[0]}).ensureAll(ctx, c, parents)
		},
	}
}

package session

import (
	"context"
	"strings"

	"github.com/paddock-zk/paddock/internal/transport"
)

// Requests of different locks that are sent at the same moment leave together, see
// transport.Joint. One that is sent while no other is under way leaves as it is.

// CreateJointly sends a creation of a node below parent, and the list of the parent's
// children behind it. With makeParent the parent may be made in the same transaction. Each call
// ends for itself. After an error none was sent.
func CreateJointly(ctx context.Context, core Core, c *transport.Conn, parent string, makeParent bool, create, list *transport.Call) error {
	s := core.Session()
	if create.Size() > transport.MostJointSize {
		return s.Send(ctx, c, create, list)
	}
	s.random.Stagger(create.Frame())
	if err := s.admit(ctx, create, list); err != nil {
		return err
	}
	sent, err := c.SendAlone(parent, create, list)
	if !sent {
		err = join(core, c, parent, makeParent, create, list)
	}
	if err != nil {
		list.Discard()
		return lostError(err, false)
	}
	return nil
}

func join(core Core, c *transport.Conn, parent string, makeParent bool, create, list *transport.Call) error {
	j := &transport.Joint{Write: create, List: list, Parent: parent}
	if makeParent {
		panicked := true
		defer func() { // in a function of the user's
			if panicked {
				list.Discard()
			}
		}()
		j.Make = core.Parent(parent)
		panicked = false
	}
	return c.Join(j)
}

// DeleteJointly is SendAtOnce for the deletion of a node.
func DeleteJointly(s *Session, c *transport.Conn, path string, deletion *transport.Call) error {
	s.window.take(1)
	deletion.Occupy(s.window, 1)
	sent, err := c.SendAlone("", deletion)
	if !sent {
		err = c.Join(&transport.Joint{Write: deletion, Parent: path[:max(1, strings.LastIndexByte(path, '/'))]})
	}
	if err != nil {
		deletion.Discard()
		return lostError(err, false)
	}
	return nil
}

package session

import (
	"strings"

	"github.com/paddock-zk/paddock/internal/transport"
)

// Requests of different locks that are sent at the same moment leave together, see
// transport.Joint. One that is sent while no other is under way leaves as it is.

// DeleteJointly is SendInTurn for the deletion of a node.
func DeleteJointly(s *Session, c *transport.Conn, path string, deletion *transport.Call) error {
	if err := s.free(deletion); err != nil {
		return err
	}
	if s.window.free(deletion) {
		return queued(deletion, deleteJointly(c, path, deletion))
	}
	s.inTurn(deletion, func() error { return deleteJointly(c, path, deletion) })
	return nil
}

func deleteJointly(c *transport.Conn, path string, deletion *transport.Call) error {
	sent, err := c.SendAlone("", deletion)
	if !sent {
		err = c.Join(&transport.Joint{Write: deletion, Parent: path[:max(1, strings.LastIndexByte(path, '/'))]})
	}
	return err
}

package session

import (
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport/random"
)

// NewProtection returns a prefix for the name of one protected node.
func NewProtection(s *Session) string {
	var u [16]byte
	s.random.Fill(u[:])
	return nodename.Random(u)
}

// NewTag returns another one than all others.
func NewTag(s *Session) (t nodename.Tag) {
	s.random.Fill(t[:])
	return t
}

// Protection is NewProtection for a node of the owner with that tag, who yields or not.
func Protection(s *Session, t nodename.Tag, yields bool) string {
	var u [10]byte
	s.random.For(t[:]).Fill(u[:])
	return nodename.Owned(u, t, yields)
}

// RandomOf is what is drawn from for an owner.
func RandomOf(s *Session, t nodename.Tag) *random.Source { return s.random.For(t[:]) }

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

// NewTag returns the tag of an owner that begins now.
func NewTag(s *Session) nodename.Tag {
	var rnd [3]byte
	s.random.Fill(rnd[:])
	return nodename.NewTag(s.transport.LastZxid(), rnd)
}

// Protection is NewProtection for a node of an owner.
func Protection(s *Session, owner nodename.Owner) string {
	var u [10]byte
	s.random.For(owner.Tag[:]).Fill(u[:])
	return nodename.Owned(u, owner)
}

// RandomOf is what is drawn from for an owner.
func RandomOf(s *Session, t nodename.Tag) *random.Source { return s.random.For(t[:]) }

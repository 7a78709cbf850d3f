package framework

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Stat is a node's metadata, as in go-zookeeper.
type Stat = zk.Stat

// AnyVersion matches every version.
const AnyVersion int32 = -1

// Mode is the kind of a node.
type Mode int

// The kinds of nodes.
const (
	// Persistent stays until it is deleted.
	Persistent Mode = iota
	// PersistentSequential has a number of ten digits appended to its name.
	PersistentSequential
	// Ephemeral goes with the session.
	Ephemeral
	// EphemeralSequential is both.
	EphemeralSequential
	// Container is removed by the server some time after its last child.
	Container
)

func (m Mode) sequential() bool { return m == PersistentSequential || m == EphemeralSequential }
func (m Mode) ephemeral() bool  { return m == Ephemeral || m == EphemeralSequential }

var modeFlags = map[Mode]wire.Flags{
	Persistent:           wire.FlagPersistent,
	PersistentSequential: wire.FlagSequence,
	Ephemeral:            wire.FlagEphemeral,
	EphemeralSequential:  wire.FlagEphemeralSequence,
	Container:            wire.FlagContainer,
}

// otherOwner says whose a node is that stands where a session would make one with
// flags, and is nil if it is as that would be. Containers and nodes with a time to live
// look as persistent ones do.
//
// Source: ZooKeeper's DataNode, which shows clients no owner but a session.
func otherOwner(flags wire.Flags, session, found int64) error {
	ephemeral := flags == wire.FlagEphemeral || flags == wire.FlagEphemeralSequence
	switch {
	case ephemeral && found == session, !ephemeral && found == 0:
		return nil
	case found == 0:
		return fmt.Errorf("%w: it is not ephemeral, and stays when this session ends: delete it first", ErrNodeExists)
	case found == session:
		return fmt.Errorf("%w: it is ephemeral, and goes with this session: delete it first", ErrNodeExists)
	}
	return fmt.Errorf("%w: it is an ephemeral node of session %#x, and goes with that one (this session is %#x): wait until it has gone, or delete it",
		ErrNodeExists, uint64(found), uint64(session))
}

// wireACL is a list for a request. Nil would be malformed, so it becomes empty,
// which the server refuses with a clear code.
func wireACL(acl []ACL) []wire.ACL {
	list := make([]wire.ACL, len(acl))
	for i, a := range acl {
		list[i] = wire.ACL(a)
	}
	return list
}

func stat(s *wire.Stat) *Stat { return (*Stat)(s) }

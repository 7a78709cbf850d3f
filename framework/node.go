package framework

import (
	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Stat is a node's metadata, as in go-zookeeper.
type Stat = zk.Stat

// ACL is one entry of an access list, as in go-zookeeper.
type ACL = zk.ACL

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

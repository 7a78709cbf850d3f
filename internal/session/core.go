package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Key opens what a client has for the recipes of this module. Nobody outside can name
// its type.
type Key struct{ _ struct{} }

// Core is what recipes need of a client: its session, and how it sees paths and makes
// nodes.
type Core interface {
	Session() *Session
	// Full turns a path of the caller's into one of the servers', or says what
	// is wrong with it.
	Full(path string) (string, error)
	// Relative is the way back.
	Relative(full string) string
	// ACL is the access list of a node to be made.
	ACL(full string) []wire.ACL
	// Data is what is written for nil data.
	Data(c *transport.Conn) []byte
	// Parent is what makes a missing parent of nodes.
	Parent(full string) wire.MultiOp
	// Read runs a read on a path by the client's retry policy, each attempt on the
	// present connection. Its error is the one that calls of the client return.
	Read(ctx context.Context, name, full string, attempt func(context.Context, *transport.Conn) error) error
	// Ensure makes paths and what is missing above them. Its error matches
	// ErrKeepsVanishing if others delete them as often as they are made.
	Ensure(ctx context.Context, c *transport.Conn, parents Parents) error
	// CheckChroot returns an error that names the chroot if that does not exist. It asks
	// nothing once the chroot has been there.
	CheckChroot(ctx context.Context) error
}

// Parents are nodes to be made, in full, and a check that is made meanwhile.
type Parents struct {
	Paths []string
	// Of are nodes whose children Check gets to see: right before anything is made and
	// right after that, in the same round trips. An error of Check ends the creation.
	Of    []string
	Check func(of string, children wire.Names) error
}

// Look passes on to Check how the request for the children of one went. Children
// that cannot be seen are not checked.
func (p *Parents) Look(of string, list *transport.Call, err error) error {
	var children wire.Names
	if err == nil {
		err = list.Decode(&children)
	}
	switch {
	case err == nil:
		return p.Check(of, children)
	case Unseen(err):
		return nil
	}
	return err
}

// Unseen is whether a list has failed since the children cannot be seen.
func Unseen(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) || errors.Is(err, ErrReplyTooLarge)
}

// Guard is the condition that a node exists, at any version. A guard may also delete the
// node.
type Guard struct {
	Path      string // in full
	Delete    bool
	Exclusive bool // while the node is there, nobody else can hold the lock
}

// GuardError says which guard refused a transaction, and why.
type GuardError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *GuardError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap gives the reason.
func (e *GuardError) Unwrap() error { return e.Err }

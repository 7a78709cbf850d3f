package session

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Scope is what recipes need of a client: its session, and how it sees paths
// and makes nodes.
type Scope struct {
	Session *Session
	// Full turns a path of the caller's into one of the servers', or says what
	// is wrong with it.
	Full func(path string) (string, error)
	// Relative is the way back.
	Relative func(full string) string
	// ACL is the access list of a node to be made.
	ACL func(full string) []wire.ACL
	// Data is what is written for nil data.
	Data func(c *transport.Conn) []byte
	// Read runs a read on a path by the client's retry policy, each attempt on the
	// connection that there is. Its error is what calls of the client return.
	Read func(ctx context.Context, name, full string, attempt func(context.Context, *transport.Conn) error) error
	// Begin is an empty framework.Ops.
	Begin func() any
	// Guarded is a *framework.Transaction of a framework.Ops, applied only if the
	// guards hold. A guard that does not is a *GuardError.
	Guarded func(ops any, guards []Guard) any
	// Ensure makes paths and what is missing above them. Its error matches
	// ErrKeepsVanishing if others delete them as often as they are made.
	Ensure func(ctx context.Context, c *transport.Conn, parents Parents) error
}

// Parents are nodes to be made, in full, and what is to be looked at meanwhile.
type Parents struct {
	Paths []string
	// Of are nodes whose children Check is shown: right before anything is made
	// and right behind that, in the same round trips. An error of Check ends it.
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
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNoAuth), errors.Is(err, ErrReplyTooLarge):
		return nil
	}
	return err
}

// ScopeOf returns the scope of a *framework.Client, nil if that is nil or zero.
// Package framework sets it: this is the one door between it and the recipes
// that is not part of its API.
var ScopeOf func(client any) *Scope

// Guard is the condition that a node exists, at any version, which it may
// delete.
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

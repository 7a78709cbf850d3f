package session

import (
	"context"

	"github.com/paddock-zk/paddock/internal/link"
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
	Data func(c *link.Conn) []byte
	// Read runs a read on a path by the client's retry policy. Its error is what
	// calls of the client return.
	Read func(ctx context.Context, name, full string, attempt func(context.Context) error) error
	// Ensure makes a path and what is missing above it.
	Ensure func(ctx context.Context, c *link.Conn, full string) error
}

// ScopeOf returns the scope of a *framework.Client, nil if that is nil or zero.
// Package framework sets it: this is the one door between it and the recipes
// that is not part of its API.
var ScopeOf func(client any) *Scope

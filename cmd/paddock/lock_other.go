//go:build !unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// command is what runs under a lock.
type command struct {
	env   []string
	grace time.Duration
}

// newCommand refuses: without process groups and signals nothing could stop a command in
// time.
func newCommand(*invocation) (*command, error) {
	return nil, errors.New("lock runs on Unix only: elsewhere a command cannot be stopped before the lock is granted to somebody else")
}

func (c *command) run(context.Context, *framework.Client, *locks.Hold, func(error)) error { return nil }

func guard() int { return exitFailed }

// sizeOf is the size of a terminal, which is not known here.
func sizeOf(any) (columns, rows int) { return 0, 0 }

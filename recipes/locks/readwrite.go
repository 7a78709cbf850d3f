package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// Whom readers and writers wait for is in znode/rule.go.

// InterProcessReadWriteLock has two sides in one fair queue: readers together,
// writers alone. A reader waits for every writer ahead of it, a writer for
// everybody, so neither starves.
//
// Source: Curator's InterProcessReadWriteLock.
type InterProcessReadWriteLock struct {
	_           noCopy
	read, write *InterProcessMutex
}

// NewInterProcessReadWriteLock returns the lock at path. No other kind of lock may use
// that path. Like NewInterProcessMutex it sends nothing and cannot fail.
func NewInterProcessReadWriteLock(c *framework.Client, path string, opts ...Option) *InterProcessReadWriteLock {
	kinds := []znode.Kind{znode.Read, znode.Write}
	return &InterProcessReadWriteLock{
		read:  newMutex(c, path, opts, znode.Read, kinds, znode.Readers),
		write: newMutex(c, path, opts, znode.Write, kinds, znode.Exclusive),
	}
}

// ReadLock is the side for readers. To acquire it with a write hold's context is the
// downgrade: it is granted at once. After the write hold's release the read hold remains,
// with no other writer in between.
func (l *InterProcessReadWriteLock) ReadLock() *InterProcessMutex {
	if l == nil {
		return nil
	}
	return l.read
}

// WriteLock is the side for one writer. To acquire it with a read hold's context is
// ErrDeadlock at once, unless the read hold comes from a write hold.
func (l *InterProcessReadWriteLock) WriteLock() *InterProcessMutex {
	if l == nil {
		return nil
	}
	return l.write
}

// String is the kind of the lock and its path, in full, for logs.
func (l *InterProcessReadWriteLock) String() string {
	if l.WriteLock().isZero() {
		return label("read/write lock", "", true)
	}
	return label("read/write lock", l.write.queue.Lock, false)
}

// downgrade takes the read side for an owner of the write side. The node gets the digits
// of the write node, so it stands ahead of the writers that wait.
//
// Source: Curator since 5.6 (CURATOR-621); earlier peers put the read node at
// the end of the queue and can be overtaken by a waiting writer.
func (m *InterProcessMutex) downgrade(ctx context.Context, write *ownership) (*Hold, error) {
	_, _ = write.now() // a deadline may have passed unseen
	// The read node stands behind the write node and has the lock together with it. So
	// the write node must not be handed to another writer of this process.
	if err := write.pin(); err != nil {
		return nil, err
	}
	node, err := acquire.CreateBeside(ctx, &m.queue.Queue, &write.node)
	if err != nil {
		return nil, write.lossIn(fmt.Errorf("downgrade: %w", err), node.Path())
	}
	read := m.queue.own(node)
	if err := acquire.Track(ctx, read); err != nil {
		read.node.Remove()
		return nil, write.lossIn(err, node.Path())
	}
	return newNodeHold(ctx, read)
}

// lossIn says what a failure to get a node means to the ownership on which the
// acquisition relies. The failure may show that the ownership is over.
func (o *ownership) lossIn(err error, node string) error {
	if state, lost := o.now(); state == Lost {
		return lost
	}
	switch {
	case errors.Is(err, session.ErrSessionOver): // what was just made is gone, and the session is not
		return lostError(node, ErrNodeDeleted)
	case errors.Is(err, framework.ErrNoNode): // what it was to stand below is gone, and so is the ownership's node
		return lostError(o.node.Path(), ErrNodeDeleted)
	}
	return err
}

package locks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// InterProcessReadWriteLock has two sides in one fair queue: readers together,
// writers alone. A reader waits for every writer ahead of it, a writer for
// everybody, so neither starves.
//
// Source: Curator's InterProcessReadWriteLock.
type InterProcessReadWriteLock struct{ read, write *InterProcessMutex }

// NewInterProcessReadWriteLock is the lock at path, which belongs to it alone.
// It sends nothing and cannot fail, as NewInterProcessMutex.
func NewInterProcessReadWriteLock(c *framework.Client, path string, opts ...Option) *InterProcessReadWriteLock {
	marks := []string{readName, writeName}
	return &InterProcessReadWriteLock{
		read:  newMutex(c, path, opts, readName, marks, aheadRead),
		write: newMutex(c, path, opts, writeName, marks, aheadExclusive),
	}
}

// ReadLock is the side for readers. Acquired with a write hold's context it is
// the downgrade: granted at once, and after the write hold's release the read
// hold remains, with no other writer in between.
func (l *InterProcessReadWriteLock) ReadLock() *InterProcessMutex { return l.read }

// WriteLock is the side for one writer. Acquired with a read hold's context it
// is ErrDeadlock at once, unless a write hold is above that.
func (l *InterProcessReadWriteLock) WriteLock() *InterProcessMutex { return l.write }

// downgrade takes the read side for who has the write side. The node gets the
// digits of the write node, so that writers who wait have it ahead of them.
//
// Source: Curator since 5.6 (CURATOR-621); earlier peers put the read node at
// the end of the queue and can be overtaken by a waiting writer.
func (m *InterProcessMutex) downgrade(ctx context.Context, write *ownership) (hold *Hold, err error) {
	if state, err := write.now(); state == Lost {
		return nil, err
	}
	// The read node stands behind the write node and has the lock together with
	// it: no other writer of this process may be handed that.
	if err := write.keep(); err != nil {
		return nil, err
	}
	held := write.contender
	p := &contender{queue: &m.queue, tag: held.tag, session: held.session, protection: m.scope.Session.Protection(held.tag, false)}
	var o *ownership
	defer func() {
		if o == nil {
			p.leave()
		}
		unclaimed(&hold, &o)
	}()
	digits := held.name[strings.LastIndex(held.name, writeName)+len(writeName):]
	if err := p.enterAs(ctx, held.session, digits); err != nil {
		return nil, write.lossIn(err, p)
	}
	read := m.own(p)
	if err := p.track(ctx, read, nil); err != nil {
		return nil, write.lossIn(err, p)
	}
	o = read
	return m.hold(ctx, o)
}

// lossIn is what a failure to get a contender means to who wants it on the strength
// of an ownership: whatever else it says, the ownership may be over.
func (o *ownership) lossIn(err error, p *contender) error {
	if state, lost := o.now(); state == Lost {
		return lost
	}
	switch {
	case errors.Is(err, session.ErrSessionOver): // what was just made is gone, and the session is not
		return lostError(p.node(), ErrNodeDeleted)
	case errors.Is(err, framework.ErrNoNode): // what it was to stand below is gone, and so is the ownership's node
		return lostError(o.node(), ErrNodeDeleted)
	}
	return err
}

// enterAs creates our node with digits that are given. It is repeated until it
// is known to have been done, or the session is over.
func (p *contender) enterAs(ctx context.Context, of int64, digits string) error {
	s := p.scope.Session
	node := p.protection + p.kind + digits
	path := session.Below(p.path, node)
	for failures := 0; ; failures++ {
		c, err := s.ConnIn(ctx, of)
		if err != nil {
			return err
		}
		create := transport.NewCall(wire.OpCreate2, &wire.CreateRequest{
			Path: path, Data: p.data(c), ACL: p.scope.ACL(path), Flags: wire.FlagEphemeral,
		})
		if err = s.Send(ctx, c, create); err == nil {
			before := p.unknown
			p.conn, p.unknown = c, create
			if err = s.Await(ctx, c, create, true); !framework.Ambiguous(err) {
				p.unknown = before
			}
		}
		if err == nil || errors.Is(err, framework.ErrNodeExists) { // after a lost reply: nobody else has the name
			p.name, p.full, p.unknown = node, path, nil
			return nil
		}
		if ctx.Err() != nil || !passing(err) {
			return fmt.Errorf("downgrade: %w", err)
		}
		if err := pause(ctx, failures); err != nil {
			return err
		}
	}
}

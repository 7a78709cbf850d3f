package acquire

import (
	"context"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
)

// Single is an attempt in one queue: for a mutex, or a side of a read/write lock. After
// Run has failed, another goroutine may Adopt it and Run it again. Otherwise the caller
// has to Leave.
type Single struct {
	Attempt
	contender   [1]contender
	wanted      [1]*contender
	position    Position // the latest that showed a node ahead
	predecessor predecessorWatch
}

// Init makes an attempt for a node with a tag.
func (s *Single) Init(q *Queue, tag nodename.Tag, host Host, observer Observer) {
	s.contender[0] = contender{queue: q, tag: tag}
	s.wanted[0] = &s.contender[0]
	s.init(s.contender[:], host, observer, s)
	s.resumable = true
}

func (s *Single) begin(*Attempt) {}

func (s *Single) precheck(ctx context.Context, a *Attempt, c *transport.Conn) error {
	if err := a.listBefore(ctx, c, s.wanted[:]); err != nil {
		return err
	}
	k := s.wanted[0]
	defer k.drop()
	return a.mayBeFirst(k, &s.position)
}

func (s *Single) plan(*Attempt) plan {
	p := plan{list: s.wanted[:]}
	if s.wanted[0].phase == absent {
		p.create = s.wanted[:]
	}
	return p
}

func (s *Single) failed(err error) error { return err }

func (s *Single) judge(a *Attempt) (step, error) {
	k := s.wanted[0]
	if k.phase == absent { // after a creation without an outcome
		k.drop()
		return again, nil
	}
	defer k.drop()
	at, ahead, err := a.locate(k)
	switch {
	case err != nil:
		return again, err
	case ahead < 0:
		s.predecessor.granted()
		return granted, nil
	}
	s.position.set(k, at, ahead)
	a.blocked(k, &s.position)
	if a.once {
		return waiting, ErrNotAcquired
	}
	return waiting, nil
}

func (s *Single) wait(ctx context.Context, a *Attempt, c *transport.Conn) (bool, error) {
	k := s.wanted[0]
	a.tellWait(k.queue, k.path, s.position.At, s.position.Ahead)
	if q := k.queue; q.EventGrants && (q.LookAhead || s.position.At == 1) {
		return s.predecessor.wait(ctx, a, c, k, &s.position)
	}
	return false, a.waitFor(ctx, c, k, &s.position)
}

func (s *Single) wantedNodes(*Attempt) []*contender { return s.wanted[:] }

func (s *Single) tracked(node *session.TrackedNode) { s.predecessor.granting.track(node) }

func (s *Single) unwatch(*Attempt) { s.predecessor.stop() }

func (s *Single) obstacle(*Attempt) *Obstacle {
	if s.position.Ahead == "" {
		return nil
	}
	return s.position.obstacle(s.wanted[0].queue)
}

// Adopt lets the attempt go on for another host, with a Queue that makes the same node.
// Run must not be running.
func (s *Single) Adopt(q *Queue, host Host, observer Observer) {
	s.contender[0].queue, s.position = q, Position{}
	s.host, s.observer, s.Attempt.obstacle = host, observer, nil
}

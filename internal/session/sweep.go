package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// swept is where sweeps look: below one parent, for nodes of one session.
type swept struct {
	session int64
	parent  string
}

// Sweep deletes in the background what stands under parent with a protection. It
// is for ephemeral nodes of the session given. Sweeps of one parent share their
// lists.
func (s *Session) Sweep(session int64, parent, protection string) {
	where := swept{session, parent}
	s.mu.Lock()
	wanted, running := s.sweeps[where]
	s.sweeps[where] = append(wanted, protection)
	s.mu.Unlock()
	if running {
		return
	}
	if !s.Go(func(ctx context.Context) { s.sweep(ctx, where) }) {
		s.mu.Lock()
		delete(s.sweeps, where)
		s.mu.Unlock()
	}
}

// sweep looks for protections for as long as there are any.
func (s *Session) sweep(ctx context.Context, where swept) {
	wanted := make(map[string]bool)
	reported := false
	for pause := firstAgain; ; {
		if !s.takeSweeps(where, wanted) {
			return
		}
		err := s.sweepOnce(ctx, where, wanted)
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			clear(wanted)
			pause = firstAgain
			continue
		case errors.Is(err, ErrSessionOver), errors.Is(err, ErrClosed):
			s.dropSweeps(where)
			return
		case !Passing(err) && !reported:
			reported = true
			s.Report(fmt.Errorf("clean up %s: %w", where.parent, err))
		}
		if s.pause(ctx, pause) != nil {
			s.dropSweeps(where)
			return
		}
		pause = min(2*pause, mostAgain)
	}
}

// takeSweeps adds the protections that have come since to those wanted, and ends
// the job if there are none.
func (s *Session) takeSweeps(where swept, wanted map[string]bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, protection := range s.sweeps[where] {
		wanted[protection] = true
	}
	if len(wanted) == 0 {
		delete(s.sweeps, where)
		return false
	}
	s.sweeps[where] = []string{} // which says that the job runs
	return true
}

func (s *Session) dropSweeps(where swept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sweeps, where)
}

// sweepOnce lists the parent and removes what has one of the protections.
func (s *Session) sweepOnce(ctx context.Context, where swept, wanted map[string]bool) error {
	c, err := s.ConnIn(ctx, where.session)
	if err != nil {
		return err
	}
	names, err := s.findOwn(ctx, c, where.parent, func(name []byte) bool {
		return wanted[string(nodename.Protection(name))]
	})
	if len(names) > 0 {
		for i, name := range names {
			names[i] = Below(where.parent, name)
		}
		s.RemoveAll(where.session, names)
	}
	return err
}

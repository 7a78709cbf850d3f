package cleanup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// swept is the place where sweeps look: below one parent, for nodes of one session, 0 for any.
type swept struct {
	session int64
	parent  string
}

// sweeps are those of one client.
type sweeps struct {
	session *session.Session

	mu     sync.Mutex         // guards the field below
	wanted map[swept][]sought // what a job is to look for; an entry says that it runs
}

// sought are the nodes with a protection, save one.
type sought struct{ protection, except string }

var sweepsSlot = session.Slot[sweeps]{New: func(s *session.Session) *sweeps {
	return &sweeps{session: s, wanted: make(map[swept][]sought)}
}}

// Sweep deletes in the background the nodes under parent that have a protection. It is
// for ephemeral nodes of the given session, or with 0 for others. Sweeps of one parent share
// their lists.
func Sweep(s *session.Session, id int64, parent, protection string) {
	SweepBeside(s, id, parent, protection, "")
}

// SweepBeside is Sweep that leaves out a node, which is being removed by itself. That
// removal would be told that its node is gone already.
func SweepBeside(s *session.Session, id int64, parent, protection, except string) {
	all, where := sweepsSlot.Of(s), swept{id, parent}
	all.mu.Lock()
	wanted, running := all.wanted[where]
	all.wanted[where] = append(wanted, sought{protection, except})
	all.mu.Unlock()
	if !running && !s.Go(func(ctx context.Context) { all.sweep(ctx, where) }) {
		all.drop(where)
	}
}

// sweep looks for protections for as long as there are any.
func (all *sweeps) sweep(ctx context.Context, where swept) {
	wanted := make(map[string]string) // protections, and the names left out
	reported := false
	for pause := session.FirstPause; ; {
		if !all.take(where, wanted) {
			return
		}
		err := all.once(ctx, where, wanted)
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			clear(wanted)
			pause = session.FirstPause
			continue
		case errors.Is(err, session.ErrSessionOver), errors.Is(err, session.ErrClosed):
			all.drop(where)
			return
		case !session.Passing(err) && !reported:
			reported = true
			all.session.Report(Refused, fmt.Errorf("clean up %s: %w", where.parent, err))
		}
		if session.Pause(ctx, all.session, pause) != nil {
			all.drop(where)
			return
		}
		pause = min(2*pause, session.MostPause)
	}
}

// take adds the protections that have come since to those wanted, and ends
// the job if there are none.
func (all *sweeps) take(where swept, wanted map[string]string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.wanted[where] {
		wanted[s.protection] = s.except
	}
	if len(wanted) == 0 {
		delete(all.wanted, where)
		return false
	}
	all.wanted[where] = []sought{} // which says that the job runs
	return true
}

func (all *sweeps) drop(where swept) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.wanted, where)
}

// once lists the parent and removes what has one of the protections.
func (all *sweeps) once(ctx context.Context, where swept, wanted map[string]string) error {
	c, err := all.session.AwaitConnOf(ctx, where.session)
	if err != nil {
		return err
	}
	names, err := session.Find(ctx, all.session, c, where.parent, where.session != 0, func(name []byte) bool {
		except, ok := wanted[string(nodename.Protection(name))]
		return ok && except != string(name)
	})
	if len(names) > 0 {
		for i, name := range names {
			names[i] = session.Join(where.parent, name)
		}
		RemoveAll(all.session, where.session, names)
	}
	return err
}

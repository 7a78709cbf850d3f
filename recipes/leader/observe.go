package leader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
)

// Participant is a candidate's node in an election.
type Participant struct {
	ID      string // what the candidate is known by: its node's data
	Leads   bool   // it stands first
	Path    string // of its node, as the client knows paths
	Session int64
	Number  int64     // the czxid: the number of its term once it leads
	Since   time.Time // when it began to stand, by the servers' clock
}

// String is who it is and what it does.
func (p Participant) String() string {
	does := "stands"
	if p.Leads {
		does = "leads"
	}
	return fmt.Sprintf("%s %s with %s of session %#x", p.ID, does, p.Path, uint64(p.Session))
}

// Participants lists the candidates in order, the leader first, in two round trips. An
// election that does not exist has none. The answer is out of date if the server lags
// behind the ensemble leader. A path of another kind of lock or election is
// locks.ErrInvalidLock, and a chroot that does not exist framework.ErrNoNode.
func (e *election) Participants(ctx context.Context) ([]Participant, error) {
	if err := e.usable(ctx, "participants"); err != nil {
		return nil, err
	}
	listed, err := e.lock.Participants(ctx)
	if err != nil {
		return nil, err
	}
	var all []Participant
	for _, p := range listed {
		all = append(all, Participant{ID: string(p.Data), Leads: p.Holds, Path: p.Path, Session: p.Session, Number: p.Token, Since: p.Since})
	}
	return all, nil
}

// Observation says who leads, as far as the observer knows.
type Observation struct {
	// Known is false while no server can be asked. Leader is nil then.
	Known bool
	// Leader is nil if nobody leads.
	Leader *Participant
	// Since is when this observer first saw this, by the clock of this process. The
	// term in the first observation may have begun long before.
	Since time.Time
}

// String says who leads.
func (o Observation) String() string {
	switch {
	case !o.Known:
		return "not known"
	case o.Leader == nil:
		return "nobody leads"
	}
	return o.Leader.String()
}

// same is whether two observations say the same.
func (o Observation) same(other Observation) bool {
	switch {
	case o.Known != other.Known || (o.Leader == nil) != (other.Leader == nil):
		return false
	case o.Leader == nil:
		return true
	}
	return *o.Leader == *other.Leader
}

// Observe yields who leads, at once and after each change, until ctx ends. It does not
// stand in the election. Changes that follow each other faster than the body of the loop
// are left out, but never the last one.
//
// While there is no connection to a majority, it yields once that nothing is known. A
// connection that breaks without a sign is noticed within two thirds of the session
// timeout; until then the former answer stands.
//
// The last pair has an error: one that matches ctx.Err(), framework.ErrClosed,
// locks.ErrInvalidLock (also if another kind of lock or election uses the path),
// locks.ErrSequenceExhausted, framework.ErrNoNode if the chroot does not exist, or a
// refusal by the servers such as framework.ErrNoAuth.
//
// Cost: two round trips for each change. The observer watches the leader's node alone, or
// the list if nobody leads.
func (e *election) Observe(ctx context.Context) iter.Seq2[Observation, error] {
	return func(yield func(Observation, error) bool) {
		if err := e.observe(ctx, func(o Observation) bool { return yield(o, nil) }); err != nil {
			yield(Observation{}, err)
		}
	}
}

// observe is Observe. It returns nil once tell has returned false.
func (e *election) observe(ctx context.Context, tell func(Observation) bool) error {
	if err := e.usable(ctx, "observe"); err != nil {
		return err
	}
	o := &observer{election: e, changed: make(chan struct{}, 1)}
	defer e.client.States().Listen(o.heard)()
	var last Observation
	for {
		now, watch, err := o.look(ctx)
		if err != nil {
			return e.failed("observe", err)
		}
		if last.Since.IsZero() || !now.same(last) {
			now.Since = time.Now()
			if last = now; !tell(now) {
				watch.Stop()
				return nil
			}
		}
		err = o.wait(ctx, now, watch)
		watch.Stop()
		if err != nil {
			return e.failed("observe", err)
		}
	}
}

// observer is what one call of Observe goes by.
type observer struct {
	*election
	changed chan struct{} // the state of the connection has changed
	looking atomic.Pointer[context.CancelFunc]
}

// heard takes in a state of the connection. A look must not go on through an outage: it is
// to be told that nothing is known.
func (o *observer) heard(s listeners.State) {
	select {
	case o.changed <- struct{}{}:
	default: // one is enough to look again
	}
	if cancel := o.looking.Load(); cancel != nil && !connected(s) {
		(*cancel)()
	}
}

// connected is whether there is a connection to a majority.
func connected(s listeners.State) bool { return s == listeners.Connected || s == listeners.Reconnected }

// look asks who leads now, and sets a watch for the end of that. Without a connection
// there is neither.
func (o *observer) look(ctx context.Context) (Observation, *framework.Watch, error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	o.looking.Store(&cancel)
	defer o.looking.Store(nil)
	if !connected(o.client.State()) { // read behind Store: what comes later cancels
		return Observation{}, nil, nil
	}
	leader, watch, err := o.leader(limited)
	switch {
	case err == nil:
		return Observation{Known: true, Leader: leader}, watch, nil
	case ctx.Err() != nil:
		return Observation{}, nil, framework.ContextError(ctx)
	case limited.Err() != nil, framework.Retryable(err):
		return Observation{}, nil, nil
	}
	return Observation{}, nil, err
}

// wait returns when it is time to look again.
func (o *observer) wait(ctx context.Context, now Observation, watch *framework.Watch) error {
	if !now.Known {
		return o.waitConnected(ctx)
	}
	select {
	case <-watch.C:
		return nil
	case <-o.changed:
		return nil
	case <-ctx.Done():
		return framework.ContextError(ctx)
	}
}

// waitConnected waits for a connection, and a little if there is one: a request has failed
// for another reason. At a read-only server it waits for the next state, and longer.
func (o *observer) waitConnected(ctx context.Context) error {
	if err := o.client.BlockUntilConnected(ctx); err != nil {
		if ctx.Err() != nil {
			return framework.ContextError(ctx)
		}
		return err
	}
	pause := lookAgain
	if !connected(o.client.State()) {
		pause = 10 * lookAgain
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.changed:
	case <-ctx.Done():
		return framework.ContextError(ctx)
	}
	return nil
}

// lookAgain is how long an observer waits after a look that failed although there was a
// connection.
const lookAgain = 100 * time.Millisecond

// leader reads who leads, nil for nobody, and watches it.
func (e *election) leader(ctx context.Context) (*Participant, *framework.Watch, error) {
	for {
		path, err := e.lock.First(ctx)
		if err != nil {
			return nil, nil, err
		}
		if path == "" {
			watch, err := e.watchEmpty(ctx)
			if err != nil || watch != nil {
				return nil, watch, err
			}
			continue
		}
		id, stat, watch, err := e.client.GetW(ctx, path)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			continue // the next one leads
		case err != nil:
			return nil, nil, err
		}
		// Others queue behind it, so it is first for as long as it is there.
		return &Participant{ID: string(id), Leads: true, Path: path, Session: stat.EphemeralOwner, Number: stat.Czxid, Since: time.UnixMilli(stat.Ctime)}, watch, nil
	}
}

// watchEmpty watches an election in which nobody stands. It returns no watch if a
// candidate stands by now.
func (e *election) watchEmpty(ctx context.Context) (*framework.Watch, error) {
	names, _, watch, err := e.client.ChildrenW(ctx, e.path)
	if errors.Is(err, framework.ErrNoNode) {
		var there bool
		if there, _, watch, err = e.client.ExistsW(ctx, e.path); there && err == nil {
			watch.Stop()
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		if path, err := e.lock.First(ctx); err != nil || path != "" {
			watch.Stop()
			return nil, err
		}
	}
	return watch, nil
}

// failed is an error of an operation, as callers get it.
func (e *election) failed(op string, err error) error {
	var told *framework.OpError
	if errors.As(err, &told) {
		err = told.Err
	}
	return &framework.OpError{Op: op, Path: e.path, Err: err}
}

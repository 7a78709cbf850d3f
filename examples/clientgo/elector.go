package main

import (
	"context"
	"sync"

	"github.com/paddock-zk/paddock/recipes/leader"
)

// Callbacks are those of client-go's leaderelection.LeaderCallbacks.
type Callbacks struct {
	OnStartedLeading func(ctx context.Context)
	OnStoppedLeading func()
	OnNewLeader      func(identity string) // may be nil
}

// Elector is client-go's leaderelection.LeaderElector on a latch. It differs in two things:
// nobody leads before OnStartedLeading has returned, while the session lives; and ctx ends
// before another candidate can lead, so that OnStoppedLeading need not end the process.
type Elector struct {
	Latch     *leader.Latch
	Callbacks Callbacks

	mu     sync.Mutex
	leader string // as it was observed last
}

// Run stands until it has led for one term, or ctx ends. OnStoppedLeading is called at the
// end, also if it never led.
func (e *Elector) Run(ctx context.Context) error {
	defer e.Callbacks.OnStoppedLeading()
	observing, stop := context.WithCancel(ctx)
	var observer sync.WaitGroup
	observer.Go(func() { e.observe(observing) })
	defer observer.Wait()
	defer stop()
	return e.Latch.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		e.Callbacks.OnStartedLeading(ctx)
		return leader.ErrLeave
	})
}

// observe tells of each new leader, until ctx ends.
func (e *Elector) observe(ctx context.Context) {
	for now, err := range e.Latch.Observe(ctx) {
		if err != nil {
			return
		}
		if now.Leader == nil || !e.isNew(now.Leader.ID) || e.Callbacks.OnNewLeader == nil {
			continue
		}
		e.Callbacks.OnNewLeader(now.Leader.ID)
	}
}

func (e *Elector) isNew(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leader == id {
		return false
	}
	e.leader = id
	return true
}

// IsLeader is whether this candidate leads.
func (e *Elector) IsLeader() bool { return e.Latch.Term() != nil }

// GetLeader is who led last, as far as this process has heard.
func (e *Elector) GetLeader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

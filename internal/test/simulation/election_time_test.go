package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/retry"
)

// The layouts of an election.
const (
	latch    = "latch"
	selector = "selector"
)

// standing is what terms are counted as that a candidate's function had.
const standing = "standing"

var errSick = errors.New("sick")

// candidate is what a latch and a selector have in common.
type candidate interface {
	Await(ctx context.Context) (*leader.Term, error)
	Run(ctx context.Context, lead func(ctx context.Context, term *leader.Term) error) error
	Observe(ctx context.Context) iter.Seq2[leader.Observation, error]
}

// candidate makes one of the actor's client.
func (a *actor) candidate(opts ...leader.Option) candidate {
	opts = append(opts, leader.ID(a.name))
	if a.w.elects == selector {
		return leader.NewSelector(a.c, election, opts...)
	}
	return leader.NewLatch(a.c, election, opts...)
}

// beginElection has some clients stand in the election for good, and some observe it.
func (w *world) beginElection(actors *sync.WaitGroup) {
	w.gallery.ctx, w.gallery.leave = context.WithCancel(w.ctx)
	if w.elects == "" {
		return
	}
	r := rand.New(rand.NewPCG(w.seed, 3))
	for i, s := range w.slots {
		if i == 0 || r.IntN(2) == 0 {
			a := newActor(w, s, 7)
			actors.Go(a.stand)
		}
		if r.IntN(3) == 0 {
			a := newActor(w, s, 8)
			w.gallery.wg.Go(a.observe)
		}
	}
}

// stand is the life of a candidate that stands again and again.
func (a *actor) stand() {
	for !a.w.ended() {
		a.rest(a.w.over, time.Duration(a.r.Int64N(int64(20*time.Millisecond))))
		a.c = a.s.client()
		_, err := a.cancellable(a.w.ctx, election, func(ctx context.Context) error {
			return a.candidate(a.standingOptions()...).Run(ctx, a.lead)
		})
		result := "of itself"
		if err != nil {
			result = classify(err)
		}
		a.w.tell(a.name, "leaves the election: %s", result)
		switch {
		case err == nil, errors.Is(err, context.Canceled), errors.Is(err, framework.ErrClosed):
		case errors.Is(err, framework.ErrTimeoutTooShort) && a.w.mayBeSlow():
		default:
			a.w.fail("election", "%s does not stand again: %v", a.name, err)
		}
	}
}

// mayBeSlow is whether faults can have made it take too long to renew a session lease,
// for which a candidate waits for two session timeouts.
func (w *world) mayBeSlow() bool {
	select {
	case <-w.calmed:
		return w.now() <= w.rec.Healed+3*w.timeout
	default:
		return true
	}
}

// standingOptions draws how a candidate stands. Its function fails often, so the pause
// after that is short.
func (a *actor) standingOptions() []leader.Option {
	opts := []leader.Option{leader.BackOff(retry.NTimes(math.MaxInt, 100*time.Millisecond)), leader.Grace(max(a.w.span(a.r, 0.5), time.Millisecond))}
	if a.r.IntN(4) == 0 {
		opts = append(opts, leader.EndOnSuspended())
	}
	if a.r.IntN(4) == 0 {
		opts = append(opts, leader.ReleaseWait(0))
	}
	if a.r.IntN(3) == 0 {
		r := rand.New(rand.NewPCG(a.r.Uint64(), 0)) // checks are not at one time with draws of the function
		opts = append(opts, leader.HealthCheck(50*time.Millisecond+a.w.span(a.r, 0.1), func(context.Context) error {
			if r.IntN(10) == 0 && !a.w.isCalm() {
				return errSick
			}
			return nil
		}))
	}
	return opts
}

// lead is what a candidate does in a term.
func (a *actor) lead(ctx context.Context, term *leader.Term) error {
	t := a.office(ctx, term)
	t.work()
	a.w.mu.Lock()
	a.w.rounds[standing]++
	a.w.mu.Unlock()
	switch a.r.IntN(8) {
	case 0:
		term.GiveWay(a.w.span(a.r, 0.2))
	case 1:
		return errOver
	case 2:
		return leader.ErrLeave
	case 3:
		if d := a.w.span(a.r, 1.5); !a.w.isCalm() {
			a.restUnder(ctx.Done(), d)
		}
	}
	return nil
}

// term stands for one term.
func (a *actor) term(*framework.Client) {
	if a.w.elects == "" {
		return
	}
	parent, cancel := context.WithCancelCause(a.w.ctx)
	defer cancel(nil)
	var term *leader.Term
	a.w.tell(a.name, "wants to lead")
	err := a.wait(a.w.ctx, election, func(ctx context.Context) (err error) {
		defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })() // and not at the end of the call
		term, err = a.candidate().Await(parent)
		return err
	})
	if err != nil {
		a.w.tell(a.name, "does not lead: %s", classify(err))
		return
	}
	a.office(term.Context(), term).work()
	if a.r.IntN(4) == 0 {
		term.GiveWay(0)
	}
	a.w.tell(a.name, "gives back %s: %v", term.Path(), term.Release())
}

// isCalm is whether the faults are over.
func (w *world) isCalm() bool {
	select {
	case <-w.calmed:
		return true
	default:
		return false
	}
}

// office writes down a term. It is over, as its candidate sees it, when its context is.
func (a *actor) office(ctx context.Context, term *leader.Term) *heldLock {
	w := a.w
	t := &heldLock{a: a, h: term.Hold(), n: 1, nodes: []string{term.Path()}, bound: ctx, stop: func() {}}
	hold := check.Hold{Who: a.name, Node: term.Path(), Token: term.Number(), Session: a.c.SessionID(), Granted: w.now(), Ended: check.Never, ContextsEnded: check.Never}
	if w.planted.token {
		n, _ := framework.Sequence(hold.Node)
		hold.Token = int64(n)
	}
	if term.Err() != nil {
		hold.Session = 0 // it may be of another one already
	}
	hold.Over = ctx.Err() != nil
	place(&hold)
	w.mu.Lock()
	w.owners++
	hold.Owner, t.first = w.owners, len(w.rec.Holds)
	w.rec.Holds = append(w.rec.Holds, hold)
	w.tellLocked(a.name, "leads with %s", hold.Node)
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		if t.ends() {
			w.tell(a.name, "leads no more with %s: %s", hold.Node, classify(context.Cause(ctx)))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rec.Holds[t.first].ContextsEnded = w.now()
	})
	return t
}

// gallery is who observes the election, until all candidates have left it.
type gallery struct {
	ctx   context.Context
	leave context.CancelFunc
	wg    sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	last map[string]leader.Observation
}

func (g *gallery) sees(who string, now leader.Observation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil {
		g.last = make(map[string]leader.Observation)
	}
	g.last[who] = now
}

// observe is the life of an observer.
func (a *actor) observe() {
	ctx := a.w.gallery.ctx
	for ctx.Err() == nil {
		a.c = a.s.client()
		var end error
		for now, err := range a.candidate().Observe(ctx) {
			if end = err; err != nil {
				break
			}
			if a.w.planted.blind && now.Leader == nil && now.Known {
				continue
			}
			a.w.tell(a.name, "sees: %v", now)
			a.w.gallery.sees(a.name, now)
			a.rest(ctx.Done(), time.Duration(a.r.Int64N(int64(20*time.Millisecond))))
		}
		if ctx.Err() == nil && !errors.Is(end, framework.ErrClosed) {
			a.w.fail("observer", "%s observes no more: %v", a.name, end)
			return
		}
		a.rest(ctx.Done(), 20*time.Millisecond)
	}
}

// closeGallery looks whether all observers know that nobody leads, as all have left.
func (w *world) closeGallery() {
	w.gallery.leave()
	w.gallery.wg.Wait()
	time.Sleep(time.Second) // their watches are removed meanwhile
	for _, s := range w.slots {
		who := fmt.Sprintf("%s/8", s.name)
		if last, observes := w.gallery.last[who]; observes && (!last.Known || last.Leader != nil) {
			w.fail("observer", "nobody leads, and %s sees: %v", who, last)
		}
	}
}

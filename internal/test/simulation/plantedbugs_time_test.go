package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// plantedBug is a bug that the simulation has on purpose, to see the checkers find it.
type plantedBug struct {
	checker string // that has to find it
	first   uint64 // seed that is tried
	lock    func(c *framework.Client) *naive
	stale   bool    // registers are read from whoever answers
	unfence bool    // writes go without the check
	permits int     // that some clients believe a semaphore has
	rate    float64 // of all clients' clocks
	token   bool    // tokens are the numbers in names
	blind   bool    // observers do not see that nobody leads
}

// plantedBugs has one for each checker at least.
var plantedBugs = map[string]plantedBug{
	"does not wait":                     {checker: "front", lock: func(c *framework.Client) *naive { return &naive{c: c, impatient: true} }},
	"believes after its session":        {checker: "held at once", first: 15, lock: func(c *framework.Client) *naive { return &naive{c: c, deaf: true} }},
	"clocks that hardly move":           {checker: "held at once", rate: 0.1},
	"gives back before contexts end":    {checker: "contexts", lock: func(c *framework.Client) *naive { return &naive{c: c, deaf: true, early: true} }},
	"sorts by name":                     {checker: "order", first: 2, lock: func(c *framework.Client) *naive { return &naive{c: c, byName: true} }},
	"keeps its node":                    {checker: "left", lock: func(c *framework.Client) *naive { return &naive{c: c, keeps: true} }},
	"keeps its node, and others wait":   {checker: "progress", lock: func(c *framework.Client) *naive { return &naive{c: c, keeps: true} }},
	"looks at its context now and then": {checker: "cancelled", lock: func(c *framework.Client) *naive { return &naive{c: c, slow: true} }},
	"writes without a fence":            {checker: "fence", unfence: true},
	"readers pass writers": {checker: "readers and writers", lock: func(c *framework.Client) *naive {
		return &naive{c: c, impatient: true, reads: true}
	}},
	"counts more permits":         {checker: "permits", permits: 5},
	"tokens are sequence numbers": {checker: "tokens", token: true},
	"reads without a sync":        {checker: "registers", first: 9, stale: true},

	"leads with whoever leads":      {checker: "front", lock: stands(naive{impatient: true})},
	"leads on after its session":    {checker: "held at once", first: 170, lock: stands(naive{deaf: true})},
	"leads on without its node":     {checker: "contexts", lock: stands(naive{deaf: true, early: true})},
	"keeps its node when it leaves": {checker: "leader", lock: stands(naive{keeps: true})},
	"does not see that one left":    {checker: "observer", first: 5, blind: true},
}

// stands makes a candidate of a lock.
func stands(as naive) func(c *framework.Client) *naive {
	as.stands = true
	return func(c *framework.Client) *naive { l := as; l.c = c; return &l }
}

// faults are what the bug needs to show, nil for what the seed draws.
func (p plantedBug) faults() (all []fault) {
	for i := range time.Duration(12) {
		if p.stale {
			all = append(all, fault{At: (1 + i) * time.Second, Kind: "follower lags", Seed: uint64(i)})
		}
	}
	return all
}

// Every checker finds what is planted for it.
func TestPlantedBugs(t *testing.T) {
	for name, p := range plantedBugs {
		t.Run(name, func(t *testing.T) {
			for s := max(1, p.first); s < p.first+300; s++ {
				if naive := p.lock; naive != nil && naive(nil).stands && draw(rand.New(rand.NewPCG(s, 1))).elects != latch {
					continue
				}
				res := run(t, s, p.faults(), p)
				for _, v := range res.Violations {
					if v.Checker == p.checker {
						t.Logf("seed %d: %v", s, v)
						return
					}
				}
			}
			assert.Fail(t, "not found", "by %s", p.checker)
		})
	}
}

// naive is a lock as one writes it first, with one bug or another. It shares the
// queues of the others.
type naive struct {
	c         *framework.Client
	path      string
	impatient bool // does not wait
	deaf      bool // does not hear of the end of its session
	byName    bool // waits for names that sort before its own
	keeps     bool // does not delete its node
	early     bool // deletes its node before it is released
	slow      bool // looks at its context now and then
	reads     bool // stands on the read side
	stands    bool // in the election
}

func (l *naive) TryAcquire(ctx context.Context, _ time.Duration) (*locks.Hold, error) {
	return l.Acquire(ctx)
}

func (l *naive) Acquire(ctx context.Context) (*locks.Hold, error) {
	parent, mark := "/b", "lock-"
	if l.reads {
		parent, mark = "/w", "__READ__"
	}
	if l.stands {
		parent, mark = election, "latch-"
	}
	node, err := l.c.Create(ctx, parent+"/"+mark, nil, framework.EphemeralSequential, framework.Protected(), framework.Parents())
	if err != nil {
		return nil, err
	}
	for !l.impatient {
		first, err := l.first(ctx, parent, node)
		if err == nil && first {
			break
		}
		if err != nil && ctx.Err() != nil {
			_ = l.c.Delete(context.Background(), node, framework.AnyVersion, framework.Guaranteed())
			return nil, err
		}
		pause := 5 * time.Millisecond
		if l.slow {
			pause = 300 * time.Millisecond
		}
		time.Sleep(pause)
	}
	l.path = node
	remove := func() error {
		limited, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return l.c.Delete(limited, node, framework.AnyVersion, framework.Guaranteed())
	}
	hold, lost := locks.NewHold(ctx, func() error {
		if l.keeps || l.early {
			return nil
		}
		return remove()
	})
	if l.early {
		time.AfterFunc(time.Millisecond, func() { _ = remove() })
	}
	if !l.deaf {
		watch(l.c, node, lost)
	}
	return hold, nil
}

// watch ends a hold when its node goes; late, if nobody says so.
func watch(c *framework.Client, node string, lost func(error)) {
	_, _, w, err := c.ExistsW(context.Background(), node)
	if err != nil {
		lost(err)
		return
	}
	go func() { lost((<-w.C).Err) }()
}

func (l *naive) first(ctx context.Context, parent, node string) (bool, error) {
	names, _, err := l.c.Children(ctx, parent)
	if err != nil {
		return false, err
	}
	mine := path.Base(node)
	if !slices.Contains(names, mine) {
		return false, fmt.Errorf("%s is gone", mine)
	}
	for _, name := range names {
		ahead := name[len(name)-10:] < mine[len(mine)-10:]
		if l.byName {
			ahead = name < mine
		}
		if ahead {
			return false, nil
		}
	}
	return true, nil
}

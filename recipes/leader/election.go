package leader

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// Latch is a candidate in an election on the layout of Curator's LeaderLatch. Make it
// with NewLatch. It may be used by any number of goroutines.
//
// Source: Curator's LeaderLatch. Differs: the leader watches its own node, so the term ends
// when another client deletes that. A refusal by the servers is returned instead of logged.
// A lost connection alone does not end a term, see EndOnSuspended.
type Latch struct{ election }

// NewLatch makes a candidate in the election at path. Only candidates of this kind may
// use the path. NewLatch sends nothing and cannot fail: with a nil client, a bad path or
// a bad option, every call of the candidate returns locks.ErrInvalidLock. The candidate
// stands when Await, Run or Terms is called.
func NewLatch(c *framework.Client, path string, opts ...Option) *Latch {
	l := new(Latch)
	l.init(c, path, monitor.Latch, opts)
	return l
}

// Selector is a candidate in an election on the layout of Curator's LeaderSelector, which
// is that of locks.InterProcessMutex: a mutex at the path is in the same queue. Make it
// with NewSelector. It may be used by any number of goroutines.
//
// Source: Curator's LeaderSelector. Differs: each failure of the function is reported,
// and the default ID tells processes apart.
type Selector struct{ election }

// NewSelector is NewLatch with the nodes of a LeaderSelector.
func NewSelector(c *framework.Client, path string, opts ...Option) *Selector {
	s := new(Selector)
	s.init(c, path, monitor.Selector, opts)
	return s
}

// election is a candidate, whose nodes are of one kind.
type election struct {
	client *framework.Client
	kind   string // see package monitor
	path   string
	lock   *locks.InterProcessMutex
	opts   options
	err    error // what is wrong with how it was made

	mu      sync.Mutex // guards the fields below
	terms   []*Term    // that are not released, in the order of their beginning
	overrun int        // functions that were reported and go on
}

func (e *election) init(c *framework.Client, path, kind string, opts []Option) {
	e.client, e.kind, e.path = c, kind, path
	if e.opts, e.err = optionsOf(opts); e.err != nil {
		return
	}
	e.lock = locks.NewElection(c, kind, path, locks.NodeData([]byte(e.opts.id)), locks.ReleaseWait(e.opts.releaseWait))
	e.err = e.lock.Err()
}

// ID is what others know the candidate by.
func (e *election) ID() string { return e.opts.id }

// Path is the path of the election, as it was given.
func (e *election) Path() string { return e.path }

// String is the kind of the candidate and the path of the election, as it was given, for
// logs.
func (e *election) String() string {
	if e == nil || e.kind == "" {
		return "candidate without a constructor"
	}
	return e.kind + " " + e.path
}

// usable says what is wrong with how the candidate was made, or with ctx.
func (e *election) usable(ctx context.Context, op string) error {
	switch {
	case e.err != nil:
		return &framework.OpError{Op: op, Path: e.path, Err: e.err}
	case e.lock == nil:
		return &framework.OpError{Op: op, Path: "election", Err: fmt.Errorf("%w: it was made without NewLatch or NewSelector", locks.ErrInvalidLock)}
	case ctx == nil:
		return &framework.OpError{Op: op, Path: e.path, Err: framework.ErrNilContext}
	}
	return nil
}

// Await stands in the election and waits until this candidate leads, or ctx ends. ctx
// bounds the wait and becomes the parent of Term.Context. The caller has to release the
// term. Each call stands with a node of its own. After an error Await cleans up, in the
// background if need be.
//
// A lost connection costs nothing but time: the place in the queue is kept as long as the
// session lives. If the session ends, the candidate stands again, at the end.
//
// Errors are *framework.OpError. They match one of these:
//   - ctx.Err(), if ctx ended; after a wait the error is also a *locks.WaitError, which
//     says who leads.
//   - locks.ErrInvalidLock, if the candidate was made with a wrong argument, or another
//     kind of lock or election uses the path.
//   - locks.ErrDeadlock, if ctx comes from a term of this candidate.
//   - locks.ErrLockLost, if the term was lost before Await could return it.
//   - locks.ErrSequenceExhausted, framework.ErrTimeoutTooShort, framework.ErrClosed.
//   - framework.ErrNoAuth and other refusals by the servers.
//
// Cost: one round trip if nobody leads and the node at the path exists. The second
// candidate in the queue leads as soon as it hears that the leader's node is gone,
// without asking a server.
func (e *election) Await(ctx context.Context) (*Term, error) {
	t, err := e.elected(ctx)
	if err != nil {
		return nil, err
	}
	e.began(t)
	return t, nil
}

// elected is Await, for a term that does not begin yet.
func (e *election) elected(ctx context.Context) (*Term, error) {
	if err := e.usable(ctx, "await leadership"); err != nil {
		return nil, err
	}
	if e.lock.HeldBy(ctx) {
		err := fmt.Errorf("%w: the context is that of a term in this election", locks.ErrDeadlock)
		return nil, &framework.OpError{Op: "await leadership", Path: e.path, Err: err}
	}
	parent, end := context.WithCancelCause(ctx)
	granted := false
	defer func() {
		if !granted {
			end(nil)
		}
	}()
	hold, err := e.lock.Acquire(parent)
	if err != nil {
		return nil, e.failed("await leadership", err)
	}
	number := hold.FencingToken()
	if lost := hold.Err(); lost != nil {
		_ = hold.Release() // says the same
		return nil, e.failed("await leadership", lost)
	}
	granted = true
	t := &Term{election: e, hold: hold, number: number, end: end}
	if e.opts.endOnSuspended {
		t.endOnSuspended()
	}
	return t, nil
}

func (e *election) began(t *Term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.terms = append(e.terms, t)
}

func (e *election) ended(t *Term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.terms = slices.DeleteFunc(e.terms, func(other *Term) bool { return other == t })
}

// Term is the term in which this candidate leads now. It is nil while the candidate
// does not lead, and once the term's context has ended.
func (e *election) Term() *Term {
	e.mu.Lock()
	terms := slices.Clone(e.terms)
	e.mu.Unlock()
	for _, t := range terms {
		if t.Err() == nil && t.Context().Err() == nil {
			return t
		}
	}
	return nil
}

// Overrun reports whether a function that Run called goes on although the context of its
// term ended longer than Grace ago. Nobody can lead meanwhile, unless the session is
// over. What helps is to end the process.
func (e *election) Overrun() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.overrun > 0
}

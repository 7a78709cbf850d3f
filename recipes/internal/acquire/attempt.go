package acquire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
)

// Attempt is one acquisition: contenders in one queue or several, until all wanted ones
// are first. It is made as Single, Semaphore or Multi. Only one goroutine at a time may
// use it.
type Attempt struct {
	session    *session.Session
	contenders []contender
	policy     policy
	host       Host

	once      bool // not to wait for others
	unchecked bool // precheck still has to say, before anything is made, whether to go on

	id        int64           // of the session that the contenders belong to, 0 before the first
	conn      *transport.Conn // that has shown all that we know
	sawAhead  bool            // a node was seen ahead
	apart     bool            // each queue is listed with a request of its own, as one reply for all is too large
	resumable bool            // another goroutine may go on after Run has failed
	waitedIn  int64           // with FailOnLoss, the session in which the caller began to wait, 0 for none
	sawMulti  bool            // a node of a MultiLock was seen in a queue whose nodes are handed over
	other     *Obstacle       // a node of another kind of lock that the latest round met alone, nil for none
	failure   error           // of the last round, one that may pass; nil if it had none
	onWay     *sent           // by a caller that has gone since; nil for nothing

	// A client that deletes our nodes over and over does not make us send requests over and over.
	deletedInARow int       // how often others have deleted our nodes
	deletedLast   time.Time // when they last did
}

// Host takes the nodes that an attempt has got, and hears of its turning points.
type Host interface {
	// Own makes the owner of a node that is first; i counts those that were asked for.
	// The session may tell it of the node before Run returns.
	Own(i int, node Node) Owner
	// Withdrawn says that an owner has not got its node after all.
	Withdrawn(Owner)
	// Observe is called in the goroutine that runs the attempt. It must not block.
	Observe(Event)
}

// Event is a turning point of an attempt.
type Event struct {
	Kind        EventKind
	Queue       *Queue    // Wait, First, Away, Yield: in which
	Position    *Position // Wait: where ours stands there; it must not be kept
	Spread      bool      // Wait: goroutines of the client need nodes of their own. Nothing is handed over beside a MultiLock
	Node        string    // Wait: ours in the queue, in full
	Predecessor string    // Yield: the name of the node that passes us, "" if it is not known
	Err         error     // Retry: what has failed
}

// EventKind is what has happened.
type EventKind int

// The turning points of an attempt.
const (
	Wait  EventKind = iota + 1 // it begins to wait for others, or goes on to
	First                      // it waits in other queues, and is first in this one
	Away                       // it waits in other queues, and will come to this one later
	Yield                      // it gives up its place in a queue
	Retry                      // a failure that may pass, such as a lost connection
	End                        // Run returns
)

// Owner is what a node belongs to.
type Owner interface {
	// Node is where the owner keeps its node.
	Node() *Node
	// NodeChanged comes from the goroutine that reads the connection or from the
	// session's run loop.
	session.NodeOwner
}

// policy is what differs between the locks. It decides, and the attempt acts. Each has the
// attempt that it is for embedded.
type policy interface {
	// begin is called at first and in each new session: every contender is absent.
	begin()
	// precheck judges an attempt before it has made anything. The error is ErrNotAcquired
	// if it cannot get the lock at once.
	precheck(ctx context.Context, c *transport.Conn) error
	// plan picks what the next round makes and lists.
	plan() plan
	// failed is told that the plan could not be carried out. It returns the reason, or
	// errNotDone if something else can be done at once.
	failed(err error) error
	// judge says how far the attempt has come after a round.
	judge() (step, error)
	// wait returns when something may have changed. granted is whether all contenders are
	// first now.
	wait(ctx context.Context, c *transport.Conn) (granted bool, err error)
	// wantedNodes are the contenders whose nodes are wanted, in the order in which they were
	// asked for.
	wantedNodes() []*contender
	// tracked says that the session tracks a node that the attempt has got.
	tracked(node *session.TrackedNode)
	// unwatch gives up the watches that wait has prepared.
	unwatch()
	// obstacle is the node that was in the way, nil if it is not known.
	obstacle() *Obstacle
}

// plan is what a round does, in one round trip.
type plan struct {
	create []*contender // that get a node
	list   []*contender // whose queues are listed
	around []*contender // whose locks have their own paths listed as well, see contender.beside
	split  bool         // create may take several transactions
	joint  bool         // create is a transaction also for one
	watch  *childWatch  // of the one queue that is listed, nil for none
}

// step is how far an attempt has come.
type step int

const (
	again   step = iota // another round is needed at once
	waiting             // a node is ahead
	granted             // all contenders are first
)

func (a *Attempt) init(contenders []contender, host Host, p policy) {
	a.session, a.contenders, a.policy, a.host = contenders[0].queue.Core.Session(), contenders, p, host
	if a.failOnLoss() {
		a.waitedIn = a.session.ID()
	}
}

// Run gets all nodes to the front of their queues and hands them to the host. With
// once it does not wait for others.
//
// After a failure that may pass comes another round: on the next connection, or after a
// pause if this one still works. Errors are ErrNotAcquired with once; the end of ctx;
// ErrInvalidLock, znode.ErrSequenceExhausted, zk.ErrSessionExpired with FailOnLoss, and
// refusals of the servers, each in a *StoppedError. After an error the contenders have left
// their queues, except that of Single: it stays as it is. For a caller that has gone nothing
// is sent.
func (a *Attempt) Run(ctx context.Context, once bool) (err error) {
	a.once, a.unchecked = once, once
	defer a.end(&err)
	if ctx.Err() != nil {
		return contextend.Of(ctx)
	}
	for failures := 0; ; {
		err := a.round(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errNotDone), errors.Is(err, errParentMade):
			continue
		case errors.Is(err, errWoken):
			failures, a.failure = 0, nil
			continue
		case ctx.Err() != nil, !passing(err):
			return err
		}
		if failures++; !errors.Is(err, errStale) { // else nothing has failed: others have changed what was found
			a.failure = err
			a.host.Observe(Event{Kind: Retry, Err: err})
		}
		if err := pause(ctx, max(failures, a.deletedInARow)); err != nil {
			return err
		}
	}
}

// StoppedError is an error of Run, with what the attempt had met by then. That is told only.
type StoppedError struct {
	Err      error
	InTheWay *Obstacle // nil if none was seen
	Failure  error     // that had passed, of the last round before; nil if that had none
}

// Error implements error.
func (e *StoppedError) Error() string { return e.Err.Error() }

// Unwrap gives Err.
func (e *StoppedError) Unwrap() error { return e.Err }

// What a round returns decides when the next one comes. Earlier failures are forgotten
// only after a wait: a list may succeed each time while the step after it fails.
//
//	error                     next round        failures
//	errNotDone, errParentMade at once           as before
//	errWoken                  at once           0
//	errStale                  after a pause     one more
//	others that may pass      after a pause     one more, and told as Retry
//	all others                none: Run fails
var (
	errNotDone = errors.New("there is more to do")
	errWoken   = errors.New("a node that the attempt waited for may be gone")
	errStale   = errors.New("the state has changed since it was read")
	// Many members of a MultiLock may each lack a parent.
	errParentMade = fmt.Errorf("%w: a parent was missing", errStale)
)

// end is deferred: it ends the watches, and gives up contenders that nobody can go on
// with.
func (a *Attempt) end(err *error) {
	if *err != nil {
		in := cmp.Or(a.other, a.policy.obstacle())
		if in == nil && a.sawAhead {
			in = &Obstacle{Lock: a.contenders[0].queue.Lock}
		}
		*err = &StoppedError{Err: *err, InTheWay: in, Failure: a.failure}
	}
	if !a.resumable {
		a.Leave()
	}
	a.policy.unwatch()
	for i := range a.contenders {
		a.contenders[i].drop()
	}
	a.host.Observe(Event{Kind: End})
}

// round makes the nodes and lists the queues of the policy's plan. Unless all contenders
// are first then, it waits for a change. Everything but the wait is one round trip.
func (a *Attempt) round(ctx context.Context) error {
	a.other = nil
	c, err := a.session.AwaitConn(ctx, true)
	if err != nil {
		return err
	}
	if a.id != c.SessionID() {
		if err := a.begin(ctx, c); err != nil {
			return err
		}
	}
	if a.unchecked {
		a.unchecked = false
		if err := a.policy.precheck(ctx, c); err != nil {
			return err
		}
	}
	p := a.policy.plan()
	if err := a.exchange(ctx, c, &p); err != nil {
		return a.policy.failed(err)
	}
	s, err := a.policy.judge()
	switch {
	case err != nil:
		return err
	case s == again:
		return errNotDone
	case s == waiting:
		if first, err := a.policy.wait(ctx, c); err != nil {
			return err
		} else if !first {
			return errWoken
		}
	}
	return a.track(ctx, c)
}

// WaitedIn says in which session the caller began to wait, before there was the attempt. 0 is
// that of the attempt.
func (a *Attempt) WaitedIn(id int64) { a.waitedIn = cmp.Or(id, a.waitedIn) }

// begin sets out in a session.
func (a *Attempt) begin(ctx context.Context, c *transport.Conn) error {
	if (a.id != 0 || a.waitedIn != 0 && a.waitedIn != c.SessionID()) && a.failOnLoss() {
		return zk.ErrSessionExpired
	}
	for i := range a.contenders {
		if err := a.contenders[i].queue.checkFolder(ctx, c); err != nil {
			return err
		}
	}
	a.id, a.conn, a.sawMulti = c.SessionID(), c, false
	for i := range a.contenders {
		k := &a.contenders[i]
		k.mayStillAppear = false // a late creation would be in the former session, which is over
		k.forget(a.id)
	}
	a.policy.begin()
	return nil
}

func (a *Attempt) failOnLoss() bool {
	for i := range a.contenders {
		if a.contenders[i].queue.FailOnLoss {
			return true
		}
	}
	return false
}

// track makes the session track the nodes, each with its owner. If that fails, no owner
// has a node.
func (a *Attempt) track(ctx context.Context, c *transport.Conn) (err error) {
	won := a.policy.wantedNodes()
	var one [1]Owner
	owners := one[:0]
	done := false
	defer func() {
		if !done {
			for _, o := range owners {
				o.Node().tracked.Untrack()
				a.host.Withdrawn(o)
			}
		}
	}()
	for i, k := range won {
		if err := a.learnCzxid(ctx, c, k); err != nil {
			return err
		}
		o := a.host.Own(i, Node{
			queue: k.queue, id: a.id, path: k.path, czxid: k.czxid, tag: k.owner.Tag, mayStillAppear: k.mayStillAppear, sawMulti: a.sawMulti,
		})
		if err = Track(ctx, o); err != nil {
			a.host.Withdrawn(o)
			return err
		}
		owners = append(owners, o)
		a.policy.tracked(o.Node().tracked)
	}
	done = true
	for _, k := range won {
		k.mayStillAppear, k.phase = false, givenAway // the node looks for a second one when it goes
	}
	a.policy.unwatch()
	return nil
}

// learnCzxid learns the czxid of a node whose creation had its reply lost. If the caller goes
// meanwhile, whoever goes on with the attempt waits for the same answer, see takeIn.
func (a *Attempt) learnCzxid(ctx context.Context, c *transport.Conn, k *contender) error {
	if k.czxid != 0 {
		return nil
	}
	if k.stat == nil || k.statOn != c {
		call, err := session.AskStat(ctx, a.session, c, k.path)
		if err != nil {
			return err
		}
		k.stat, k.statOn = call, c
	}
	stat, err := session.AwaitStat(ctx, a.session, c, k.path, k.stat)
	if ctx.Err() == nil {
		k.stat = nil
	}
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && stat.EphemeralOwner != a.id:
		k.forget(a.id)
		return errStale
	case err != nil:
		return err
	}
	k.czxid = stat.Czxid
	return nil
}

// deleted begins again after another client has deleted our nodes.
func (a *Attempt) deleted(gone ...*contender) error {
	now := time.Now()
	if now.Sub(a.deletedLast) > 2*mostPause {
		a.deletedInARow = 0
	}
	a.deletedInARow++
	a.deletedLast = now
	for _, k := range gone {
		k.forget(a.id)
	}
	return errStale
}

// abandon gives up contenders, which may queue again.
func (a *Attempt) abandon(all ...*contender) {
	leave(a.session, a.id, all...)
	for _, k := range all {
		k.forget(a.id)
	}
}

// Leave gives up every contender that has not become a node of an owner.
func (a *Attempt) Leave() {
	var room [4]*contender
	all := room[:0]
	for i := range a.contenders {
		if k := &a.contenders[i]; k.phase != givenAway {
			all = append(all, k)
		}
	}
	leave(a.session, a.id, all...)
}

// SessionID is the one that the contenders belong to, 0 before the first.
func (a *Attempt) SessionID() int64 { return a.id }

// SawAhead is whether a node was seen ahead.
func (a *Attempt) SawAhead() bool { return a.sawAhead }

// tellWait says that an attempt waits with a node in a queue. It is a separate function,
// since every waiter pays for what is on the stack while an attempt waits.
//
//go:noinline
func (a *Attempt) tellWait(q *Queue, node string, p *Position) {
	a.host.Observe(Event{Kind: Wait, Queue: q, Node: node, Position: p, Spread: a.sawMulti})
}

const (
	firstPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// pause keeps failures that follow each other from being a tight loop. The first
// few cost nothing: a reconnect takes its time by itself.
func pause(ctx context.Context, failures int) error {
	if failures < 3 {
		return nil
	}
	t := time.NewTimer(min(mostPause, firstPause<<min(failures-3, 10)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return contextend.Of(ctx)
	}
}

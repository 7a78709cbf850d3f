package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// InterProcessMultiLock is several locks as one: it takes all or none, and is lost as
// soon as one of them is. Make it with NewInterProcessMultiLock. It has no state of
// its own, and any number of goroutines may use it.
//
// Source: Curator's InterProcessMultiLock. Differs: its members are taken in one
// step, a failure stops it at once, and the wait is limited as a whole.
type InterProcessMultiLock struct {
	_       noCopy
	members []Lock
	paths   []string // of the members, "" for those of other packages
	ordered bool
	err     error
}

// NewInterProcessMultiLock makes one lock of several. It takes mutexes, sides of
// read/write locks and semaphore mutexes of one client together: one transaction puts a
// node into each queue. So MultiLocks cannot deadlock among themselves, in whatever order
// they name their members.
//
// Other owners may take the same locks one after another. While a MultiLock does not have
// all members, it yields its place to an owner behind it that holds what it waits for. So
// a waiting MultiLock blocks nobody for ever.
//
// Semaphores and locks of other clients need steps of their own. All steps are taken in the
// order of the paths, with members of types of your own at the end, in the order given. Locks
// of several ensembles at one path keep the order given, too: name them in one order everywhere.
// With several steps a MultiLock is an owner that takes locks one after another: then such owners
// must all keep to the order of the paths. If the MultiLock cannot get a member, it gives
// back those that it has, in reverse.
//
// Under a hold, give Acquire the context of that hold. Otherwise other MultiLocks count on
// this one to give up all that its owner has, and both may wait for ever.
//
// A nested MultiLock stands for its members. The same lock twice counts once, be it one
// lock object or two, and both sides of a read/write lock count as its write side. So of a
// semaphore it takes one lease. Members that the caller holds already are re-entered. With a
// nil lock, with locks of two kinds or numbers of leases at one path of a client, or with no lock
// at all, every Acquire returns ErrInvalidLock. Two lock objects of one lock count with the options
// of the first.
//
// A type of your own may have a method Unwrap() Lock. The MultiLock then takes the lock
// that Unwrap returns, together with the others, and does not call the member's
// Acquire.
func NewInterProcessMultiLock(lockSet ...Lock) *InterProcessMultiLock {
	m := &InterProcessMultiLock{}
	if len(lockSet) == 0 {
		m.err = fmt.Errorf("%w: no members", ErrInvalidLock)
	}
	for i, lock := range lockSet {
		if err := m.add(lock); err != nil && m.err == nil {
			m.err = fmt.Errorf("member %d: %w", i, err)
		}
	}
	slices.SortStableFunc(m.members, func(a, b Lock) int {
		pa, pb := queueOf(a).Lock, queueOf(b).Lock
		switch {
		case pa == "" || pb == "": // foreign ones last
			return -cmp.Compare(pa, pb)
		}
		return cmp.Compare(pa, pb)
	})
	for _, member := range m.members {
		m.paths = append(m.paths, queueOf(member).Lock)
	}
	return m
}

// queueOf is where the nodes stand that have the lock of a member. For a foreign one it is
// the zero queue.
func queueOf(member Lock) *queue {
	if own, ours := member.(ownMember); ours {
		return own.holders()
	}
	return &queue{}
}

// add takes in a member, or those of a MultiLock.
func (m *InterProcessMultiLock) add(lock Lock) error {
	for range mostWrapped {
		wrapper, wraps := lock.(interface{ Unwrap() Lock })
		if !wraps {
			break
		}
		if lock = wrapper.Unwrap(); lock == nil {
			return fmt.Errorf("%w: its Unwrap returns nil", ErrInvalidLock)
		}
	}
	if err := faultOf(lock); err != nil {
		return err
	}
	if nested, ok := lock.(*InterProcessMultiLock); ok {
		for _, inner := range nested.members {
			if err := m.add(inner); err != nil {
				return err
			}
		}
		return nil
	}
	q := queueOf(lock)
	for i, have := range m.members {
		other := queueOf(have)
		ours := q.Core != nil && q.key == other.key
		switch {
		case same(have, lock), ours && q.Kind == other.Kind && leasesOf(lock) == leasesOf(have), ours && q.Kind == znode.Read && other.Kind == znode.Write:
			return nil
		case ours && q.Kind == znode.Write && other.Kind == znode.Read:
			m.members[i] = lock
			return nil
		case ours: // to find out at the servers leaves nodes of both there
			return fmt.Errorf("%w: %s is the path of an earlier member, a lock of another kind or with another number of leases: give each lock a path of its own", ErrInvalidLock, q.Lock)
		}
	}
	m.members = append(m.members, lock)
	return nil
}

// leasesOf is how many leases there are in all of what a member is, 0 if it is no semaphore.
func leasesOf(member Lock) int {
	switch l := member.(type) {
	case *InterProcessSemaphore:
		return l.total
	case *InterProcessSemaphoreMutex:
		return l.semaphore.total
	}
	return 0
}

// mostWrapped is how often a lock may be wrapped. One that wraps itself is then taken as
// what it is.
const mostWrapped = 100

// same is whether two members are one value, for types that can be compared.
func same(a, b Lock) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// Ordered returns a copy that takes its members one by one in the order of their paths.
// Use it where many owners nest the same locks in that order: it then gets its turn
// sooner. Otherwise it is slower. If an owner with a lock at a later path waits behind it, it
// goes on in the reverse order.
func (m *InterProcessMultiLock) Ordered() *InterProcessMultiLock {
	if m == nil {
		return nil
	}
	return &InterProcessMultiLock{members: m.members, paths: m.paths, ordered: true, err: m.err}
}

// Acquire waits until the caller has all members or ctx ends. Errors are those of
// InterProcessMutex.Acquire and of members of your own types. It returns
// framework.ErrTooLarge if the nodes do not fit into one transaction of half a megabyte.
// If it gives members back and the servers refuse to delete nodes, it joins these
// errors. Once ctx has ended it does not wait for their answers.
//
// Cost: one round trip for any number of members of one client, if they are free and
// the nodes at their paths exist, and one to release. One more if another owner was in
// the way of a semaphore mutex the last time.
func (m *InterProcessMultiLock) Acquire(ctx context.Context) (*Hold, error) {
	return m.take(ctx, noLimit)
}

// TryAcquire waits for wait at most, for all members together; see Lock.
func (m *InterProcessMultiLock) TryAcquire(ctx context.Context, wait time.Duration) (*Hold, error) {
	return m.take(ctx, limit{bounded: true, wait: wait})
}

func (m *InterProcessMultiLock) take(ctx context.Context, lim limit) (*Hold, error) {
	if m.isZero() {
		return nil, opError("acquire", "multi-lock", m.fault())
	}
	if t := m.holders().tracing(); t != nil {
		return t.acquire(ctx, m.describe(), func(ctx context.Context) (*Hold, error) { return m.acquire(ctx, lim) })
	}
	return m.acquire(ctx, lim)
}

func (m *InterProcessMultiLock) acquire(ctx context.Context, lim limit) (*Hold, error) {
	if err := usable(ctx, m.err); err != nil {
		return nil, opError("acquire", "multi-lock", err)
	}
	waitedIn := map[*session.Session]int64{}
	for began := time.Now(); ; {
		holds := make([]*Hold, len(m.members))
		if err := m.takeAll(ctx, lim, began, holds, waitedIn); err != nil {
			return nil, err
		}
		hold, err := newGroup(ctx, holds)
		if err == nil {
			return hold, nil
		}
		if err := again(holds, err); err != nil {
			return nil, opError("acquire", "multi-lock", err)
		}
	}
}

// takeAll takes every member, or none. After an error, or if a function of the caller
// panics, it gives back those that it has.
func (m *InterProcessMultiLock) takeAll(ctx context.Context, lim limit, began time.Time, holds []*Hold, waitedIn map[*session.Session]int64) (err error) {
	whole, until := false, began.Add(lim.wait)
	defer func() {
		if !whole {
			if told := (*WaitError)(nil); errors.As(err, &told) {
				told.Has, told.Wants = m.standing(told.Has, holds)
				told.Waited = time.Since(began)
			}
			have := slices.DeleteFunc(holds, func(h *Hold) bool { return h == nil })
			giveUp := ctx
			if lim.bounded && !lim.once() {
				limited, cancel := context.WithDeadline(ctx, until)
				defer cancel()
				giveUp = limited
			}
			err = errors.Join(err, refusals(releaseAll(have, giveUp.Done())))
		}
	}()
	joint, err := m.begin(ctx, holds)
	if err != nil {
		return err
	}
	run, step := m.run(0, joint, holds), multiStep{}
	if len(run) < len(m.members) {
		step.tag = m.tag(ctx)
	}
	for from := 0; from < len(m.members); run = m.run(from, joint, holds) {
		stepCtx := ctx
		if step.tag != (nodename.Tag{}) {
			stepCtx = context.WithValue(ctx, multiStepKey{}, step)
		}
		step.holding = true
		switch {
		case len(run) > 1:
			from = run[len(run)-1] + 1
			err = m.takeJointly(stepCtx, lim.rest(until), run, joint, holds, waitedIn)
		case holds[from] == nil:
			holds[from], err = lim.rest(until).acquire(stepCtx, m.members[from])
			if err == nil {
				err = holds[from].note(waitedIn)
			}
			from++
		default:
			from++
		}
		if err != nil {
			return err
		}
	}
	whole = true
	return nil
}

// note notes in which session the hold was acquired. A lock with FailOnSessionLoss that was
// acquired in a later one than others of the same wait fails.
func (h *Hold) note(waitedIn map[*session.Session]int64) error {
	o := h.ownership
	if o.queue == nil {
		return nil
	}
	s, id := o.queue.Core.Session(), o.node.SessionID()
	if waitedIn[s] = cmp.Or(waitedIn[s], id); waitedIn[s] != id && o.queue.FailOnLoss {
		return opError("acquire", o.queue.Lock, framework.ErrSessionExpired)
	}
	return nil
}

// standing are the paths of the members that it has, and of the others, without foreign ones,
// whose paths are not known. It has those that a step had by then, and those that it holds.
func (m *InterProcessMultiLock) standing(step []string, holds []*Hold) (has, wants []string) {
	for i, path := range m.paths {
		switch {
		case path == "":
		case holds[i] != nil || slices.Contains(step, path):
			has = append(has, path)
		default:
			wants = append(wants, path)
		}
	}
	return has, wants
}

// run are the members to be taken next in one step: mutexes, sides and semaphore mutexes of
// one client that follow each other, from one of them on.
//
// A MultiLock takes its steps in the order of the paths. So two of them that have to take
// several steps do so in one order, and neither waits for what the other has taken before.
func (m *InterProcessMultiLock) run(from int, joint []acquire.Member, holds []*Hold) (run []int) {
	for i := from; i < len(m.members); i++ {
		if holds[i] != nil {
			continue
		}
		if joint[i].Queue == nil || len(run) > 0 && joint[i].Queue.Core.Session() != joint[run[0]].Queue.Core.Session() {
			break
		}
		run = append(run, i)
	}
	return run
}

// begin does what needs no server, and says which members can be taken in one step with
// others. What the caller holds already is re-entered, and what it waits for itself refused.
func (m *InterProcessMultiLock) begin(ctx context.Context, holds []*Hold) (joint []acquire.Member, err error) {
	joint = make([]acquire.Member, len(m.members))
	for i, lock := range m.members {
		own, ours := lock.(ownMember)
		if !ours {
			continue
		}
		if holds[i], joint[i], err = own.beginMember(ctx); err != nil {
			return nil, opError("acquire", m.paths[i], err)
		}
	}
	return joint, nil
}

// tag is that of all nodes of the MultiLock, whatever step or client they are of.
func (m *InterProcessMultiLock) tag(ctx context.Context) nodename.Tag {
	if q := m.holders(); q.Core != nil && len(m.members) > 1 {
		return ownerOf(ctx, q.Core.Session(), "", nodename.Plain, (*ownership).wantedThen).Tag
	}
	return nodename.Tag{}
}

// takeJointly takes members in one step. It notes in which session of the client it did so, and
// asks in no other one if a member has FailOnSessionLoss.
func (m *InterProcessMultiLock) takeJointly(ctx context.Context, lim limit, run []int, joint []acquire.Member, holds []*Hold, waitedIn map[*session.Session]int64) error {
	members, paths := make([]acquire.Member, len(run)), make([]string, len(run))
	for n, i := range run {
		members[n], paths[n] = joint[i], m.paths[i]
	}
	s, label := members[0].Queue.Core.Session(), brief(paths)
	wait := &multiWait{members: m.paths}
	for i, path := range m.paths {
		if holds[i] == nil && !slices.Contains(run, i) {
			wait.later = append(wait.later, path)
		}
	}
	began := time.Now()
	limited, cancel, err := lim.begin(ctx, s, label)
	if err != nil {
		return opError("acquire", label, err)
	}
	defer cancel()
	for {
		got := &nodesHost{queues: func(n int) *queue { return queueOf(m.members[run[n]]) }}
		got.trace, got.log, got.multi = acquireTraceOf(ctx), &sharedOf(s).waitLog, wait
		a := acquire.NewMulti(members, m.ordered, ownerOf(ctx, s, paths[0], nodename.Plain, (*ownership).wantedThen), got)
		if holdChainOf(ctx) != nil {
			a.Under = func() nodename.Owner {
				return ownerOf(ctx, s, paths[0], nodename.Plain, func(o *ownership) bool { return o.wanted(limited) })
			}
		}
		a.WaitedIn(waitedIn[s])
		if err := a.Run(limited, lim.once()); err != nil {
			return opError("acquire", label, lim.verdict(ctx, limited, s, label, began, err))
		}
		won, err := holdAll(ctx, got.owned)
		if err != nil {
			return opError("acquire", label, err)
		}
		waitedIn[s] = cmp.Or(waitedIn[s], got.owned[0].node.SessionID())
		for n, hold := range won {
			holds[run[n]] = hold
		}
		if won != nil {
			return nil
		}
	}
}

func (m *InterProcessMultiLock) isZero() bool {
	return m == nil || len(m.members) == 0 && m.err == nil
}

func (m *InterProcessMultiLock) fault() error {
	if m.isZero() {
		return unmade("NewInterProcessMultiLock")
	}
	return m.err
}

// holders is the queue of the first member that has one, or else the zero queue.
func (m *InterProcessMultiLock) holders() *queue {
	if m.err == nil {
		for _, member := range m.members {
			if q := queueOf(member); q.Core != nil {
				return q
			}
		}
	}
	return &queue{}
}

func (m *InterProcessMultiLock) describe() monitor.Lock {
	l := monitor.Lock{Kind: monitor.MultiLock, Members: m.paths}
	if q := m.holders(); q.Core != nil {
		l.Participant = participantOf(&q.Queue)
	}
	l.Path = strings.Join(l.Members, ", ")
	return l
}

// String is the kind of the lock and the paths of its members, in full, for logs.
func (m *InterProcessMultiLock) String() string {
	if m == nil || len(m.members) == 0 {
		return label(monitor.MultiLock, "", true)
	}
	var paths []string
	for _, path := range m.paths {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return label(monitor.MultiLock, strings.Join(paths, ", "), false)
}

package acquire

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/deadlock"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
	zktest "github.com/paddock-zk/paddock/testing"
)

// bareCore is a client that only has a session.
type bareCore struct {
	session.Core
	session *session.Session
}

func (c bareCore) Session() *session.Session { return c.session }

func (bareCore) ACL(string) []wire.ACL { return nil }

func openSession(t *testing.T, srv *zktest.Server) *session.Session {
	t.Helper()
	s, err := session.Open(session.Config{
		Transport: transport.Config{
			Servers: []string{srv.ConnectString()}, SessionTimeout: 10 * time.Second, ConnectTimeout: time.Second,
			MaxReply: 1 << 20, MaxRequest: 1 << 20, Dial: srv.DialContext,
		},
		CloseTimeout: time.Second, Logger: zap.NewNop(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// A MultiLock sets its watches, and the connection is lost before that or meanwhile. None
// may count as set: a queue whose watch is not set again is waited for without end.
func TestMulti_CountsNoLostWatch(t *testing.T) {
	const members = 3
	for lost := range members + 1 { // at which request; 0 is before the first
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			srv := zktest.Start(t)
			s := openSession(t, srv)
			c, err := s.AwaitConn(t.Context(), true)
			require.NoError(t, err)

			var locks []Member
			for i := range members {
				locks = append(locks, Member{Queue: &Queue{Core: bareCore{session: s}, Path: fmt.Sprint("/l", i), Kind: znode.Lock, Kinds: []znode.Kind{znode.Lock}, Rule: znode.Exclusive}})
			}
			a := NewMulti(locks, false, nodename.Owner{}, nil)
			for _, m := range a.members { // behind another node in each queue
				m.phase, m.path, m.snapshot, m.predecessor = queued, m.queue.Path+"/x-lock-0000000002", new(znode.Snapshot), "x-lock-0000000001"
				require.True(t, m.waits())
			}
			if lost == 0 {
				c.Kill(errors.New("cut"))
			} else {
				srv.On(zktest.Match{Op: "getData", Nth: lost}, zktest.CutBefore())
			}
			_, err = a.watch(t.Context(), c, true)
			require.Error(t, err)
			for i, m := range a.members {
				assert.Zero(t, m.watch, "member %d", i)
			}
		})
	}
}

// A MultiLock whose own places are out of order is not calm, also where it does not know
// when its node was made, since that reply was lost.
func TestMulti_IsCalmOnlyInOrder(t *testing.T) {
	const unknown = 0
	for name, tc := range map[string]struct {
		way   nodename.Way
		waits int      // in which queue; it is first in the others
		made  [3]int64 // the transactions that made its nodes
		calm  bool
	}{
		"made together":                     {nodename.Joint, 1, [3]int64{5, 5, 5}, true},
		"waits with an older node":          {nodename.Joint, 1, [3]int64{6, 5, 7}, true},
		"waits with a newer node":           {nodename.Joint, 1, [3]int64{5, 6, 7}, false},
		"waits with one of unknown age":     {nodename.Joint, 1, [3]int64{5, unknown, 5}, false},
		"is first with one of unknown age":  {nodename.Joint, 1, [3]int64{unknown, 5, 5}, false},
		"Ordered, waits at the end":         {nodename.Ordered, 2, [3]int64{5, 6, 7}, true},
		"Ordered, waits earlier":            {nodename.Ordered, 0, [3]int64{9, 6, 7}, false},
		"the same, of unknown age":          {nodename.Ordered, 0, [3]int64{unknown, 6, 7}, false},
		"Ordered, in order, of unknown age": {nodename.Ordered, 2, [3]int64{5, unknown, unknown}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var locks []Member
			for i := range tc.made {
				locks = append(locks, Member{Queue: &Queue{Core: bareCore{}, Path: fmt.Sprint("/l", i)}})
			}
			a := NewMulti(locks, false, nodename.Owner{}, nil)
			a.way = tc.way
			for i, m := range a.members {
				m.phase, m.snapshot, m.first, m.czxid = queued, new(znode.Snapshot), i != tc.waits, tc.made[i]
			}
			assert.Equal(t, tc.calm, a.calm())
		})
	}
}

// yields notes in which queue a MultiLock yields first.
type yields struct {
	Host
	in *Queue
}

func (y *yields) Observe(e Event) {
	if e.Kind == Yield && y.in == nil {
		y.in = e.Queue
	}
}

// mutexes are the members of a MultiLock, /l0 and so on.
func mutexes(s *session.Session, n int) (all []Member) {
	for i := range n {
		all = append(all, Member{Queue: &Queue{
			Core: bareCore{session: s}, Path: fmt.Sprint("/l", i), Kind: znode.Lock, Kinds: []znode.Kind{znode.Lock},
			Rule: znode.Exclusive, Data: []byte{},
		}})
	}
	return all
}

// A MultiLock that has changed its order too often moves where somebody waits whose order it
// cannot follow. It looks before whether an owner waits elsewhere that has what it wants.
// Otherwise two that move for each other over and over would not see that owner.
func TestMulti_LooksWhoWaitsBeforeItMoves(t *testing.T) {
	srv := zktest.Start(t)
	s := openSession(t, srv)
	c, err := s.AwaitConn(t.Context(), true)
	require.NoError(t, err)
	name := func(tag byte, way nodename.Way, sequence int) string {
		owner := nodename.Owner{Tag: nodename.NewTag(1, [3]byte{tag}), Way: way}
		return fmt.Sprintf("%slock-%010d", nodename.Owned([10]byte{tag}, owner), sequence)
	}
	ours := name(1, nodename.Ordered, 1)
	nests := func(sequence int) string { return name(2, nodename.Nesting, sequence) }
	queues := [][]string{
		{ours, name(3, nodename.Backward, 2)},
		{ours, nests(2)},
		{nests(0), ours}, // for which we wait
	}
	locks := mutexes(s, len(queues))
	for first, left := range map[int]int{2: mostLeft - 1, 1: mostLeft} { // it turns round, or makes room
		a := NewMulti(locks, true, nodename.Owner{Tag: nodename.NewTag(1, [3]byte{1})}, nil)
		seen := new(yields)
		a.host, a.session, a.way, a.left, a.asked = seen, s, nodename.Ordered, left, make(map[string]asked)
		a.history.Begin(len(queues), false, time.Now())
		a.history.SawHolder(2, nests(0), time.Now().Add(-time.Minute))
		for i, m := range a.members {
			for _, n := range queues[i] {
				a.asked[m.queue.Path+"/"+n] = asked{session: 7}
			}
			m.snapshot, err = m.queue.Parse(wire.NamesOf(queues[i]))
			require.NoError(t, err)
			m.phase, m.path, m.first, m.place = queued, m.queue.Path+"/"+ours, i < 2, i/2
		}
		_, _ = a.makeRoom(t.Context(), c) // our nodes are not there, which the servers refuse
		assert.Same(t, locks[first].Queue, seen.in, "after it has left %d times", left)
	}
}

// A MultiLock follows backward ones unless owners that say what they have all go in the other order.
// Beside another library it does once its client has learned, or heard, that this is the order. It would
// go to and fro between the two otherwise.
func TestMulti_FollowsBackwardOnesInTheOrderOfOthers(t *testing.T) {
	const both, backward, ordered = nodename.Ways(1<<nodename.Unknown | 1<<nodename.Backward), nodename.Ways(1 << nodename.Backward), nodename.Ways(1 << nodename.Ordered)
	a := NewMulti([]Member{{Queue: &Queue{Core: bareCore{}}}}, false, nodename.Owner{}, nil)
	a.session = openSession(t, zktest.Start(t))
	assert.Equal(t, backward|ordered, a.ordered(backward|ordered), "nobody has said what it has")
	h := a.habitsOfOthers()
	h.inOrder.now()
	assert.Equal(t, ordered.With(nodename.Nesting), a.ordered(backward|ordered), "all go in the order of the paths")
	h.reverse.now()
	assert.Equal(t, backward|ordered, a.ordered(backward|ordered), "some go in the reverse order")
	assert.Equal(t, both.With(nodename.Nesting), a.ordered(both), "also beside another library")
	h.inOrder.at.Store(nil)
	h.reverse.at.Store(nil)

	a.others = both
	assert.Equal(t, nodename.Ways(0).With(nodename.Unknown).With(nodename.Nesting), a.ordered(both), "beside another library")
	h.Hear()
	assert.Equal(t, backward, a.ordered(backward))
	assert.Equal(t, both.With(nodename.Reverse), a.ordered(both))
	a.others = backward
	assert.Equal(t, backward, a.ordered(backward), "nobody of that library is here now")
}

// Owners of another library may take one set of locks in one order and another set in the other. What
// a client learns of the one does not count for the other.
func TestMulti_SetsOfLocksHaveOrdersOfTheirOwn(t *testing.T) {
	s := openSession(t, zktest.Start(t))
	multi := func(paths ...string) *Multi {
		var locks []Member
		for _, p := range paths {
			locks = append(locks, Member{Queue: &Queue{Core: bareCore{}, Lock: p}})
		}
		a := NewMulti(locks, false, nodename.Owner{}, nil)
		a.session = s
		return a
	}
	multi("/x/1", "/y/1").habitsOfOthers().Hear()
	assert.True(t, multi("/x/2", "/x/3").habitsOfOthers().Reverse())
	assert.True(t, multi("/y/2", "/x/3").habitsOfOthers().Reverse(), "turned round")
	assert.False(t, multi("/y/1", "/y/2").habitsOfOthers().Reverse())
}

// One that has left queues over and over moves. One with a semaphore that has moved over and
// over leaves once.
func TestMulti_LeavesAfterManyMoves(t *testing.T) {
	plain := Member{Queue: &Queue{Core: bareCore{}}}
	semaphore := Member{Queue: plain.Queue, Turns: plain.Queue}
	for name, tc := range map[string]struct {
		member  Member
		ordered bool
		why     deadlock.Reason
		first   int // so often it leaves at first
	}{
		"nothing shows":                  {plain, false, deadlock.Time, mostLeft},
		"an owner waits":                 {plain, false, deadlock.Matched, 0},
		"Ordered, and nothing shows":     {plain, true, deadlock.Time, mostLeft},
		"Ordered, and an owner waits":    {plain, true, deadlock.Matched, 0},
		"a semaphore, and nothing shows": {semaphore, false, deadlock.Time, 0},
		"a semaphore, and an owner":      {semaphore, true, deadlock.Matched, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewMulti([]Member{tc.member, plain}, tc.ordered, nodename.Owner{}, nil)
			a.way = a.owner.Way
			for i := range tc.first + 3*(mostMoved+1) {
				want := i < tc.first || tc.member == semaphore && i%(mostMoved+1) == mostMoved
				assert.Equal(t, want, a.leaves(tc.why), "after %d times", i)
			}
		})
	}
}

// All nodes are gone from a later queue when we come first in an earlier one. Whoever waits for us
// is looked for once all lists of the round have been looked at.
func TestMulti_ComesFirstWhileALaterQueueIsEmpty(t *testing.T) {
	s := openSession(t, zktest.Start(t))
	ours := fmt.Sprintf("%slock-%010d", nodename.Owned([10]byte{1}, nodename.Owner{Tag: nodename.NewTag(1, [3]byte{1}), Way: nodename.Ordered}), 1)
	queues := [][]string{{ours}, nil}
	locks := mutexes(s, len(queues))
	a := NewMulti(locks, true, nodename.Owner{Tag: nodename.NewTag(1, [3]byte{1})}, nil)
	a.host, a.session, a.way = new(yields), s, nodename.Ordered
	a.history.Begin(len(queues), false, time.Now())
	for i, m := range a.members {
		var err error
		m.snapshot, err = m.queue.Parse(wire.NamesOf(queues[i]))
		require.NoError(t, err)
		m.phase, m.path, m.first = queued, m.queue.Path+"/"+ours, i == 1
		a.listed = append(a.listed, m)
	}
	require.NotPanics(t, func() { assert.Error(t, a.locateAll(), "our node is gone from the second") })
}

// It forgets who owned nodes that have gone. Otherwise one that waits beside others for days would grow.
func TestMulti_ForgetsNodesThatHaveGone(t *testing.T) {
	srv := zktest.Start(t)
	s := openSession(t, srv)
	c, err := s.AwaitConn(t.Context(), true)
	require.NoError(t, err)
	a := NewMulti(mutexes(s, 1), false, nodename.Owner{}, nil)
	m := a.members[0]
	head := nodename.Owned([10]byte{1}, nodename.Owner{}) + "lock-0000000000"
	m.snapshot, err = m.queue.Parse(wire.NamesOf([]string{head}))
	require.NoError(t, err)
	a.session, a.asked = s, make(map[string]asked)
	for i := range 1000 {
		a.asked[fmt.Sprint("/l0/gone", i)] = asked{session: 7}
	}
	_ = a.askSessions(t.Context(), c)
	assert.LessOrEqual(t, len(a.asked), 1)
}

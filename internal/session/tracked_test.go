package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/session/lease"
)

// nobody owns a tracked node and hears nothing.
type nobody struct{}

func (nobody) NodeChanged(*TrackedNode, TrackedState, error) {}

type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time                  { return c.now }
func (c *handClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

// claimedSession has a tracked node that was asked for, in a session of the timeout given.
func claimedSession(timeout time.Duration) (*Session, *TrackedNode, *handClock) {
	clock := &handClock{now: time.Now()}
	s := &Session{clock: clock, opened: clock.now, id: 1}
	s.lease.Begin(byServer(timeout), clock.now, clock.now, true)
	node := &TrackedNode{session: s, state: NodeHeld, owner: nobody{}}
	s.tracked.add(node)
	return s, node, clock
}

func byServer(timeout time.Duration) lease.Terms {
	return lease.Terms{Rule: lease.ByServer, Timeout: timeout}
}

func stateOf(node *TrackedNode) TrackedState {
	state, _ := node.State()
	return state
}

// What was found of the deadline is used again only while it holds.
func TestClaimStateIsAsTheClockSays(t *testing.T) {
	const long, short = 40 * time.Second, 4 * time.Second

	_, node, clock := claimedSession(long)
	assert.Equal(t, NodeHeld, stateOf(node))
	clock.now = clock.now.Add(byServer(long).Span() - 1)
	assert.Equal(t, NodeHeld, stateOf(node), "before the deadline")
	clock.now = clock.now.Add(1)
	assert.Equal(t, NodeLost, stateOf(node), "at the deadline, which no timer has told of")

	s, node, clock := claimedSession(long)
	assert.Equal(t, NodeHeld, stateOf(node))
	s.lease.Replied(lease.Reply{Sent: clock.now.Add(long / 2)})
	clock.now = clock.now.Add(long)
	assert.Equal(t, NodeHeld, stateOf(node), "a later reply")

	s, node, clock = claimedSession(long)
	assert.Equal(t, NodeHeld, stateOf(node))
	notifyOwners(s.makeUncertainLocked())
	assert.Equal(t, NodeUncertain, stateOf(node), "without a connection")
	s.lease.Begin(byServer(short), clock.now, clock.now, false) // by the next server
	notifyOwners(s.confirmLocked(node))
	assert.Equal(t, NodeHeld, stateOf(node))
	clock.now = clock.now.Add(short)
	assert.Equal(t, NodeLost, stateOf(node), "another server grants less")

	s, node, clock = claimedSession(long)
	assert.Equal(t, NodeHeld, stateOf(node))
	notifyOwners(s.loseTrackedLocked(ErrNotConnected))
	assert.Equal(t, NodeLost, stateOf(node))
	s.id = 2
	s.lease.Begin(byServer(short), clock.now, clock.now, true)
	next := &TrackedNode{session: s, state: NodeHeld}
	s.tracked.add(next)
	clock.now = clock.now.Add(short)
	assert.Equal(t, NodeLost, stateOf(next), "the next session")

	s, node, _ = claimedSession(long)
	assert.Equal(t, NodeHeld, stateOf(node))
	notifyOwners(s.loseLocked(node, ErrSessionOver))
	assert.Equal(t, NodeLost, stateOf(node), "its node is gone")
}

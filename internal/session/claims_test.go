package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/session/lease"
)

type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time                  { return c.now }
func (c *handClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

// claimedSession has a claim that was asked for, in a session of the timeout given.
func claimedSession(timeout time.Duration) (*Session, *Claim, *handClock) {
	clock := &handClock{now: time.Now()}
	s := &Session{clock: clock, opened: clock.now, claims: newClaims(), id: 1}
	s.lease.Begin(byServer(timeout), clock.now, clock.now, true)
	cl := &Claim{state: ClaimHeld, tell: func(*Claim, ClaimState, error) {}}
	s.claims.add(cl)
	return s, cl, clock
}

func byServer(timeout time.Duration) lease.Terms {
	return lease.Terms{Rule: lease.ByServer, Timeout: timeout}
}

func stateOf(s *Session, cl *Claim) ClaimState {
	state, _ := s.ClaimState(cl)
	return state
}

// What was found of the deadline is used again only while it holds.
func TestClaimStateIsAsTheClockSays(t *testing.T) {
	const long, short = 40 * time.Second, 4 * time.Second

	s, cl, clock := claimedSession(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	clock.now = clock.now.Add(byServer(long).Span() - 1)
	assert.Equal(t, ClaimHeld, stateOf(s, cl), "before the deadline")
	clock.now = clock.now.Add(1)
	assert.Equal(t, ClaimLost, stateOf(s, cl), "at the deadline, which no timer has told of")

	s, cl, clock = claimedSession(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	s.lease.Replied(lease.Reply{Sent: clock.now.Add(long / 2)})
	clock.now = clock.now.Add(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl), "a later reply")

	s, cl, clock = claimedSession(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	tell(s.doubtClaimsLocked())
	assert.Equal(t, ClaimUncertain, stateOf(s, cl), "without a connection")
	s.lease.Begin(byServer(short), clock.now, clock.now, false) // by the next server
	tell(s.confirmLocked(cl))
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	clock.now = clock.now.Add(short)
	assert.Equal(t, ClaimLost, stateOf(s, cl), "another server grants less")

	s, cl, clock = claimedSession(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	tell(s.loseClaimsLocked(ErrNotConnected))
	assert.Equal(t, ClaimLost, stateOf(s, cl))
	s.id = 2
	s.lease.Begin(byServer(short), clock.now, clock.now, true)
	next := &Claim{state: ClaimHeld}
	s.claims.add(next)
	clock.now = clock.now.Add(short)
	assert.Equal(t, ClaimLost, stateOf(s, next), "the next session")

	s, cl, _ = claimedSession(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	tell(s.loseLocked(cl, ErrSessionOver))
	assert.Equal(t, ClaimLost, stateOf(s, cl), "its node is gone")
}

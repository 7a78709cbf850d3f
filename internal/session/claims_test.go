package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time                  { return c.now }
func (c *handClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

// claimedSession has a claim that was asked for, in a session of the timeout given.
func claimedSession(timeout time.Duration) (*Session, *Claim, *handClock) {
	clock := &handClock{now: time.Now()}
	s := &Session{clock: clock, opened: clock.now, claims: newClaims(), id: 1}
	cl := &Claim{state: ClaimHeld, tell: func(*Claim, ClaimState, error) {}}
	s.claims.add(cl)
	s.belief = belief{timeout: timeout, acked: clock.now}
	return s, cl, clock
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
	clock.now = clock.now.Add(long - long/64 - 1)
	assert.Equal(t, ClaimHeld, stateOf(s, cl), "before the deadline")
	clock.now = clock.now.Add(1)
	assert.Equal(t, ClaimLost, stateOf(s, cl), "at the deadline, which no timer has told of")

	s, cl, clock = claimedSession(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	s.belief.acked = clock.now.Add(long / 2)
	clock.now = clock.now.Add(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl), "a later reply")

	s, cl, clock = claimedSession(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	tell(s.doubtClaimsLocked())
	assert.Equal(t, ClaimUncertain, stateOf(s, cl), "without a connection")
	s.belief.timeout = short // by the next server
	tell(s.confirmLocked(cl))
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	clock.now = clock.now.Add(short)
	assert.Equal(t, ClaimLost, stateOf(s, cl), "another server grants less")

	s, cl, clock = claimedSession(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	tell(s.loseClaimsLocked(ErrNotConnected))
	assert.Equal(t, ClaimLost, stateOf(s, cl))
	s.id, s.belief = 2, belief{timeout: short, acked: clock.now}
	next := &Claim{state: ClaimHeld}
	s.claims.add(next)
	clock.now = clock.now.Add(short)
	assert.Equal(t, ClaimLost, stateOf(s, next), "the next session")

	s, cl, _ = claimedSession(long)
	assert.Equal(t, ClaimHeld, stateOf(s, cl))
	tell([]change{s.loseLocked(cl, ErrSessionOver)})
	assert.Equal(t, ClaimLost, stateOf(s, cl), "its node is gone")
}

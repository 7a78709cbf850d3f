package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/link"
)

// scale makes the arithmetic readable: a session timeout of 12 seconds has a
// relay period of 4 and counts a write as quick up to 2.
const scale = 12 * time.Second

// allowance is what a deadline is earlier by, for slow clocks.
const allowance = scale / 64

var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }

func ack(sent, replied float64) link.Ack { return link.Ack{Sent: at(sent), Replied: at(replied)} }

func write(sent, replied float64) link.Ack {
	return link.Ack{Sent: at(sent), Replied: at(replied), Write: true}
}

func TestBeliefProvedByTheServer(t *testing.T) {
	b := belief{timeout: scale, acked: at(0)}
	assert.Equal(t, at(12), b.deadline(ProofServer).Add(allowance), "from the connect request")
	b.hear(ack(4, 9))
	assert.Equal(t, at(16), b.deadline(ProofServer).Add(allowance), "from the sending, not from the reply")
	b.hear(ack(3, 10))
	assert.Equal(t, at(16), b.deadline(ProofServer).Add(allowance), "an older one takes nothing back")
}

func TestBeliefProvedByTheLeader(t *testing.T) {
	for _, tc := range []struct {
		name string
		acks []link.Ack
		want time.Time
	}{
		{"nothing but the connect request", nil, time.Time{}},
		{"reads and pings prove nothing", []link.Ack{ack(1, 1), ack(5, 5), ack(9, 9)}, time.Time{}},
		{"a write confirms the connect request", []link.Ack{write(1, 1)}, at(12)},
		{"a slow write confirms nothing", []link.Ack{write(1, 3.1)}, time.Time{}},
		{"a write that was just quick", []link.Ack{write(1, 3)}, at(12)},
		{"a ping one relay period before the write", []link.Ack{ack(3, 3), write(7, 7)}, at(15)},
		{"a ping less than that before", []link.Ack{ack(3, 3.1), write(7, 7)}, at(12)},
		{"the latest of those confirmed", []link.Ack{ack(1, 1), ack(2, 2), ack(3, 3), ack(5, 5), write(7, 7)}, at(15)},
		{"what counts is when the reply came", []link.Ack{ack(1, 6), write(7, 7)}, at(12)},
		{"a write is confirmed by a later one", []link.Ack{write(1, 1), write(5, 5)}, at(13)},
		{"one confirmed stays confirmed", []link.Ack{ack(3, 3), write(7, 7), write(8, 20)}, at(15)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := belief{timeout: scale, acked: at(0), connect: at(0)}
			for _, a := range tc.acks {
				b.hear(a)
			}
			if !tc.want.IsZero() {
				tc.want = tc.want.Add(-allowance)
			}
			assert.Equal(t, tc.want, b.deadline(ProofLeader))
		})
	}
}

func TestBeliefSaysWhenToProve(t *testing.T) {
	b := belief{timeout: scale, acked: at(0), connect: at(0)}
	due, ok := b.due()
	assert.True(t, ok)
	assert.Equal(t, at(0), due, "the connect request at once")
	b.proved = at(0)
	_, ok = b.due()
	assert.False(t, ok, "nothing to confirm")
	assert.True(t, b.hear(ack(3, 3.5)))
	assert.False(t, b.hear(ack(5, 5)))
	due, ok = b.due()
	assert.True(t, ok)
	assert.Equal(t, at(7.5), due, "one relay period after the first reply")
	b.hear(write(7.5, 7.5))
	due, _ = b.due()
	assert.Equal(t, at(9), due, "half of the timeout after what is proved, or one relay period after the next one")
	b.hear(write(9, 9))
	due, _ = b.due()
	assert.Equal(t, at(11.5), due)
}

func TestBeliefKeepsFewRequests(t *testing.T) {
	b := belief{timeout: scale, acked: at(0), connect: at(0)}
	for i := range 100_000 {
		b.hear(ack(float64(i)/10_000, float64(i)/10_000))
	}
	assert.Less(t, len(b.waiting), 50)
	b.hear(write(10, 10))
	assert.WithinDuration(t, at(6+12), b.deadline(ProofLeader).Add(allowance), b.spacing(), "and loses little by it")
}

func TestBeliefAllowsForSlowClocks(t *testing.T) {
	for _, timeout := range []time.Duration{10 * time.Millisecond, time.Second, 40 * time.Second, time.Hour} {
		var b belief
		b.timeout, b.acked = timeout, zero
		slow := float64(b.deadline(ProofServer).Sub(b.acked)) / 0.99 // by the servers' clocks
		assert.Less(t, slow, float64(timeout))
		assert.Greater(t, slow, 0.99*float64(timeout))
	}
}

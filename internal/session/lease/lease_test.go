package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A session timeout of 24 s makes the arithmetic readable: pings are due every
// 6 s, may be late by 1 s, and a touch has its second voucher after 8 s.
const timeout = 24 * time.Second

var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }

// pinged is a request that the server connected to has answered by itself.
func pinged(sent, received float64) Reply { return Reply{at(sent), at(received), Touch} }

func synced(sent, received float64) Reply { return Reply{at(sent), at(received), Voucher} }

func wrote(sent, received float64) Reply { return Reply{at(sent), at(received), Confirmation} }

// begun is the lease of a new session, whose connect request was sent at 0.
func begun(terms Terms) *Lease {
	l := &Lease{}
	l.Begin(terms, at(0), at(0), true)
	return l
}

// until is how far a request proves a session that was sent so many seconds after
// the beginning.
func until(sent float64) time.Time { return at(sent).Add(Terms{Timeout: timeout}.Span()) }

func TestProvedByTheServer(t *testing.T) {
	l := begun(Terms{Rule: ByServer, Timeout: timeout})
	assert.Equal(t, until(0), l.Deadline(), "the connect request")
	l.Replied(pinged(4, 9))
	assert.Equal(t, until(4), l.Deadline(), "from the sending, not from the reply")
	l.Replied(wrote(3, 10))
	assert.Equal(t, until(4), l.Deadline(), "an older one takes nothing back")
}

func TestProvedByTheQuorum(t *testing.T) {
	const never = -1
	for _, tc := range []struct {
		name    string
		replies []Reply
		want    float64 // sending of the newest request that is proved
	}{
		{"nothing but the connect request", nil, never},
		{"what a server answers by itself", []Reply{pinged(1, 1), pinged(9, 9), pinged(17, 17)}, never},
		{"what the leader answers", []Reply{synced(1, 1), synced(9, 9), synced(17, 17)}, never},
		{"a write confirms the connect request", []Reply{wrote(1, 1)}, 0},
		{"however long it takes", []Reply{wrote(1, 23)}, 0},

		{"all four", []Reply{pinged(2, 3), synced(9, 10), synced(11, 12), wrote(12, 13)}, 2},
		{"a slow confirmation", []Reply{pinged(2, 3), synced(9, 10), synced(11, 12), wrote(12, 23)}, 2},
		{"slow vouchers", []Reply{pinged(2, 3), synced(9, 14), synced(15, 19), wrote(19, 20)}, 2},
		{"one first voucher a little too early", []Reply{pinged(2, 3), synced(8.9, 9.5), synced(11, 12), wrote(12, 13)}, 0},
		{"the second a little too early after the touch", []Reply{pinged(2, 3), synced(9, 9.5), synced(10.9, 12), wrote(12, 13)}, 0},
		{"the second a little too early after the first", []Reply{pinged(2, 3), synced(9, 11), synced(11.9, 13), wrote(13, 14)}, 0},
		{"the confirmation a little too early", []Reply{pinged(2, 3), synced(9, 10), synced(11, 12), wrote(11.9, 13)}, 0},
		{"a touch that was answered late", []Reply{pinged(2, 4), synced(9, 10), synced(11, 12), wrote(12, 13)}, 0},
		{"one voucher only", []Reply{pinged(2, 3), synced(11, 12), wrote(12, 13)}, 0},
		{"vouchers that the server answers by itself", []Reply{pinged(2, 3), pinged(9, 10), pinged(11, 12), wrote(12, 13)}, 0},
		{"a confirmation that only the leader answers", []Reply{pinged(2, 3), synced(9, 10), synced(11, 12), synced(12, 13)}, never},

		{"writes as vouchers", []Reply{pinged(2, 3), wrote(9, 10), wrote(11, 12), wrote(12, 13)}, 2},
		{"a write as the touch", []Reply{wrote(2, 3), synced(9, 10), synced(11, 12), wrote(12, 13)}, 2},
		{"a voucher as the touch", []Reply{pinged(0, 0), synced(6, 6), synced(12, 12), synced(18, 18), wrote(18, 18)}, 6},
		{"the newest of several", []Reply{pinged(1, 1), pinged(2, 2), pinged(3, 3), pinged(4, 4), synced(9, 9), synced(11, 11), wrote(11, 11)}, 3},
		{"one confirmed stays confirmed", []Reply{pinged(2, 3), synced(9, 10), synced(11, 12), wrote(12, 13), wrote(13, 14)}, 2},
		{"of those that proves anything still", []Reply{pinged(2, 3), synced(9, 10), synced(11, 12), wrote(12, 30)}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := begun(Terms{Timeout: timeout})
			for _, r := range tc.replies {
				l.Replied(r)
			}
			if tc.want == never {
				assert.Zero(t, l.Deadline())
				return
			}
			assert.Equal(t, until(tc.want), l.Deadline())
		})
	}
}

// A stated tick brings the vouchers forward, and a long one puts them off: where
// the shortest session timeout was lowered pings come more seldom than else.
func TestTickAsStated(t *testing.T) {
	for tick, first := range map[time.Duration]float64{2 * time.Second: 1, 20 * time.Second: 10} {
		t.Run(tick.String(), func(t *testing.T) {
			for early, proved := range map[float64]float64{0: 1, 0.1: 0} {
				l := begun(Terms{Timeout: timeout, Tick: tick})
				second := 1 + first + 1 - early
				for _, r := range []Reply{pinged(1, 1), synced(1+first-early, 1+first-early), synced(second, second), wrote(second, second)} {
					l.Replied(r)
				}
				assert.Equal(t, until(proved), l.Deadline(), "vouchers that are early by %v", early)
			}
		})
	}
}

func TestAnotherConnection(t *testing.T) {
	terms := Terms{Timeout: timeout}
	l := begun(terms)
	for _, r := range []Reply{pinged(1, 1), synced(8, 8), synced(9, 9), wrote(9, 9), pinged(10, 10), synced(16, 16), synced(18, 18)} {
		l.Replied(r)
	}
	l.Begin(terms, at(19), at(20), false)
	assert.Equal(t, until(1), l.Deadline(), "what was proved stays so")
	l.Replied(wrote(20, 21))
	assert.Equal(t, until(19), l.Deadline(), "the connect request needs the write only")

	l.Begin(terms, at(22), at(23), true)
	assert.Zero(t, l.Deadline(), "of another session")
	assert.Equal(t, until(22), l.Heard())

	l = begun(terms)
	l.Replied(pinged(1, 1))
	l.Begin(terms, at(2), at(2), false)
	for _, r := range []Reply{synced(9, 9), synced(11, 11), wrote(11, 11)} {
		l.Replied(r)
	}
	assert.Equal(t, until(2), l.Deadline(), "touches of the former connection prove nothing")
}

// A server that grants another timeout when it takes up a session changes nothing
// about what was proved, unless it counts less from then on.
func TestAnotherTimeoutAtRenewal(t *testing.T) {
	for _, rule := range []Rule{ByQuorum, ByServer} {
		for other, want := range map[time.Duration]time.Time{
			240 * time.Second: until(0),
			24 * time.Second:  until(0),
			12 * time.Second:  at(6).Add(Terms{Timeout: 12 * time.Second}.Span()),
			22 * time.Second:  until(0),
		} {
			t.Run(fmt.Sprint(rule, other), func(t *testing.T) {
				l := begun(Terms{Rule: rule, Timeout: timeout})
				l.Replied(wrote(0, 0))
				assert.Equal(t, until(0), l.Deadline())
				next := Terms{Rule: rule, Timeout: other}
				l.Begin(next, at(6), at(6), false)
				if rule == ByServer {
					want = at(6).Add(next.Span())
				}
				assert.Equal(t, want, l.Deadline())
				l.Replied(wrote(7, 7))
				want = at(6).Add(next.Span())
				if rule == ByServer {
					want = at(7).Add(next.Span())
				}
				assert.Equal(t, want, l.Deadline(), "what is proved after it counts by the new one")
			})
		}
	}
}

// Clients that only read, for hours.
func TestMemoryIsBounded(t *testing.T) {
	for _, rule := range []Rule{ByQuorum, ByServer} {
		for name, evidence := range map[string]Evidence{"reads": Touch, "syncs": Voucher, "writes": Confirmation} {
			t.Run(fmt.Sprint(rule, name), func(t *testing.T) {
				l := begun(Terms{Rule: rule, Timeout: timeout})
				most := 0
				for i := range 15_000 {
					sent := at(float64(i) / 10)
					l.Replied(Reply{sent, sent.Add(time.Millisecond), evidence})
					l.Renew(sent, Ready)
					most = max(most, cap(l.touches), cap(l.begun))
				}
				assert.LessOrEqual(t, most, 256)
			})
		}
	}
}

// Replies that come in dense loose little of what they could prove.
func TestDenseReplies(t *testing.T) {
	l := begun(Terms{Timeout: timeout})
	for i := range 100_000 {
		l.Replied(wrote(float64(i)/5000, float64(i)/5000))
	}
	assert.WithinDuration(t, until(20-8), l.Deadline(), l.terms.spacing()+time.Millisecond)
}

func TestAllowance(t *testing.T) {
	for _, timeout := range []time.Duration{LeastTimeout, 2 * time.Second, 40 * time.Second, time.Hour} {
		span := Terms{Timeout: timeout}.Span()
		slow := time.Duration(float64(span) / 0.99) // by the servers' clocks
		assert.Less(t, slow+timerAllowance, timeout)
		assert.Greater(t, span, timeout*95/100)
	}
}

func TestEnoughForAHold(t *testing.T) {
	left := timeout / leastToGrant
	for _, rule := range []Rule{ByQuorum, ByServer} {
		l := &Lease{}
		assert.False(t, l.Enough(at(0)), "no session")
		l.Begin(Terms{Rule: rule, Timeout: timeout}, at(0), at(0), true)
		assert.Equal(t, rule == ByServer, l.Enough(at(0)))
		l.Replied(wrote(0, 0))
		assert.True(t, l.Enough(at(0)))
		assert.True(t, l.Enough(l.Deadline().Add(-left)))
		assert.False(t, l.Enough(l.Deadline().Add(-left+1)))
	}
}

// Package fleet is a model of ten thousand clients that lose their connections in one
// moment, and of the servers that they come back to.
package fleet

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/transport"
)

// ours is the rule of this client, for servers with such costs.
func ours(c costs) rule {
	drawn := func(round int, timeout time.Duration) span {
		least, most := transport.Pause(round, timeout, 0, c != plain)
		return span{least, most}
	}
	return rule{
		first: func(timeout time.Duration) span { return drawn(0, timeout) },
		round: never,
		each: func(n int, timeout time.Duration) span {
			if n == 0 {
				return span{}
			}
			return drawn(n, timeout)
		},
		patient: true, grows: true,
	}
}

func never(int, time.Duration) span { return span{} }

// atOnce is the rule of clients that dial as soon as they have lost a connection.
var atOnce = rule{
	first: func(time.Duration) span { return span{} },
	round: func(n int, _ time.Duration) span {
		most := min(500*time.Millisecond, 50*time.Millisecond<<min(n-1, 10))
		return span{most / 2, most}
	},
	each: never,
}

// java is that of Java's client.
//
// Source: ZooKeeper ClientCnxn.SendThread.run, StaticHostProvider.next.
var java = rule{
	first: func(time.Duration) span { return span{} },
	round: func(int, time.Duration) span { return span{time.Second, time.Second} },
	each:  func(int, time.Duration) span { return span{0, time.Second} },
}

var (
	oneDies    = outage{dead: 1, cut: 1}
	leaderDies = outage{dead: 1, closed: 2, until: 500 * time.Millisecond, cut: 3}
	allDie     = outage{dead: 3, until: 10 * time.Second, cut: 3}
	plain      = costs{50 * time.Microsecond, 200 * time.Microsecond, 1}
	tls        = costs{50 * time.Microsecond, time.Millisecond, 1}
	sideBySide = costs{50 * time.Microsecond, time.Millisecond, 4} // TLS and SASL
)

func run(t *testing.T, name string, clients int, by rule, o outage, c costs, timeout time.Duration) result {
	t.Helper()
	m := &model{rule: by, outage: o, costs: c, timeout: timeout, clients: clients, random: rand.New(rand.NewPCG(1, 1))}
	r := m.run()
	t.Logf("%-7s half back after %5.1f s, 99 %% after %5.1f s, %4d sessions lost, %6.0f dials a second", name, r.half.Seconds(), r.most.Seconds(), r.lost, r.dials)
	return r
}

const many = 10_000

func TestFleetComesBack(t *testing.T) {
	for _, timeout := range []time.Duration{6 * time.Second, 15 * time.Second} {
		for name, tc := range map[string]struct {
			outage outage
			costs  costs
			within time.Duration
		}{
			"one of three dies":                {oneDies, plain, timeout / 4},
			"one of three dies, TLS and SASL":  {oneDies, tls, 1750 * time.Millisecond}, // all that the two others can do
			"the leader dies":                  {leaderDies, plain, timeout / 4},
			"all are down for 10 s":            {allDie, plain, timeout / 4},
			"all are down for 10 s, TLS, SASL": {allDie, tls, 4300 * time.Millisecond},
		} {
			t.Run(fmt.Sprintf("%s, %v", name, timeout), func(t *testing.T) {
				now := run(t, "ours", many, ours(tc.costs), tc.outage, tc.costs, timeout)
				assert.Zero(t, now.lost)
				assert.LessOrEqual(t, now.most, tc.within)
				if tc.outage != allDie {
					run(t, "Java's", many, java, tc.outage, tc.costs, timeout)
					before := run(t, "at once", many, atOnce, tc.outage, tc.costs, timeout)
					assert.NotZero(t, before.lost, "else the rule is not needed")
					return
				}
				before := run(t, "at once, a hundredth of them", many/100, atOnce, tc.outage, tc.costs, timeout)
				before.dials *= 100
				assert.LessOrEqual(t, now.dials, before.dials/3)
			})
		}
	}
}

// Members without a leader pay for handshakes in vain. So clients with TLS and SASL come
// back over a longer time than others if their session timeout is short.
func TestLeaderDiesUnderTLS(t *testing.T) {
	for timeout, most := range map[time.Duration]int{6 * time.Second: 2000, 9 * time.Second: 0, 15 * time.Second: 0} {
		t.Run(timeout.String(), func(t *testing.T) {
			now := run(t, "ours", many, ours(tls), leaderDies, tls, timeout)
			assert.LessOrEqual(t, now.lost, most)
			run(t, "plain", many, ours(plain), leaderDies, tls, timeout)
			run(t, "Java's", many, java, leaderDies, tls, timeout)
		})
	}
}

// Servers that work at all handshakes side by side answer late, and each one that is given up
// in the middle begins anew.
func TestLeaderDiesUnderHandshakesSideBySide(t *testing.T) {
	for timeout, most := range map[time.Duration]int{6 * time.Second: 3000, 9 * time.Second: 0} {
		t.Run(timeout.String(), func(t *testing.T) {
			by := ours(sideBySide)
			now := run(t, "ours", many, by, leaderDies, sideBySide, timeout)
			assert.LessOrEqual(t, now.lost, most)
			by.patient = false
			before := run(t, "no patience", many, by, leaderDies, sideBySide, timeout)
			assert.Greater(t, before.lost, now.lost, "else the rule is not needed")
			run(t, "Java's", many, java, leaderDies, sideBySide, timeout)
		})
	}
}

// Servers that need longer for all handshakes than a client waits for its own would work in vain
// without end, if no client waited longer after that.
func TestHandshakesThatTakeLongerThanAClientWaits(t *testing.T) {
	slow := costs{50 * time.Microsecond, 2 * time.Millisecond, 4}
	for name, o := range map[string]outage{"the leader dies": leaderDies, "all are down for 10 s": allDie} {
		t.Run(name, func(t *testing.T) {
			by := ours(slow)
			now := run(t, "ours", many, by, o, slow, 6*time.Second)
			assert.Less(t, now.most, 25*time.Second)
			by.grows = false
			before := run(t, "no growth", many, by, o, slow, 6*time.Second)
			assert.Greater(t, before.most, 45*time.Second, "else the rule is not needed")
			assert.LessOrEqual(t, now.lost, before.lost)
		})
	}
}

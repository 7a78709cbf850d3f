//go:build realzk

package robustness

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/faultnet"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// distance is how far away the servers are, as parts of the session timeout.
type distance struct {
	trip, write float64 // 0 for none
	tick        bool    // the servers' tick is stated
}

func (d distance) String() string {
	text := fmt.Sprintf("round trips of T/%v", d.trip)
	if d.write > 0 {
		text = fmt.Sprintf("writes of T/%v", d.write)
	}
	if d.tick {
		text += ", with the tick stated"
	}
	return text
}

// part is one part of so many; none if that is 0.
func part(timeout time.Duration, of float64) time.Duration {
	if of == 0 {
		return 0
	}
	return time.Duration(float64(timeout) / of)
}

// Holds of quiet clients go on for ten session timeouts, with many trials at the
// distances that docs/lock-cost.md gives as the limit. A busy machine adds to them, so
// that with one trial servers are nearer.
func TestHoldsAtADistance(t *testing.T) {
	const clients = 5
	for _, timeout := range []time.Duration{4 * time.Second, 15 * time.Second} {
		if timeout > 4*time.Second && *trials == 1 {
			continue // takes three minutes
		}
		t.Run(fmt.Sprint("session timeout ", timeout), func(t *testing.T) {
			t.Parallel() // it waits most of the time
			tick := timeout / 10
			e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick})
			var wg sync.WaitGroup
			at := []distance{{trip: 30}, {trip: 10}, {write: 6}, {trip: 7.5, tick: true}, {write: 5, tick: true}}
			if *trials > 1 {
				at = []distance{{trip: 30}, {trip: 7}, {write: 4.5}, {trip: 5, tick: true}, {write: 3.5, tick: true}}
			}
			for _, d := range at {
				for range clients {
					n := faultnet.New(nil)
					t.Cleanup(n.Close)
					n.Delay(part(timeout, d.trip), part(timeout, d.write))
					wg.Go(func() { stand(t, e, n, timeout, tick, d) })
				}
			}
			wg.Wait()
		})
	}
}

// stand has one client hold a lock.
func stand(t *testing.T, e *realzk.Ensemble, n *faultnet.Net, timeout, tick time.Duration, d distance) {
	c, err := framework.Connect(t.Context(), framework.Config{
		ConnectString: e.ConnectString(), SessionTimeout: timeout, ConnectTimeout: timeout, DialContext: n.DialContext,
		ServerTick: map[bool]time.Duration{true: tick}[d.tick],
	})
	if !assert.NoError(t, err, d) {
		return
	}
	defer func() { assert.NoError(t, c.Close(), d) }()
	h, err := locks.NewInterProcessMutex(c, fmt.Sprintf("/locks/%#x", c.SessionID()), locks.ReleaseWait(timeout)).Acquire(t.Context())
	if !assert.NoError(t, err, d) {
		return
	}
	before := n.Requests()
	select {
	case <-time.After(10 * timeout):
	case <-h.Context().Done():
	}
	assert.NoError(t, h.Err(), "T = %v, %v", timeout, d)
	sent := n.Requests()
	writes := float64(sent[wire.OpSetData]+sent[wire.OpMulti]+sent[wire.OpDelete]-before[wire.OpSetData]-before[wire.OpMulti]-before[wire.OpDelete]) / 10
	syncs := float64(sent[wire.OpSync]-before[wire.OpSync]) / 10
	t.Logf("session timeout T = %v, %v: %.1f writes and %.1f syncs in each T", timeout, d, writes, syncs)
	if d.trip >= 30 {
		// On an idle machine it is at most 6. A busy one makes round trips longer.
		assert.LessOrEqual(t, writes, 8.0, "writes of a client that holds a lock and does nothing")
	}
	assert.NoError(t, h.Release(), d)
}

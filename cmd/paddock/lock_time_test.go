package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A command is told to end when the lease has the grace and a margin left. Between renewals
// it always has more than that, in every session that doctor calls long enough: from
// the moment at which the lock is free, or is granted after a wait.
func TestLockGraceFitsBetweenRenewals(t *testing.T) {
	for _, timeout := range []time.Duration{2 * time.Second, 3 * time.Second, 4 * time.Second, 6 * time.Second, 10 * time.Second, 15 * time.Second, time.Minute} {
		for _, slow := range []string{"all", "writes"} {
			for _, part := range []time.Duration{1000, 60, 40, 30, 25, 22, roundTripsOfT} {
				t.Run(fmt.Sprintf("%v, %s take 1 in %d", timeout, slow, part), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						grace, err := (&invocation{grace: unset}).graceWithin(timeout)
						require.NoError(t, err)
						trip := map[string]time.Duration{"all": timeout / part, "writes": time.Millisecond}[slow]
						srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(timeout/10), zktest.Latency(trip/2))
						if slow == "writes" {
							for _, op := range []string{"multi", "create", "create2", "delete"} {
								srv.On(zktest.Match{Op: op}, zktest.Delay(timeout/part))
							}
						}
						free, other := kit.Connect(t, srv, kit.Within(timeout, 0)), kit.Connect(t, srv, kit.Within(timeout, 0))
						h := kit.Hold(t, locks.NewInterProcessMutex(free, "/l"))
						waits := kit.Acquire(t, locks.NewInterProcessMutex(other, "/l"))
						least(t, free, 5*timeout, grace+marginOf(timeout))
						_ = h.Release() // it goes on where a round trip takes long
						h, err = waits.Result()
						require.NoError(t, err)
						least(t, other, 5*timeout, grace+marginOf(timeout))
						_ = h.Release() // it goes on where a round trip takes long
					})
				})
			}
		}
	}
}

// least checks that a client's lease has more than so much left, at any time.
func least(t *testing.T, client *framework.Client, long, left time.Duration) {
	t.Helper()
	found := long
	for began := time.Now(); time.Since(began) < long; time.Sleep(left / 50) {
		found = min(found, client.Stats().LeaseLeft)
	}
	assert.Greater(t, found, left, "what is left of the lease between two renewals")
}

package locks_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// To look for another kind costs no round trip.
func TestRoundTripsOfANewSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		c := kit.Connect(t, srv)
		var h *locks.Hold
		// The creation that finds no parents, two to make both, and the creation.
		assert.Equal(t, 4.0, kit.RoundTrips(t, kit.Into(&h, locks.NewInterProcessSemaphore(c, "/a/b/c/s", 3))))
		assert.Equal(t, 1.0, kit.RoundTrips(t, h.Release))
	})
}

// The documentation says so: no node shows the number that a client has.
func TestClientsThatStateDifferentTotalsGoByTheirOwn(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	two := locks.NewInterProcessSemaphore(kit.Connect(t, srv), "/s", 2)
	three := locks.NewInterProcessSemaphore(kit.Connect(t, srv), "/s", 3)
	for _, s := range []*locks.InterProcessSemaphore{two, two, three} {
		hold, err := s.TryAcquire(t.Context(), 0)
		require.NoError(t, err)
		defer hold.Release()
	}
	_, err := two.TryAcquire(t.Context(), 0)
	require.ErrorIs(t, err, locks.ErrNotAcquired)
	_, err = three.TryAcquire(t.Context(), 0)
	require.ErrorIs(t, err, locks.ErrNotAcquired)
}

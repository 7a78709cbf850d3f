package locks_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The documentation says so: no node shows the number that a client has.
func TestClientsThatStateDifferentTotalsGoByTheirOwn(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	two := locks.NewInterProcessSemaphore(connect(t, srv), "/s", 2)
	three := locks.NewInterProcessSemaphore(connect(t, srv), "/s", 3)
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

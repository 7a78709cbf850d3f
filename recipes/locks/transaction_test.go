package locks

import (
	"context"
	"flag"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

var staleWrites = flag.Int("stale", 2_000, "how many writes TestStaleWrites tries")

// The lock has gone to another owner, and the former one does not believe it: it
// goes on sending its writes. Another writer, the control, writes without a fence.
func TestStaleWrites(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	connect := func() *framework.Client {
		c := connectInMemory(t, srv)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	former, operator, next := connect(), connect(), connect()
	for _, path := range []string{"/fenced", "/control"} {
		_, err := operator.Create(t.Context(), path, []byte("0"), framework.Persistent)
		require.NoError(t, err)
	}
	stale, err := NewInterProcessMutex(former, "/l").Acquire(t.Context())
	require.NoError(t, err)
	tx := stale.Transaction()
	tx.Set("/fenced", []byte("stale"), framework.AnyVersion)
	leaves, err := tx.leaves()
	require.NoError(t, err)

	require.NoError(t, operator.Delete(t.Context(), stale.Path(), framework.AnyVersion))
	owner, err := NewInterProcessMutex(next, "/l").Acquire(t.Context())
	require.NoError(t, err)
	assert.Greater(t, owner.FencingToken(), leaves[0].ownership.token)

	var refused, unfenced atomic.Int64
	var left atomic.Int64
	left.Store(int64(*staleWrites))
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				if _, err := tx.send(t.Context(), leaves, nil, nil); assert.ErrorIs(t, err, ErrFenced) {
					refused.Add(1)
				}
				if n%1000 == 0 {
					_, err := former.Set(t.Context(), "/control", []byte("stale"), framework.AnyVersion)
					if assert.NoError(t, err) {
						unfenced.Add(1)
					}
				}
			}
		})
	}
	mine := owner.Transaction()
	mine.Set("/fenced", []byte("owner"), 0)
	mine.Set("/control", []byte("owner"), framework.AnyVersion)
	_, err = mine.Commit(t.Context())
	require.NoError(t, err)
	wg.Wait()

	data, stat, err := next.Get(t.Context(), "/fenced")
	require.NoError(t, err)
	assert.Equal(t, "owner", string(data))
	assert.Equal(t, int32(1), stat.Version, "written by the owner alone")
	assert.Equal(t, int64(*staleWrites), refused.Load())
	assert.Positive(t, unfenced.Load(), "the control: without the proof they are accepted")
	t.Logf("%d stale writes refused by the server, %d accepted without the proof", refused.Load(), unfenced.Load())

	assert.Equal(t, Lost, stale.State())
	require.ErrorIs(t, context.Cause(stale.Context()), ErrLockLost)
	_, err = stale.Transaction().Commit(t.Context())
	require.ErrorIs(t, err, ErrFenced)
	require.NoError(t, owner.Release())
}

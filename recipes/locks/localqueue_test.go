package locks

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A node is lost between the moment at which its next owner was chosen and that at which it would
// get it. Nobody else is in the local queue, which is over then.
func TestWaiterOfANodeThatIsLostBeforeTheHandover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext})
		require.NoError(t, err)
		defer func() { assert.NoError(t, c.Close()) }()
		m := NewInterProcessMutex(c, "/l")
		h, err := m.Acquire(t.Context())
		require.NoError(t, err)
		o, lqs := h.ownership, &m.queue.shared.localQueues
		lq, w, err := lqs.join(t.Context(), m, false, 0)
		require.NoError(t, err)
		lqs.mu.Lock()
		lq.takeOutLocked(w)
		lqs.mu.Unlock()
		require.NoError(t, c.Delete(t.Context(), h.Path(), framework.AnyVersion))
		<-h.Context().Done()
		synctest.Wait()
		require.Equal(t, Lost, h.State())

		assert.False(t, lq.passTo(o, w))
		w.await()
		got, err := w.finish(t.Context(), t.Context())
		require.NoError(t, err)
		require.NoError(t, got.give())
	})
}

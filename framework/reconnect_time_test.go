package framework_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// How long a client takes to be connected again once its only server answers
// again, over outages of a hundred lengths.
func TestTimeToReconnect(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 4 * time.Second, 15 * time.Second} {
		for name, outage := range map[string]struct {
			begin func(*zktest.Server) error
			end   func(*zktest.Server) error
		}{
			"freeze": {func(s *zktest.Server) error { s.Freeze(); return nil }, func(s *zktest.Server) error { s.Thaw(); return nil }},
			"stop":   {(*zktest.Server).Stop, (*zktest.Server).Restart},
			"refuse": {func(s *zktest.Server) error { s.Refuse(); s.DisconnectAll(); return nil }, func(s *zktest.Server) error { s.Accept(); return nil }},
		} {
			t.Run(fmt.Sprintf("%s, session timeout %v", name, timeout), func(t *testing.T) {
				var took []time.Duration
				for i := 0; i < 100; i += 9 {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(timeout/4))
						c := kit.Connect(t, srv, kit.SmallBuffers, func(cfg *framework.Config) {
							cfg.SessionTimeout, cfg.Retry = timeout, retry.None()
						})
						time.Sleep(time.Minute + time.Duration(i)*7*time.Millisecond)
						require.NoError(t, outage.begin(srv))
						time.Sleep(2*time.Second + timeout*time.Duration(i)/33)
						require.NoError(t, outage.end(srv))
						began := time.Now()
						for served := false; !served; served = c.Sync(t.Context(), "/") == nil {
							require.NoError(t, c.BlockUntilConnected(t.Context()))
						}
						took = append(took, time.Since(began))
					})
				}
				slices.Sort(took)
				median, worst := took[len(took)/2], took[len(took)-1]
				t.Logf("median %v, worst %v", median, worst)
				// Pauses grow up to two fifteenths of the session timeout.
				assert.LessOrEqual(t, median, timeout/10)
				assert.LessOrEqual(t, worst, timeout/6)
			})
		}
	}
}

// Other servers come in the place of those there were. They know nothing of the session,
// and may give the id that it had to the next one.
func TestServersThatBeginAnew(t *testing.T) {
	for name, outage := range map[string]time.Duration{"within the session": time.Second, "after it": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now atomic.Pointer[zktest.Server]
				srv := zktest.Start(t, zktest.InMemory())
				now.Store(srv)
				c := kit.Connect(t, srv, func(cfg *framework.Config) {
					cfg.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
						return now.Load().DialContext(ctx, network, now.Load().ConnectString())
					}
				})
				next := states(t, c)
				next(listeners.Connected)
				id := c.SessionID()
				require.NoError(t, srv.Close())
				time.Sleep(outage)
				srv = zktest.Start(t, zktest.InMemory())
				now.Store(srv)
				next(listeners.Suspended, listeners.Lost, listeners.Reconnected)
				assert.Equal(t, id, c.SessionID(), "else this is no test")
				_, err := c.Create(t.Context(), "/a", nil, framework.Ephemeral)
				require.NoError(t, err)
				assert.Equal(t, []string{"/a"}, srv.Ephemerals(id))
			})
		})
	}
}

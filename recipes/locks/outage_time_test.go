package locks_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The server we are on is cut off from the majority. It counts no session, so
// no lock can be had there, and none that was held lasts for longer.
func TestReadOnlyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.ReadOnlyMode())
		minority := (srv.Leader() + 1) % 3
		c := kit.Connect(t, &srv.Server, func(cfg *framework.Config) {
			cfg.CanBeReadOnly, cfg.SessionLease, cfg.ConnectString = true, framework.LeaseByServer, srv.Member(minority).ConnectString()
		})
		held, err := locks.NewInterProcessMutex(c, "/held").Acquire(t.Context())
		require.NoError(t, err)
		began := time.Now()
		srv.Partition([]int{minority}, []int{(minority + 1) % 3, (minority + 2) % 3})
		states := c.States().Subscribe()
		defer states.Stop()
		for s := range states.C {
			if s == listeners.ReadOnly {
				break
			}
		}
		assert.NotEqual(t, locks.Held, held.State(), "not by what this server says")
		before := srv.Requests()
		asking := time.Now()
		_, err = locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), 0)
		require.ErrorIs(t, err, framework.ErrNotConnected)
		assert.Zero(t, time.Since(asking))
		_, err = locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), time.Second)
		require.ErrorIs(t, err, framework.ErrNotConnected)
		a := kit.Acquire(t, kit.MutexAt("/l")(c))
		require.True(t, a.Waits())
		for _, op := range []string{"create2", "getChildren"} {
			assert.Equal(t, before[op], srv.Requests()[op], "this server is not asked: %s", op)
		}
		assert.Equal(t, locks.Lost, held.State())
		select {
		case <-held.Context().Done():
		default:
			assert.Fail(t, "after a session timeout its work ends", "%v", time.Since(began))
		}
		srv.Heal()
		require.NoError(t, a.Soon().Release())
	})
}

// One name may stand for an ensemble: a service name, or a balancer.
func TestOneNameForAnEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.Tick(500*time.Millisecond), zktest.SyncLimit(20))
		member := func(i int) func(*framework.Config) {
			return func(cfg *framework.Config) {
				cfg.ConnectString, cfg.SessionTimeout = cl.Member(i).ConnectString(), 2*time.Second
			}
		}
		follower := (cl.Leader() + 1) % 3
		a, b := kit.Connect(t, &cl.Server, member(follower)), kit.Connect(t, &cl.Server, member(cl.Leader()))
		h, err := locks.NewInterProcessMutex(a, "/l").Acquire(t.Context())
		require.NoError(t, err)
		held := h.Context()
		next := kit.Acquire(t, locks.NewInterProcessMutex(b, "/l"))
		time.Sleep(5 * time.Second)
		cl.Partition([]int{follower}, []int{(follower + 1) % 3, (follower + 2) % 3})
		<-held.Done()
		ended := time.Now()
		assert.True(t, next.Pending(), "the hold has ended first")
		n := next.Soon()
		t.Logf("ended %v before the grant", time.Since(ended))
		assert.Positive(t, time.Since(ended))
		require.NoError(t, n.Release())
		cl.Heal()
	})
}

// Holder and waiter both come through a stop and a restart of the server that
// is shorter than their sessions.
func TestLockThroughARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		a, b := kit.Connect(t, srv), kit.Connect(t, srv)
		for name, lock := range map[string]func(c *framework.Client) locks.Lock{
			"mutex":           func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/m") },
			"semaphore mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/s") },
			"multi": func(c *framework.Client) locks.Lock {
				return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/x"), locks.NewInterProcessMutex(c, "/y"))
			},
		} {
			held, err := lock(a).Acquire(t.Context())
			require.NoError(t, err, name)
			got := make(chan *locks.Hold, 1)
			go func() {
				h, err := lock(b).Acquire(t.Context())
				assert.NoError(t, err, name)
				got <- h
			}()
			time.Sleep(time.Second)
			require.NoError(t, srv.Stop())
			time.Sleep(5 * time.Second)
			require.Equal(t, locks.Uncertain, held.State(), name)
			select {
			case <-got:
				require.Fail(t, "acquired while no server was there", name)
			default:
			}
			require.NoError(t, srv.Restart())
			time.Sleep(10 * time.Second)
			require.Equal(t, locks.Held, held.State(), name)
			require.NoError(t, held.Context().Err(), name)
			require.NoError(t, held.Release(), name)
			require.NoError(t, (<-got).Release(), name)
		}
	})
}

// The limit on dialing was a context as well, so that nobody who could be asked
// looked like the end of the caller's context.
func TestTryAcquireWhileDialingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := framework.Start(framework.Config{ConnectString: "127.0.0.1:1", DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		for _, wait := range []time.Duration{0, 20 * time.Second} {
			_, err = locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), wait)
			require.ErrorIs(t, err, framework.ErrNotConnected)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.NotErrorIs(t, err, locks.ErrNotAcquired)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = locks.NewInterProcessMutex(c, "/l").TryAcquire(ctx, 20*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, framework.ErrNotConnected)
	})
}

package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A client that is connected to a read-only server said of writes that it was not
// connected, and nothing more.
func TestWritesOnAReadOnlyServerSayWhyTheyWait(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, c *framework.Client) error{
		"create": func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, "/a", nil, framework.Persistent)
			return err
		},
		"set": func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/a", nil, framework.AnyVersion)
			return err
		},
		"delete": func(ctx context.Context, c *framework.Client) error {
			return c.Delete(ctx, "/a", framework.AnyVersion)
		},
		"commit": func(ctx context.Context, c *framework.Client) error {
			tx := c.Transaction()
			tx.Delete("/a", framework.AnyVersion)
			_, err := tx.Commit(ctx)
			return err
		},
		"acquire": func(ctx context.Context, c *framework.Client) error {
			_, err := locks.NewInterProcessMutex(c, "/l").Acquire(ctx)
			return err
		},
		"try": func(ctx context.Context, c *framework.Client) error {
			_, err := locks.NewInterProcessMutex(c, "/l").TryAcquire(ctx, time.Second)
			return err
		},
		"try once": func(ctx context.Context, c *framework.Client) error {
			_, err := locks.NewInterProcessMutex(c, "/l").TryAcquire(ctx, 0)
			return err
		},
		"await": func(ctx context.Context, c *framework.Client) error {
			_, err := leader.NewLatch(c, "/l").Await(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.ReadOnlyMode())
				alone := (srv.Leader() + 1) % 3
				srv.Partition([]int{alone}, []int{(alone + 1) % 3, (alone + 2) % 3})
				time.Sleep(30 * time.Second)
				c := kit.Connect(t, &srv.Server, func(cfg *framework.Config) {
					cfg.CanBeReadOnly, cfg.ConnectString = true, srv.Member(alone).ConnectString()
				})
				_, _, err := c.Exists(t.Context(), "/")
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				err = write(ctx, c)
				require.ErrorContains(t, err, "to a server that takes writes: "+srv.Member(alone).ConnectString()+" is read-only, as it sees no majority of the servers")
				require.ErrorIs(t, err, framework.ErrNotConnected)
			})
		})
	}
}

// A server that has less than the client has seen closes the connection without a word.
func TestServerBehindTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.SessionTimeout = 20 * time.Second })
		for range 20 {
			_, err := c.Create(t.Context(), "/n", nil, framework.PersistentSequential)
			require.NoError(t, err)
		}
		require.NoError(t, srv.Reset())
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := c.Get(ctx, "/")
		require.ErrorContains(t, err, "ended by the server before an answer (it speaks TLS, does not serve yet, is behind zxid 0x")
		require.ErrorContains(t, err, ", which this client has seen, as with lost or restored data, or has too many connections)")
	})
}

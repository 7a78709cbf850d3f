package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes"
	zktest "github.com/paddock-zk/paddock/testing"
)

// taker takes and gives back a lock.
type taker func(ctx context.Context) error

// candidates are what is compared, each with a session of its own. The first
// one is what ratios are to.
var candidates = []struct {
	name string
	make func(b *testing.B, addr string) taker
}{
	{"raw", raw},
	{"zk.Lock", zkLock},
	{"mutex", ours(func(c *framework.Client) recipes.Lock { return recipes.NewInterProcessMutex(c, "/bench/mutex") })},
	{"read", ours(func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessReadWriteLock(c, "/bench/read").ReadSide()
	})},
	{"write", ours(func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessReadWriteLock(c, "/bench/write").WriteSide()
	})},
	{"semaphore", ours(func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessSemaphore(c, "/bench/semaphore", 10)
	})},
	{"semaphore-mutex", ours(func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessSemaphoreMutex(c, "/bench/semaphoremutex")
	})},
	{"multi-3", ours(func(c *framework.Client) recipes.Lock {
		return recipes.NewInterProcessMultiLock(recipes.NewInterProcessMutex(c, "/bench/a"),
			recipes.NewInterProcessMutex(c, "/bench/b"), recipes.NewInterProcessMutex(c, "/bench/c"))
	})},
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func dialZK(b *testing.B, addr string) *zk.Conn {
	b.Helper()
	conn, events, err := zk.Connect([]string{addr}, 20*time.Second, zk.WithLogger(quiet{}))
	require.NoError(b, err)
	b.Cleanup(conn.Close)
	for ev := range events {
		if ev.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

// raw is what no lock can do without: a node made and deleted.
func raw(b *testing.B, addr string) taker {
	b.Helper()
	conn := dialZK(b, addr)
	_, err := conn.Create("/raw", nil, 0, zk.WorldACL(zk.PermAll))
	require.True(b, err == nil || err == zk.ErrNodeExists) //nolint:errorlint // go-zookeeper's are bare
	return func(context.Context) error {
		path, err := conn.Create("/raw/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil {
			return err
		}
		return conn.Delete(path, -1)
	}
}

func zkLock(b *testing.B, addr string) taker {
	b.Helper()
	lock := zk.NewLock(dialZK(b, addr), "/zklock", zk.WorldACL(zk.PermAll))
	return func(context.Context) error {
		if err := lock.Lock(); err != nil {
			return err
		}
		return lock.Unlock()
	}
}

func ours(lock func(*framework.Client) recipes.Lock) func(*testing.B, string) taker {
	return func(b *testing.B, addr string) taker {
		b.Helper()
		c, err := framework.Connect(b.Context(), framework.Config{ConnectString: addr, SessionTimeout: 20 * time.Second})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, c.Close()) })
		l := lock(c)
		return func(ctx context.Context) error {
			h, err := l.Acquire(ctx)
			if err != nil {
				return err
			}
			return h.Release()
		}
	}
}

// uncontended measures one client that takes a free lock and gives it back.
func uncontended(b *testing.B, addr string) {
	b.Helper()
	for _, c := range candidates {
		b.Run(c.name, func(b *testing.B) {
			take := c.make(b, addr)
			require.NoError(b, take(b.Context())) // makes the parents
			b.ReportAllocs()
			for b.Loop() {
				if err := take(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// contended measures hand-offs between eight clients that want the same lock all
// the time.
func contended(b *testing.B, addr string) {
	b.Helper()
	const clients = 8
	for _, c := range candidates {
		switch c.name {
		case "read", "semaphore":
			continue // not exclusive
		}
		b.Run(c.name, func(b *testing.B) {
			var takers []taker
			for range clients {
				takers = append(takers, c.make(b, addr))
			}
			require.NoError(b, takers[0](b.Context()))
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for _, take := range takers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if err := take(b.Context()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func BenchmarkInProcess(b *testing.B) {
	srv, err := zktest.New()
	require.NoError(b, err)
	defer func() { require.NoError(b, srv.Close()) }()
	b.Run("uncontended", func(b *testing.B) { uncontended(b, srv.ConnectString()) })
	b.Run("contended-8", func(b *testing.B) { contended(b, srv.ConnectString()) })
}

func BenchmarkReentry(b *testing.B) {
	srv, err := zktest.New()
	require.NoError(b, err)
	defer func() { require.NoError(b, srv.Close()) }()
	c, err := framework.Connect(b.Context(), framework.Config{ConnectString: srv.ConnectString()})
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
	m := recipes.NewInterProcessMutex(c, "/l")
	outer, err := m.Acquire(b.Context())
	require.NoError(b, err)
	ctx := outer.Context()
	b.ReportAllocs()
	for b.Loop() {
		h, err := m.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Release(); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, outer.Release())
}

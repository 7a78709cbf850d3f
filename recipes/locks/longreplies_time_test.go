package locks_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
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

// slowLink carries a hundred megabits a second to the client.
type slowLink struct{ net.Conn }

func (c slowLink) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), 16<<10)])
	time.Sleep(time.Duration(n) * time.Second / (100e6 / 8))
	return n, err
}

// A client reads a node, or a list, of nearly a megabyte many times, all at once. The link needs longer
// for them than the session lasts. A hold beside it stays.
func TestHoldBesideLongReplies(t *testing.T) {
	t.Parallel()
	const n = 80
	together := func(read func() error) error {
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = read() })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	for way, read := range map[string]func(t *testing.T, c *framework.Client) error{
		"data": func(t *testing.T, c *framework.Client) error {
			t.Helper()
			return together(func() error {
				_, _, err := c.Get(t.Context(), "/order")
				return err
			})
		},
		"lists": func(t *testing.T, c *framework.Client) error {
			t.Helper()
			return together(func() error {
				_, _, err := c.Children(t.Context(), "/all")
				return err
			})
		},
		"data in few requests": func(t *testing.T, c *framework.Client) error {
			t.Helper()
			reads := make([]framework.Read, n)
			for i := range reads {
				reads[i].Path = "/order"
			}
			_, err := c.ReadAll(t.Context(), reads...)
			return err
		},
	} {
		for size, timeout := range map[int]time.Duration{900 << 10: 4 * time.Second, 300 << 10: 2 * time.Second} {
			if !*everySweep && size > 300<<10 && way != "data" { // which the race detector copies for seconds
				continue
			}
			t.Run(fmt.Sprint(way, " ", timeout), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
					op := kit.Connect(t, srv)
					_, err := op.Create(t.Context(), "/order", make([]byte, size), framework.Persistent)
					require.NoError(t, err)
					const longest = 2 << 10 // name, with its length
					for i := range size / longest {
						require.NoError(t, op.EnsurePath(t.Context(), fmt.Sprintf("/all/%0*d", longest-4, i)))
					}
					c := kit.Connect(t, srv, kit.Within(timeout, 0), func(cfg *framework.Config) {
						cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
							nc, err := srv.DialContext(ctx, network, addr)
							return slowLink{nc}, err
						}
					})
					hold, err := locks.NewInterProcessMutex(c, "/held").Acquire(t.Context())
					require.NoError(t, err)
					began := time.Now()
					require.NoError(t, read(t, c))
					line := time.Duration(n*size) * time.Second / (100e6 / 8)
					assert.Less(t, time.Since(began), line+line/7, "the link is busy all the time, though the first replies may be too long to be kept")
					require.NoError(t, hold.Err())
					require.NoError(t, hold.Release())
				})
			})
		}
	}
}

// Several nodes are made in one transaction, or deleted, and the reply is longer than the
// client accepts. The nodes are found, and nothing is left.
func TestLongRepliesToWrites(t *testing.T) {
	const n = 40
	for name, use := range map[string]func(t *testing.T, c *framework.Client, path func(int) string){
		"many locks": func(t *testing.T, c *framework.Client, path func(int) string) {
			t.Helper()
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					h, err := locks.NewInterProcessMutex(c, path(i)).Acquire(t.Context())
					if assert.NoError(t, err) {
						assert.NoError(t, h.Release())
					}
				})
			}
			wg.Wait()
			assert.Positive(t, c.Stats().Batches)
		},
		"a MultiLock": func(t *testing.T, c *framework.Client, path func(int) string) {
			t.Helper()
			var all []locks.Lock
			for i := range n {
				all = append(all, locks.NewInterProcessMutex(c, path(i)))
			}
			h, err := locks.NewInterProcessMultiLock(all...).Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Release())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 4 << 10 })
				path := func(i int) string { return fmt.Sprintf("/%s/%d", strings.Repeat("x", 200), i) }
				for i := range n {
					require.NoError(t, c.EnsurePath(t.Context(), path(i)))
				}
				for range 2 {
					use(t, c, path)
				}
				time.Sleep(time.Minute)
				assert.Empty(t, srv.Ephemerals(0))
			})
		})
	}
}

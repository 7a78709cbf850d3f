package locks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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

// With look-ahead everybody in a full queue has the lock half a round trip after
// the servers have applied the release before, however short it was held.
func TestLookAheadHandsOffInHalfARoundTrip(t *testing.T) {
	for _, held := range []time.Duration{0, 1, d / 2, d, 2 * d, 5 * d, time.Second} {
		t.Run(held.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				const clients = 8
				var released time.Time
				var waits []time.Duration
				done := make(chan bool)
				for i := range clients {
					m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l", locks.LookAhead())
					go func() {
						h, err := m.Acquire(t.Context())
						assert.NoError(t, err)
						if i > 0 {
							waits = append(waits, time.Since(released.Add(d)))
							time.Sleep(held)
						} else {
							time.Sleep(5 * time.Second) // until all have queued
						}
						released = time.Now()
						assert.NoError(t, h.Release())
						done <- true
					}()
					time.Sleep(10 * d)
				}
				for range clients {
					<-done
				}
				assert.Equal(t, slices.Repeat([]time.Duration{d}, clients-1), waits)
				synctest.Wait()
				kit.NothingLeft(t, srv)
			})
		})
	}
}

// A writer that takes the read side before its release leaves a read node right
// behind its own. No list has shown that node to the waiter behind the writer.
func TestLookAheadBehindADowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		first := locks.NewInterProcessReadWriteLock(kit.Connect(t, srv), "/l")
		write, err := first.WriteLock().Acquire(t.Context())
		require.NoError(t, err)
		got := kit.Acquire(t, locks.NewInterProcessReadWriteLock(kit.Connect(t, srv), "/l", locks.LookAhead()).WriteLock())
		time.Sleep(time.Second)
		read, err := first.ReadLock().Acquire(write.Context())
		require.NoError(t, err)
		require.NoError(t, write.Release())
		time.Sleep(time.Second)
		assert.True(t, got.Pending(), "the reader has it")
		require.NoError(t, read.Release())
		require.NoError(t, got.Soon().Release())
	})
}

// nextOwner waits with look-ahead behind a holder, at the second place.
type nextOwner struct {
	srv    *zktest.Server
	holder *locks.Hold
	client *framework.Client // the next owner's
	node   string            // the next owner's
	other  *framework.Client
}

// Each condition for having the lock without a look is missing once; the next owner
// has to look then. The last resort is always a list.
func TestNextOwnerLooksWhenInDoubt(t *testing.T) {
	release := func(t *testing.T, h *nextOwner) { require.NoError(t, h.holder.Release()) }
	for name, tc := range map[string]struct {
		own    bool // the holder is of the next owner's session
		meddle func(t *testing.T, h *nextOwner)
		lists  int
	}{
		"nothing":  {false, release, 0},
		"own head": {true, release, 1},
		"written to the head": {false, func(t *testing.T, h *nextOwner) {
			require.NoError(t, locks.AttemptRevoke(t.Context(), h.other, h.holder.Path()))
			time.Sleep(time.Second)
			release(t, h)
		}, 1},
		"written to its own node": {false, func(t *testing.T, h *nextOwner) {
			require.NoError(t, locks.AttemptRevoke(t.Context(), h.other, h.node))
			time.Sleep(time.Second)
			release(t, h)
		}, 1},
		"own node deleted before": {false, func(t *testing.T, h *nextOwner) {
			require.NoError(t, h.other.Delete(t.Context(), h.node, framework.AnyVersion))
			release(t, h)
		}, 2}, // not there any more, and the new place
		"own node deleted together": {false, func(t *testing.T, h *nextOwner) {
			tx := h.other.Transaction()
			tx.Delete(h.node, framework.AnyVersion)
			tx.Delete(h.holder.Path(), framework.AnyVersion)
			_, err := tx.Commit(t.Context())
			require.NoError(t, err)
		}, 2},
		"cut": {false, func(t *testing.T, h *nextOwner) {
			require.NoError(t, h.srv.Disconnect(h.client.SessionID()))
			release(t, h)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &nextOwner{srv: zktest.Start(t, zktest.InMemory(), zktest.Latency(d))}
				h.client, h.other = kit.Connect(t, h.srv), kit.Connect(t, h.srv)
				by := h.other
				if tc.own {
					by = h.client
				}
				var err error
				h.holder, err = locks.NewInterProcessMutex(by, "/l", locks.ReleaseWait(time.Minute)).Acquire(t.Context())
				require.NoError(t, err)
				got := kit.Acquire(t, locks.NewInterProcessMutex(h.client, "/l", locks.LookAhead()))
				time.Sleep(time.Second)
				for _, name := range kit.Children(t, h.other, "/l") {
					if !strings.HasSuffix(h.holder.Path(), name) {
						h.node = "/l/" + name
					}
				}
				before := h.srv.Requests()["getChildren"]
				tc.meddle(t, h)
				hold := got.Soon()
				assert.Equal(t, tc.lists, h.srv.Requests()["getChildren"]-before, "lists")
				time.Sleep(time.Second)
				assert.Equal(t, locks.Held, hold.State())
				require.NoError(t, hold.Release())
				time.Sleep(time.Second)
				kit.NothingLeft(t, h.srv)
			})
		})
	}
}

// Waiters that give up, and holders of any length, whatever they have asked for:
// nobody is forgotten, and there are never two.
func TestLookAheadWithWaitersThatGiveUp(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Seed(seed), zktest.LatencyBy(zktest.Uniform(d/10, d)))
				const clients, each = 8, 40
				var inside atomic.Int32
				done := make(chan bool)
				for i := range clients {
					var opts []locks.Option
					if i%3 != 0 {
						opts = append(opts, locks.LookAhead())
					}
					m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l", opts...)
					go func() {
						defer func() { done <- true }()
						for n := range each {
							ctx, cancel := context.Background(), func() {}
							if (i+n)%4 == 0 {
								ctx, cancel = context.WithTimeout(ctx, time.Duration(n)*d)
							}
							h, err := m.Acquire(ctx)
							cancel()
							if err != nil {
								assert.ErrorIs(t, err, context.DeadlineExceeded)
								continue
							}
							assert.EqualValues(t, 1, inside.Add(1))
							time.Sleep(time.Duration((i*n)%7) * d)
							inside.Add(-1)
							assert.NoError(t, h.Release())
						}
					}()
				}
				for range clients {
					<-done
				}
				time.Sleep(time.Minute)
				kit.NothingLeft(t, srv)
			})
		})
	}
}

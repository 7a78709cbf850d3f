package locks_test

import (
	"context"
	"errors"
	"fmt"
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

// A waiter queues again if others delete the lock, with its parent and with all
// nodes in it.
func TestQueueDeletedAtAnyMoment(t *testing.T) {
	t.Parallel()
	for _, inOne := range []bool{true, false} {
		destroy := kit.Raze
		if !inOne {
			destroy = func(ctx context.Context, c *framework.Client, path string) error {
				return c.Delete(ctx, path, framework.AnyVersion, framework.Recursive())
			}
		}
		t.Run(fmt.Sprintf("in one transaction=%v", inOne), func(t *testing.T) {
			for name, lock := range kit.Locks {
				for _, taken := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s taken=%v", name, taken), func(t *testing.T) {
						for moment := range 52 {
							synctest.Test(t, func(t *testing.T) {
								sweepCall(t, taken, lock, func(ctx context.Context, lock locks.Lock) (*locks.Hold, error) {
									h, err := lock.Acquire(ctx)
									if !errors.Is(err, locks.ErrLockLost) { // as the downgrade of a write side that was deleted
										require.NoError(t, err)
									}
									return h, err
								}, func(srv *zktest.Server, _ *framework.Client) context.Context {
									operator := kit.Connect(t, srv)
									time.AfterFunc(time.Duration(moment)*time.Millisecond/2, func() { _ = destroy(context.Background(), operator, "/l") })
									return t.Context()
								})
							})
							if t.Failed() {
								t.Fatalf("at moment %d", moment)
							}
						}
					})
				}
			}
		})
	}
}

// A server that ends a session deletes its nodes first, and whoever watches them
// hears of that before anything else. That a node is gone ends the hold at once,
// but does not say why.
func TestWhyANodeIsGone(t *testing.T) {
	const d = 5 * time.Millisecond
	for name, lock := range kit.Locks {
		for _, held := range []time.Duration{0, 300 * time.Millisecond} {
			for reason, tc := range map[string]struct {
				happens func(t *testing.T, srv *zktest.Server, c, other *framework.Client, nodes []string)
				want    error
			}{
				"expired": {func(t *testing.T, srv *zktest.Server, c, _ *framework.Client, _ []string) {
					require.NoError(t, srv.ExpireSession(c.SessionID()))
				}, framework.ErrSessionExpired},
				"deleted": {func(t *testing.T, _ *zktest.Server, _, other *framework.Client, nodes []string) {
					for _, node := range nodes {
						require.NoError(t, other.Delete(t.Context(), node, framework.AnyVersion))
					}
				}, locks.ErrNodeDeleted},
			} {
				if held == 0 && reason == "deleted" {
					continue // without a watch it is seen late, or on release
				}
				t.Run(name+" "+held.String()+" "+reason, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
						c, other := kit.Connect(t, srv), kit.Connect(t, srv)
						h, err := lock(c).Acquire(t.Context())
						require.NoError(t, err)
						time.Sleep(held)
						ended := h.Context()
						nodes := srv.Ephemerals(c.SessionID())
						tc.happens(t, srv, c, other, nodes)
						gone := time.Now()
						<-ended.Done()
						if held > 0 {
							assert.LessOrEqual(t, time.Since(gone), d, "the end does not wait for the reason")
						}
						cause := context.Cause(ended)
						require.ErrorIs(t, cause, locks.ErrLockLost)
						for _, other := range []error{framework.ErrSessionExpired, locks.ErrNodeDeleted, framework.ErrNoNode} {
							assert.True(t, errors.Is(other, tc.want) || !errors.Is(cause, other), "%v is wrong", cause)
						}
						time.Sleep(time.Second)
						for _, err := range []error{cause, h.Err(), h.Release()} {
							require.ErrorIs(t, err, tc.want)
							require.ErrorContains(t, err, tc.want.Error())
							assert.NotErrorIs(t, err, framework.ErrNoNode)
						}
						assert.False(t, errors.Is(cause, framework.ErrSessionExpired) && errors.Is(cause, locks.ErrNodeDeleted))
					})
				})
			}
		}
	}
}

// What cannot be known is not said.
func TestWhenItIsKnownWhyANodeIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		after func(srv *zktest.Server, c *framework.Client)
		want  string
	}{
		"given up": {func(srv *zktest.Server, _ *framework.Client) {
			srv.Refuse()
			srv.DisconnectAll()
			time.Sleep(time.Minute)
			srv.Accept()
			time.Sleep(time.Minute)
		}, "node gone: deleted, or its session has expired"},
		"closed": {func(_ *zktest.Server, c *framework.Client) { _ = c.Close() }, "node gone: deleted, or its session has expired"},
		"found again": {func(srv *zktest.Server, _ *framework.Client) {
			srv.DisconnectAll()
			time.Sleep(time.Second)
		}, "node deleted"},
		"refused, and then a write": {func(srv *zktest.Server, c *framework.Client) {
			rule := srv.On(zktest.Match{Op: "multi"}, zktest.Fail(-127))
			srv.Unstall(c.SessionID())
			time.Sleep(time.Second)
			assert.Equal(t, 1, rule.Fired(), "not again and again")
			rule.Remove()
			_ = c.Delete(context.Background(), "/none", 0)
		}, "node deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(300 * time.Millisecond)
				srv.Stall(c.SessionID(), zktest.FromClient) // the event comes, and nobody can be asked
				require.NoError(t, other.Delete(t.Context(), h.Path(), framework.AnyVersion))
				<-h.Context().Done()
				<-h.Gone()
				require.EqualError(t, h.Err(), "lock lost: "+h.Path()+": node gone: deleted, or its session has expired")
				if name != "closed" {
					defer srv.Unstall(c.SessionID())
				}
				if name == "found again" {
					srv.Unstall(c.SessionID())
				}
				tc.after(srv, c)
				require.EqualError(t, h.Err(), "lock lost: "+h.Path()+": "+tc.want)
				require.ErrorIs(t, h.Err(), locks.ErrLockLost)
				assert.NotErrorIs(t, h.Err(), framework.ErrSessionExpired)
				assert.Equal(t, tc.want == "node deleted", errors.Is(h.Err(), locks.ErrNodeDeleted))
			})
		})
	}
}

// Many nodes that go at once are asked for together.
func TestManyNodesThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		var holds []*locks.Hold
		for i := range 200 {
			h, err := locks.NewInterProcessMutex(c, "/l/"+string(rune('a'+i/20))+string(rune('a'+i%20))).Acquire(t.Context())
			require.NoError(t, err)
			holds = append(holds, h)
		}
		time.Sleep(time.Second)
		before := srv.Requests()["multi"]
		tx := other.Transaction()
		for _, h := range holds {
			tx.Delete(h.Path(), framework.AnyVersion)
		}
		_, err := tx.Commit(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		for _, h := range holds {
			require.ErrorIs(t, h.Err(), locks.ErrNodeDeleted)
		}
		assert.LessOrEqual(t, srv.Requests()["multi"]-before-1, 3)
	})
}

package leader_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A candidate that falls ill while it waits does not lead: leadership passes on.
func TestACandidateThatIsIllWhenItsTurnComes(t *testing.T) {
	both(t, func(t *testing.T, stand func(*framework.Client, ...leader.Option) candidate, _ string) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		first, err := stand(kit.Connect(t, srv)).Await(t.Context())
		require.NoError(t, err)
		var sick atomic.Bool
		var checks, terms atomic.Int32
		var weak candidate
		weak = stand(kit.Connect(t, srv), leader.HealthCheck(time.Second, func(context.Context) error {
			checks.Add(1)
			assert.False(t, terms.Load() == 0 && weak.Term() != nil, "no term has begun")
			if sick.Load() {
				return errWork
			}
			return nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ran := make(chan error, 1)
		go func() {
			ran <- weak.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
				terms.Add(1)
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, checks.Load(), "before it stands, and not while it waits")
		next := stands(t.Context(), t, stand(kit.Connect(t, srv)))
		time.Sleep(time.Second)
		sick.Store(true)
		began := time.Now()
		require.NoError(t, first.Release())
		second := soon(t, next)
		assert.Less(t, time.Since(began), time.Second)
		time.Sleep(time.Minute)
		assert.Zero(t, terms.Load(), "it was not to lead")
		assert.Equal(t, []string{second.Path()}, srv.Ephemerals(0), "it does not stand")
		sick.Store(false)
		time.Sleep(2 * time.Second)
		assert.Len(t, srv.Ephemerals(0), 2, "it stands again")
		require.NoError(t, second.Release())
		time.Sleep(time.Second)
		assert.EqualValues(t, 1, terms.Load())
		cancel()
		require.ErrorIs(t, <-ran, context.Canceled)
	})
}

// A check that does not return has failed.
func TestAHealthCheckThatDoesNotReturn(t *testing.T) {
	for when, first := range map[string]int32{"before it stands": 1, "before it leads": 2, "while it leads": 5} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				gate := make(chan struct{})
				open := sync.OnceFunc(func() { close(gate) })
				defer open()
				var checks, checking atomic.Int32
				latch := leader.NewLatch(kit.Connect(t, srv), "/e", leader.HealthCheck(time.Second, func(context.Context) error {
					assert.EqualValues(t, 1, checking.Add(1))
					defer checking.Add(-1)
					if checks.Add(1) >= first {
						<-gate
					}
					return nil
				}))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var causes []error
				ran := make(chan error, 1)
				go func() {
					ran <- latch.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
						<-ctx.Done()
						causes = append(causes, context.Cause(ctx))
						return ctx.Err()
					})
				}()
				synctest.Wait()
				next := stands(t.Context(), t, leader.NewLatch(kit.Connect(t, srv), "/e"))
				term := soon(t, next)
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Equal(t, []string{term.Path()}, srv.Ephemerals(0), "it does not stand")
				if first <= 2 {
					assert.Empty(t, causes)
				} else if assert.Len(t, causes, 1) {
					require.ErrorIs(t, causes[0], leader.ErrUnhealthy)
					assert.Contains(t, causes[0].Error(), "did not return within 1s")
				}
				cancel()
				synctest.Wait()
				assert.Empty(t, ran, "Run waits for the check")
				open()
				require.ErrorIs(t, <-ran, context.Canceled)
				assert.Zero(t, checking.Load())
				require.NoError(t, term.Release())
			})
		})
	}
}

package framework_test

import (
	"sync"
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

const (
	connected   = listeners.Connected
	suspended   = listeners.Suspended
	reconnected = listeners.Reconnected
	lost        = listeners.Lost
)

// Each row is one of the cases of Curator's
// TestCircuitBreakingConnectionStateListener, and more.
func TestCircuitBreaker(t *testing.T) {
	const delay = 10 * time.Second
	type step struct {
		state listeners.State // 0 for none
		after time.Duration
		want  []listeners.State
	}
	for _, tc := range []struct {
		name   string
		policy retry.Policy
		steps  []step
	}{
		{"open, it hides all but the first LOST, and tells the last state in the end", retry.NTimes(1, delay), []step{
			{connected, 0, []listeners.State{connected}}, {suspended, 0, []listeners.State{suspended}}, {reconnected, 0, nil},
			{suspended, 0, nil}, {lost, 0, []listeners.State{lost}}, {reconnected, 0, nil}, {lost, 0, nil}, {suspended, 0, nil},
			{0, delay, []listeners.State{suspended}}, {reconnected, 0, []listeners.State{reconnected}},
		}},
		{"closes at the next tick after reconnecting", retry.Forever(delay), []step{
			{connected, 0, []listeners.State{connected}}, {lost, 0, []listeners.State{lost}}, {0, 3 * delay, nil}, {reconnected, delay / 2, nil},
			{0, delay / 2, []listeners.State{reconnected}}, {suspended, 0, []listeners.State{suspended}}, {reconnected, 0, nil}, {0, delay, []listeners.State{reconnected}},
		}},
		{"a policy that refuses never opens it", retry.None(), []step{
			{connected, 0, []listeners.State{connected}}, {suspended, 0, []listeners.State{suspended}}, {reconnected, 0, []listeners.State{reconnected}},
			{suspended, 0, []listeners.State{suspended}}, {lost, 0, []listeners.State{lost}}, {reconnected, 0, []listeners.State{reconnected}},
		}},
		{"one delay, and the state has changed", retry.OneTime(delay), []step{
			{connected, 0, []listeners.State{connected}}, {suspended, 0, []listeners.State{suspended}}, {reconnected, 0, nil}, {0, delay, []listeners.State{reconnected}},
		}},
		{"SUSPENDED to LOST passes once", retry.Forever(delay), []step{
			{connected, 0, []listeners.State{connected}}, {suspended, 0, []listeners.State{suspended}}, {lost, 0, []listeners.State{lost}},
			{reconnected, 0, nil}, {suspended, 0, nil}, {lost, 0, nil}, {0, delay, nil},
		}},
		{"the delay comes from the policy", retry.UntilElapsed(3*delay, delay), []step{
			{suspended, 0, []listeners.State{suspended}}, {0, delay, nil}, {reconnected, 0, nil}, {suspended, 0, nil}, {0, 3 * delay, nil}, {reconnected, 0, []listeners.State{reconnected}},
		}},
		{"an outage that is over before the tick is told as one", retry.Forever(delay), []step{
			{connected, 0, []listeners.State{connected}}, {suspended, 0, []listeners.State{suspended}}, {reconnected, 0, nil}, {suspended, 0, nil}, {reconnected, 0, nil},
			{0, delay, []listeners.State{reconnected}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var source listeners.Hub[listeners.State]
				b := framework.NewCircuitBreaker(&source, tc.policy)
				defer b.Close()
				var mu sync.Mutex
				var got []listeners.State
				b.States().Listen(func(s listeners.State) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, s)
				})
				for i, s := range tc.steps {
					mu.Lock()
					got = nil
					mu.Unlock()
					if s.state != 0 {
						source.Publish(s.state)
					}
					synctest.Wait()
					time.Sleep(s.after)
					synctest.Wait()
					mu.Lock()
					assert.Equal(t, s.want, got, "step %d: %v", i, s.state)
					mu.Unlock()
				}
			})
		})
	}
}

func TestCircuitBreakerEndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		b := framework.NewCircuitBreaker(c.States(), retry.Forever(time.Hour))
		sub := b.States().Subscribe()
		defer sub.Stop()
		require.Equal(t, connected, <-sub.C)
		require.NoError(t, srv.Disconnect(c.SessionID()))
		require.Equal(t, suspended, <-sub.C)
		time.Sleep(time.Second)
		require.Equal(t, reconnected, c.State())
		require.NoError(t, c.Close())
		require.Equal(t, reconnected, <-sub.C, "what was hidden is told at the end")
		_, ok := <-sub.C
		assert.False(t, ok, "it ends with the client")
		b.Close()
		b.Close()
	})
}

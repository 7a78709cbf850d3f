package gocron_test

import (
	"context"
	"sync"
	"testing"
	"time"

	lib "github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/examples/gocron"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Of two replicas with the same job, the one that leads runs it. When it leaves, the other
// one does.
func TestElector(t *testing.T) {
	srv := zktest.Start(t)
	ran := make(chan string)
	replica := func(id string) (leave func()) {
		client, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString()})
		require.NoError(t, err)
		elector := gocron.Elector{Latch: leader.NewLatch(client, "/jobs", leader.ID(id))}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { assert.ErrorIs(t, elector.Stand(ctx), context.Canceled) })
		scheduler, err := lib.NewScheduler(lib.WithDistributedElector(elector))
		require.NoError(t, err)
		_, err = scheduler.NewJob(lib.DurationJob(10*time.Millisecond), lib.NewTask(func() {
			select {
			case ran <- id:
			case <-ctx.Done():
			}
		}), lib.WithSingletonMode(lib.LimitModeReschedule))
		require.NoError(t, err)
		scheduler.Start()
		return sync.OnceFunc(func() {
			cancel()
			assert.NoError(t, scheduler.Shutdown())
			wg.Wait()
			assert.NoError(t, client.Close())
		})
	}
	leave := replica("a")
	defer leave()
	assert.Equal(t, "a", <-ran)
	defer replica("b")()
	require.NoError(t, srv.WaitChildren(t.Context(), "/jobs", 2))
	for range 5 {
		assert.Equal(t, "a", <-ran)
	}
	leave()
	assert.Equal(t, "b", <-ran)
}

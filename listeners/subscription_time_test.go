package listeners_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/listeners"
)

func TestSubscriptionReceivesAllAtItsOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		fast, slow := hub.Subscribe(), hub.Subscribe()
		publish(&hub, 1, 100)
		hub.Close()
		var got []int
		for e := range fast.C {
			got = append(got, e)
		}
		assert.Equal(t, upTo(100), got)
		got = nil
		for e := range slow.C {
			time.Sleep(time.Hour)
			got = append(got, e)
		}
		assert.Equal(t, upTo(100), got, "closed only once drained")
		assert.NoError(t, hub.Wait(t.Context()))
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		idle, unread, read := hub.Subscribe(), hub.Subscribe(), hub.Subscribe()
		idle.Stop()
		_, open := <-idle.C
		assert.False(t, open, "nothing was on its way: closed at once")

		publish(&hub, 1, 100)
		assert.Equal(t, 1, <-read.C)
		for _, sub := range []*listeners.Subscription[int]{unread, read} {
			synctest.Wait()
			sub.Stop()
			sub.Stop()
			synctest.Wait() // frees its goroutine, although nobody reads
			_, open = <-sub.C
			assert.False(t, open)
		}
		hub.Publish(101)
		(&listeners.Subscription[int]{}).Stop()
	})
}

func TestStopFromSeveralGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		sub := hub.Subscribe()
		publish(&hub, 1, 3)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(sub.Stop)
		}
		wg.Wait()
		received := 0
		for range sub.C {
			received++
		}
		assert.LessOrEqual(t, received, 1)
	})
}

func TestSubscribeAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := listeners.Hub[int]{ReplayLast: true}
		hub.Publish(1)
		hub.Close()
		sub := hub.Subscribe()
		_, open := <-sub.C
		assert.False(t, open)
		sub.Stop()
		assert.NoError(t, hub.Wait(t.Context()))
	})
}

func TestCloseOfIdleSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		sub := hub.Subscribe()
		hub.Close()
		_, open := <-sub.C
		assert.False(t, open)
		sub.Stop()
	})
}

func TestUnreadSubscriptionHoldsWaitUpUntilStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		sub := hub.Subscribe()
		publish(&hub, 1, 3)
		hub.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		assert.ErrorIs(t, hub.Wait(ctx), context.DeadlineExceeded)
		sub.Stop()
		assert.NoError(t, hub.Wait(t.Context()))
	})
}

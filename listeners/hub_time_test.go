package listeners_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/listeners"
)

var _ listeners.Source[int] = (*listeners.Hub[int])(nil)

// log collects what a listener was told. It may be read after synctest.Wait.
type log struct {
	mu     sync.Mutex
	events []int
}

func (l *log) add(e int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

func (l *log) got() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

func publish(hub *listeners.Hub[int], from, to int) {
	for e := from; e <= to; e++ {
		hub.Publish(e)
	}
}

func upTo(n int) []int {
	var all []int
	for e := 1; e <= n; e++ {
		all = append(all, e)
	}
	return all
}

func TestEveryListenerGetsEveryEventInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		logs := make([]log, 3)
		for i := range logs {
			hub.Listen(logs[i].add)
		}
		publish(&hub, 1, 1000)
		synctest.Wait()
		for i := range logs {
			assert.Equal(t, upTo(1000), logs[i].got())
		}
	})
}

func TestListenersHearOnlyWhatComesAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		hub.Publish(1)
		var l log
		hub.Listen(l.add)
		hub.Publish(2)
		synctest.Wait()
		assert.Equal(t, []int{2}, l.got())
	})
}

func TestReplayLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := listeners.Hub[int]{ReplayLast: true}
		var before, after log
		hub.Listen(before.add)
		publish(&hub, 1, 3)
		hub.Listen(after.add)
		sub := hub.Subscribe()
		hub.Publish(4)
		synctest.Wait()
		assert.Equal(t, []int{1, 2, 3, 4}, before.got(), "nothing is replayed before the first event")
		assert.Equal(t, []int{3, 4}, after.got())
		assert.Equal(t, 3, <-sub.C)
		assert.Equal(t, 4, <-sub.C)
		sub.Stop()
	})
}

// One listener sleeps for ever, one panics, one closes the hub, one removes
// itself.
func TestBadListenersHarmNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recovered []any
		hub := listeners.Hub[int]{OnPanic: func(r any) { recovered = append(recovered, r) }}
		var good, panicking, own log
		forever := make(chan struct{})
		hub.Listen(func(int) { <-forever })
		hub.Listen(func(e int) {
			panicking.add(e)
			panic(e)
		})
		hub.Listen(func(e int) {
			if e == 3 {
				hub.Close()
			}
		})
		var remove func()
		remove = hub.Listen(func(e int) {
			own.add(e)
			remove()
		})
		hub.Listen(good.add)
		publish(&hub, 1, 3)
		synctest.Wait()
		hub.Publish(4)
		synctest.Wait()

		assert.Equal(t, []int{1, 2, 3}, good.got())
		assert.Equal(t, []int{1, 2, 3}, panicking.got(), "it stays registered")
		assert.Equal(t, []any{1, 2, 3}, recovered)
		assert.Equal(t, []int{1}, own.got())

		close(forever)
		assert.NoError(t, hub.Wait(t.Context()))
	})
}

func TestBlockedListenerLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		var l log
		hub.Listen(func(e int) {
			time.Sleep(time.Hour)
			l.add(e)
		})
		start := time.Now()
		publish(&hub, 1, 100)
		assert.Zero(t, time.Since(start), "Publish does not wait")
		hub.Close()
		assert.NoError(t, hub.Wait(t.Context()))
		assert.Equal(t, upTo(100), l.got())
		assert.Equal(t, 100*time.Hour, time.Since(start))
	})
}

func TestListenerThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		var l log
		hub.Listen(func(e int) {
			l.add(e)
			runtime.Goexit()
		})
		publish(&hub, 1, 3)
		hub.Close()
		assert.NoError(t, hub.Wait(t.Context()))
		assert.Equal(t, upTo(3), l.got())
	})
}

func TestPanicWithoutOnPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		var l log
		hub.Listen(func(e int) {
			l.add(e)
			var none *listeners.Hub[string]
			none.Publish("") // a nil pointer
		})
		publish(&hub, 1, 2)
		synctest.Wait()
		assert.Equal(t, upTo(2), l.got())
	})
}

func TestNilListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []any
		hub := listeners.Hub[int]{OnPanic: func(r any) { told = append(told, r) }}
		remove := hub.Listen(nil)
		assert.Len(t, told, 1)
		hub.Publish(1)
		synctest.Wait()
		remove()
		assert.Len(t, told, 1)
		(&listeners.Hub[int]{}).Listen(nil)()
	})
}

func TestListenersMayUseTheHubFromInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		var outer, inner log
		var once sync.Once
		hub.Listen(func(e int) {
			outer.add(e)
			once.Do(func() {
				hub.Listen(inner.add)
				hub.Publish(10)
			})
		})
		hub.Publish(1)
		synctest.Wait()
		hub.Publish(11)
		synctest.Wait()
		assert.Equal(t, []int{1, 10, 11}, outer.got())
		assert.Equal(t, []int{10, 11}, inner.got())
	})
}

func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		var l, other log
		block := make(chan struct{})
		remove := hub.Listen(func(e int) {
			l.add(e)
			<-block
		})
		hub.Listen(other.add)
		publish(&hub, 1, 3)
		synctest.Wait()
		remove() // does not wait for the call that blocks
		remove()
		hub.Publish(4)
		close(block)
		synctest.Wait()
		assert.Equal(t, []int{1}, l.got(), "what was queued is dropped")
		assert.Equal(t, upTo(4), other.got())
	})
}

func TestCloseDeliversWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := listeners.Hub[int]{ReplayLast: true}
		var l, late log
		hub.Listen(func(e int) {
			time.Sleep(time.Second)
			l.add(e)
		})
		publish(&hub, 1, 3)
		hub.Close()
		hub.Close()
		hub.Publish(4)
		hub.Listen(late.add)()
		hub.Listen(late.add)
		assert.NoError(t, hub.Wait(t.Context()))
		assert.Equal(t, upTo(3), l.got())
		assert.Empty(t, late.got(), "a closed hub replays nothing")
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		hub.Listen(func(int) { time.Sleep(time.Minute) })
		cause := errors.New("shutting down")

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		err := hub.Wait(ctx)
		assert.NotErrorIs(t, err, cause, "it may be any error")
		assert.EqualError(t, err, "listeners: waiting: context deadline exceeded (cause: shutting down)", "not closed")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "shutting down")

		hub.Publish(1)
		hub.Close()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, hub.Wait(ctx), context.DeadlineExceeded, "not drained")

		assert.NoError(t, hub.Wait(t.Context()))
		assert.NoError(t, hub.Wait(ctx), "drained is said though ctx has ended")
		var none context.Context
		assert.Error(t, hub.Wait(none))
	})
}

func TestWaitCountsCallsOfRemovedListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		start := time.Now()
		remove := hub.Listen(func(int) { time.Sleep(time.Minute) })
		hub.Publish(1)
		synctest.Wait()
		remove()
		hub.Close()
		assert.NoError(t, hub.Wait(t.Context()))
		assert.Equal(t, time.Minute, time.Since(start))
	})
}

func TestWaitWithoutListeners(t *testing.T) {
	var hub listeners.Hub[int]
	hub.Close()
	assert.NoError(t, hub.Wait(t.Context()))
}

func TestIdleListenersHaveNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hub listeners.Hub[int]
		before := runtime.NumGoroutine()
		for range 100 {
			hub.Listen(func(int) {})
			hub.Subscribe()
		}
		assert.LessOrEqual(t, runtime.NumGoroutine(), before+10)
	})
}

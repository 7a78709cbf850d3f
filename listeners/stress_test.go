package listeners_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/listeners"
)

// All listeners that are there throughout see one and the same order, in which
// each publisher's events are in its own.
func TestOrderWithManyPublishers(t *testing.T) {
	const publishers, each, readers = 4, 500, 4
	type event struct{ publisher, number int }
	var hub listeners.Hub[event]
	seen := make([][]event, 2*readers)
	var wg sync.WaitGroup
	for i := range readers {
		hub.Listen(func(e event) { seen[i] = append(seen[i], e) })
		sub := hub.Subscribe()
		wg.Go(func() {
			for e := range sub.C {
				seen[readers+i] = append(seen[readers+i], e)
			}
		})
	}
	var publishing sync.WaitGroup
	for p := range publishers {
		publishing.Go(func() {
			for n := range each {
				hub.Publish(event{p, n})
			}
		})
	}
	publishing.Wait()
	hub.Close()
	wg.Wait()
	require.NoError(t, hub.Wait(t.Context()))

	next := make([]int, publishers)
	require.Len(t, seen[0], publishers*each)
	for _, e := range seen[0] {
		require.Equal(t, next[e.publisher], e.number)
		next[e.publisher]++
	}
	for i := range seen {
		require.Equal(t, seen[0], seen[i])
	}
}

// Everything at once. TestMain finds what is left running.
func TestStress(t *testing.T) {
	for range 30 {
		hub := listeners.Hub[int]{ReplayLast: true}
		var calls, panics atomic.Int64
		hub.OnPanic = func(any) { panics.Add(1) }
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for n := range 50 {
					hub.Publish(n)
				}
			})
			wg.Go(func() {
				for range 20 {
					remove := hub.Listen(func(int) { calls.Add(1) })
					sub := hub.Subscribe()
					<-sub.C // an event, or closed
					remove()
					sub.Stop()
				}
			})
			wg.Go(func() {
				var remove func()
				set := make(chan struct{})
				remove = hub.Listen(func(e int) {
					<-set
					switch (e + g) % 10 {
					case 3:
						panic(e)
					case 7:
						remove()
					}
				})
				close(set)
			})
		}
		wg.Go(func() {
			sub := hub.Subscribe()
			<-sub.C
			sub.Stop() // unread from here on
			hub.Close()
		})
		wg.Wait()
		require.NoError(t, hub.Wait(t.Context()))
		after := calls.Load()
		hub.Publish(0)
		hub.Listen(func(int) { calls.Add(1) })
		assert.Equal(t, after, calls.Load(), "nobody is called after Wait")
	}
}

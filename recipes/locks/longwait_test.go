package locks

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// A wait begins while the timer's function has seen none and is about to end.
func TestWaitThatFindsTheTimerSet(t *testing.T) {
	wl := &waitLog{localQueues: new(localQueues)}
	wl.armed.Store(true)
	a := &acquisition{waits: []wait{{queue: &acquire.Queue{Lock: "/l"}, stands: acquire.Wait}}}
	a.entry = wl.acquisitions.PushBack(a)
	assert.Len(t, wl.disarm(), 1)
	assert.True(t, wl.armed.Load(), "look sets the timer")
	wl.remove(a)
	assert.Empty(t, wl.disarm())
	assert.False(t, wl.armed.Load())
}

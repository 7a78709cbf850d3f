//go:build linux && (amd64 || arm64) && !paddock_noraw

package rawsocket

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The scheduler is told of a call unless a timer is due within tickAfter, so that
// its monitor sleeps no longer than that when it was told of none.
func TestMonitorTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newMonitorTick()
		dues := func() (n int) { // how often it is due until nobody wants it
			for state := r.state.Load(); state != tickUnset; state = r.state.Load() {
				time.Sleep(tickAfter)
				synctest.Wait()
				n++
			}
			return n
		}

		assert.False(t, r.isSet(), "the first call")
		for range 100 {
			assert.True(t, r.isSet(), "calls follow each other at %v", time.Since(began))
			time.Sleep(tickAfter - time.Millisecond)
		}
		assert.LessOrEqual(t, dues(), 2, "once for the last calls, and once for nobody")

		time.Sleep(time.Hour)
		assert.False(t, r.isSet(), "a call after a pause")
		assert.Equal(t, 2, dues())
	})
}

// On a machine that does much else a goroutine may stand still between any two of
// its steps.
func TestMonitorTickIsNotDueBeforeTheFirstCall(t *testing.T) {
	var over atomic.Bool
	defer over.Store(true)
	for range 8 * runtime.GOMAXPROCS(0) {
		go func() {
			for !over.Load() { // leaves the processor only when it is told to
			}
		}()
	}
	for range 200_000 {
		require.Equal(t, tickUnset, newMonitorTick().state.Load())
	}
}

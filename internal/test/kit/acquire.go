package kit

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/recipes/locks"
)

// Hold acquires a lock for as long as the test goes on, for an owner of its own: the goroutine of
// the test does not have it.
func Hold(t testing.TB, lock locks.Lock) *locks.Hold {
	t.Helper()
	return HoldWith(t.Context(), t, lock)
}

// HoldWith is Hold with a context.
func HoldWith(ctx context.Context, t testing.TB, lock locks.Lock) *locks.Hold {
	t.Helper()
	a := AcquireWith(ctx, t, lock)
	<-a.done
	require.NoError(t, a.err)
	h := a.hold
	t.Cleanup(func() { _ = h.Release() })
	return h
}

// Queue waits for a lock in a goroutine until the test ends, and gives it back as soon
// as it has it.
func Queue(t testing.TB, lock locks.Lock) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if h, err := lock.Acquire(ctx); err == nil {
			_ = h.Release()
		}
	})
	t.Cleanup(func() {
		cancel()
		waiting.Wait()
	})
}

// Acquisition is a call in a goroutine of its own that acquires a lock.
type Acquisition struct {
	t    testing.TB
	done chan struct{}
	hold *locks.Hold // written before done is closed
	err  error
}

// Acquire begins to acquire a lock.
func Acquire(t testing.TB, lock locks.Lock) *Acquisition {
	t.Helper()
	return AcquireWith(t.Context(), t, lock)
}

// AcquireWith is Acquire with a context.
func AcquireWith(ctx context.Context, t testing.TB, lock locks.Lock) *Acquisition {
	t.Helper()
	return Begin(t, func() (*locks.Hold, error) { return lock.Acquire(ctx) })
}

// Begin is Acquire in another way.
func Begin(t testing.TB, acquire func() (*locks.Hold, error)) *Acquisition {
	t.Helper()
	a := &Acquisition{t: t, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = acquire()
	}()
	return a
}

// Done is closed when the call has returned.
func (a *Acquisition) Done() <-chan struct{} { return a.done }

// Pending reports that the call has not returned.
func (a *Acquisition) Pending() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// Waits reports that the call does not return for a minute.
func (a *Acquisition) Waits() bool {
	select {
	case <-a.done:
		return false
	case <-time.After(time.Minute):
		return true
	}
}

// Result is what the call returns, which must come within a minute.
func (a *Acquisition) Result() (*locks.Hold, error) {
	a.t.Helper()
	if a.Waits() {
		require.FailNow(a.t, "waited for nothing")
	}
	assert.True(a.t, (a.hold == nil) != (a.err == nil), "a hold or an error, never both: %v, %v", a.hold, a.err)
	return a.hold, a.err
}

// Soon is the hold, which must come within a minute.
func (a *Acquisition) Soon() *locks.Hold {
	a.t.Helper()
	h, err := a.Result()
	require.NoError(a.t, err)
	return h
}

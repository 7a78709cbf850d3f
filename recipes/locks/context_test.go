package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

type someKey struct{}

// foreign is a context that package context knows nothing of.
type foreign struct{ context.Context }

func (foreign) Value(any) any { return nil }

func holdUnder(ctx context.Context) (*locks.Hold, func(error)) {
	return locks.NewHold(ctx, func() error { return nil })
}

var (
	errParent = errors.New("the parent's reason")
	errLock   = errors.New("the lock's reason")
)

// A hold's context is what a context of package context would be in its place. This is so
// in any order of events, and whenever the test looks.
func TestContextIsAsThatOfPackageContext(t *testing.T) {
	for range 1_000 {
		if t.Failed() {
			return
		}
		base := context.WithValue(context.Background(), someKey{}, "value")
		parent, endParent := context.WithCancelCause(base)
		if rand.N(4) == 0 {
			parent = foreign{parent}
		}
		h, lose := holdUnder(parent)
		model, endModel := context.WithCancelCause(parent)
		var children, modelChildren []context.Context
		stop := func() {}
		var asked sync.WaitGroup // for what runs after the end
		look := func() {
			ctx := h.Context()
			switch rand.N(6) {
			case 0:
				assert.Equal(t, model.Err(), ctx.Err())
			case 1:
				assert.Equal(t, isDone(model), isDone(ctx)) //nolint:contextcheck // the context is what is tested
			case 2:
				assert.Equal(t, context.Cause(model), context.Cause(ctx)) //nolint:contextcheck // as above
			case 3:
				assert.Equal(t, model.Value(someKey{}), ctx.Value(someKey{}))
			case 4:
				child, end := context.WithCancel(ctx)
				modelChild, endModelChild := context.WithCancel(model)
				children, modelChildren = append(children, child), append(modelChildren, modelChild)
				before := stop
				stop = func() { end(); endModelChild(); before() }
			case 5:
				asked.Add(1)
				context.AfterFunc(ctx, asked.Done) //nolint:contextcheck // as above
			}
		}
		h.Context() // else it does not know what came first
		for _, event := range rand.Perm(9) {
			switch event {
			case 0:
				endParent(errParent)
				if _, is := parent.(foreign); is {
					// Package context needs a goroutine for such a parent.
					<-model.Done()
					<-h.Context().Done()
				}
			case 1:
				lose(errLock)
				endModel(h.Err())
			case 2:
				_ = h.Release() // it says what has come before
				endModel(locks.ErrReleased)
			default:
				look()
			}
		}
		require.ErrorIs(t, h.Context().Err(), context.Canceled)
		assert.Equal(t, model.Err(), h.Context().Err())
		assert.Equal(t, context.Cause(model), context.Cause(h.Context()))
		for i, child := range children {
			<-child.Done()
			<-modelChildren[i].Done()
			assert.Equal(t, context.Cause(modelChildren[i]), context.Cause(child))
		}
		asked.Wait()
		stop()
		endModel(nil)
		endParent(nil)
	}
}

func isDone(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

func TestContextTakesNoGoroutine(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := runtime.NumGoroutine()
	h, lose := holdUnder(parent)
	child, end := context.WithTimeout(h.Context(), time.Hour)
	defer end()
	grandchild, end2 := context.WithCancel(context.WithValue(child, someKey{}, 1))
	defer end2()
	inner, _ := holdUnder(grandchild)
	assert.LessOrEqual(t, runtime.NumGoroutine(), before, "one of another test may have ended")
	lose(errLock)
	<-inner.Context().Done()
	require.ErrorIs(t, context.Cause(inner.Context()), errLock)
	require.ErrorIs(t, context.Cause(inner.Context()), locks.ErrLockLost)
	assert.NoError(t, inner.Err(), "the context ends, not the hold")
}

// counted counts the calls of a context's Done.
type counted struct {
	context.Context
	times int
}

func (c *counted) Done() <-chan struct{} {
	c.times++
	return c.Context.Done()
}

// The first call of Context makes a context, and nothing after it does.
func TestContextIsMadeOnce(t *testing.T) {
	parent := &counted{Context: context.WithValue(t.Context(), someKey{}, "value")}
	h, _ := holdUnder(parent)
	before := parent.times
	assert.Same(t, h.Context(), h.Context())
	assert.Greater(t, parent.times, before)
	before = parent.times
	assert.Equal(t, "value", h.Context().Value(someKey{}))
	assert.Nil(t, h.Context().Value("another"))
	_, cancel := context.WithCancel(h.Context())
	defer cancel()
	assert.Equal(t, before, parent.times)
	assert.Contains(t, fmt.Sprint(h.Context()), "locks.Hold.Context")
}

// A re-entry that asks for no context takes one allocation: the hold.
func TestReentryTakesOneAllocation(t *testing.T) {
	srv := zktest.Start(t)
	m := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
	outer, err := m.Acquire(t.Context())
	require.NoError(t, err)
	ctx := outer.Context()
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		if h, err := m.Acquire(ctx); assert.NoError(t, err) {
			assert.NoError(t, h.Release())
		}
	}), 1.0)
	require.NoError(t, outer.Release())
}

// A parent does not remember the contexts of holds that were released, and of no bound
// context that has ended.
func TestParentForgetsContexts(t *testing.T) {
	for name, end := range map[string]func(h *locks.Hold, lose func(error)){
		"released": func(*locks.Hold, func(error)) {},
		"lost":     func(_ *locks.Hold, lose func(error)) { lose(errLock) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent := &registering{Context: t.Context()}
				h, lose := holdUnder(parent)
				h.Context()
				_, cancel := h.Bind(parent)
				_, cancelToo := h.Bind(parent)
				assert.Equal(t, int32(3), parent.n.Load())
				cancel()
				synctest.Wait()
				assert.Equal(t, int32(2), parent.n.Load())
				end(h, lose)
				_ = h.Release()
				synctest.Wait()
				assert.Zero(t, parent.n.Load())
				_, cancelLate := h.Bind(parent)
				synctest.Wait()
				assert.Zero(t, parent.n.Load())
				cancelToo()
				cancelLate()
			})
		})
	}
}

func TestContextHasTheParentsDeadline(t *testing.T) {
	parent, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	h, _ := holdUnder(parent)
	want, _ := parent.Deadline()
	got, ok := h.Context().Deadline()
	assert.True(t, ok)
	assert.Equal(t, want, got)
	late, cancelLate := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancelLate()
	<-late.Done()
	h, lose := holdUnder(late)
	lose(errLock)
	require.ErrorIs(t, h.Context().Err(), context.DeadlineExceeded, "that came first")
	require.ErrorIs(t, context.Cause(h.Context()), context.DeadlineExceeded)
}

func TestContextAskedFromManySides(t *testing.T) {
	for range 500 {
		parent, cancel := context.WithCancelCause(context.Background())
		h, lose := holdUnder(parent)
		var wg sync.WaitGroup
		causes := make([]error, 6)
		for i := range causes {
			wg.Go(func() {
				for h.Context().Err() == nil {
					runtime.Gosched()
				}
				<-h.Context().Done()
				causes[i] = context.Cause(h.Context())
			})
		}
		wg.Go(func() { cancel(errParent) })
		wg.Go(func() { lose(errLock) })
		wg.Wait()
		for _, cause := range causes {
			require.Equal(t, causes[0], cause)
		}
	}
}

// A hold that shows its context for the first time while it is released ends it.
func TestContextShownWhileTheHoldEnds(t *testing.T) {
	began := time.Now()
	for range 10 {
		showWhileEnding(t, make([]*locks.Hold, 1_000))
		if t.Failed() || time.Since(began) > 5*time.Second { // two processors that are really one
			return
		}
	}
}

func showWhileEnding(t *testing.T, all []*locks.Hold) {
	t.Helper()
	for i := range all {
		all[i], _ = holdUnder(context.Background())
	}
	var at [2]atomic.Int64
	// together lets two who have come to the same hold go on at once.
	together := func(who int) {
		n := at[who].Add(1)
		for spins := 0; at[1-who].Load() < n; spins++ {
			if spins > 1000 {
				runtime.Gosched()
			}
		}
	}
	var releasing sync.WaitGroup
	releasing.Go(func() {
		for _, h := range all {
			together(0)
			assert.NoError(t, h.Release())
		}
	})
	shown := make([]context.Context, len(all))
	for i, h := range all {
		together(1)
		shown[i] = h.Context()
		shown[i].Done()
	}
	releasing.Wait()
	for i, ctx := range shown {
		require.True(t, isDone(ctx), "of hold %d", i)
		require.Equal(t, locks.ErrReleased, context.Cause(ctx))
	}
}

func TestContextBoundBeforeAnyOther(t *testing.T) {
	h, _ := holdUnder(context.Background())
	bound, cancel := h.Bind(t.Context())
	defer cancel()
	require.NoError(t, h.Release())
	require.Equal(t, locks.ErrReleased, context.Cause(bound))
}

// A hold ends with each hold that it was acquired under, in whatever order they end, and
// ends none of those.
func TestContextEndsWithTheHoldsAbove(t *testing.T) {
	outer, _ := holdUnder(context.Background())
	middle, _ := holdUnder(outer.Context())
	inner, _ := holdUnder(middle.Context())
	require.NoError(t, middle.Release())
	require.ErrorIs(t, context.Cause(inner.Context()), locks.ErrReleased)
	require.NoError(t, inner.Err(), "the context ends, not the hold")
	bound, cancel := inner.Bind(context.Background())
	defer cancel()
	require.NoError(t, bound.Err())
	late, _ := holdUnder(middle.Context())
	require.ErrorIs(t, context.Cause(late.Context()), locks.ErrReleased)
	require.NoError(t, late.Release())
	require.NoError(t, outer.Context().Err())
	require.NoError(t, inner.Release())
	require.ErrorIs(t, context.Cause(bound), locks.ErrReleased)
	require.NoError(t, outer.Context().Err())
	require.NoError(t, outer.Release())
	require.ErrorIs(t, context.Cause(outer.Context()), locks.ErrReleased)
}

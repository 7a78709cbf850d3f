package retry_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

// answer is what one call says, and after how long. A stubborn one does not heed its context.
type answer struct {
	after    time.Duration
	value    string
	err      error
	stubborn bool
}

// replica gives one answer to each call, and keeps what became of the calls.
type replica struct {
	answers []answer

	mu       sync.Mutex
	began    []time.Duration // when each call began
	ended    int
	causes   []error // of the contexts of those that were cut short
	released []string
	start    time.Time
}

func newReplica(answers ...answer) *replica { return &replica{answers: answers, start: time.Now()} }

func (r *replica) get(ctx context.Context) (string, error) {
	r.mu.Lock()
	a := r.answers[min(len(r.began), len(r.answers)-1)]
	r.began = append(r.began, time.Since(r.start))
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended++
	}()
	heeded := ctx.Done()
	if a.stubborn {
		heeded = nil
	}
	due := make(chan struct{})
	if a.after > 0 { // a timer that is due breaks the race detector in a bubble (golang/go#78156)
		time.AfterFunc(a.after, func() { close(due) })
	} else {
		close(due)
	}
	select {
	case <-due:
		return a.value, a.err
	case <-heeded:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.causes = append(r.causes, context.Cause(ctx))
		return "", ctx.Err()
	}
}

func (r *replica) release(value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = append(r.released, value)
}

func (r *replica) hedged(more int) func(context.Context) (string, error) {
	return retry.Hedge(r.get, 10*ms, more, r.release)
}

func TestHedge(t *testing.T) {
	busy, gone, lost := errors.New("busy"), retry.Mark(errors.New("gone"), retry.Stop), retry.Mark(errors.New("lost"), retry.Unsure)
	never := answer{after: time.Hour}
	for _, tc := range []struct {
		name     string
		answers  []answer
		more     int
		value    string
		err      error // the last failure
		took     time.Duration
		began    []time.Duration
		cut      int // calls that were overtaken
		released []string
	}{
		{"the first is fast", []answer{{9 * ms, "a", nil, false}}, 3, "a", nil, 9 * ms, []time.Duration{0}, 0, nil},
		{"the second is faster", []answer{never, {5 * ms, "b", nil, false}}, 3, "b", nil, 15 * ms, []time.Duration{0, 10 * ms}, 1, nil},
		{"the first is faster after all", []answer{{12 * ms, "a", nil, false}, never}, 3, "a", nil, 12 * ms, []time.Duration{0, 10 * ms}, 1, nil},
		{"the third", []answer{never, never, {ms, "c", nil, false}}, 2, "c", nil, 21 * ms, []time.Duration{0, 10 * ms, 20 * ms}, 2, nil},
		{"no more than asked for", []answer{{35 * ms, "a", nil, false}, never}, 1, "a", nil, 35 * ms, []time.Duration{0, 10 * ms}, 1, nil},
		{"none at all", []answer{{35 * ms, "a", nil, false}}, 0, "a", nil, 35 * ms, []time.Duration{0}, 0, nil},
		{"below none", []answer{{35 * ms, "a", nil, false}}, -1, "a", nil, 35 * ms, []time.Duration{0}, 0, nil},
		{"a failure of the first while the second runs", []answer{{12 * ms, "", busy, false}, {5 * ms, "b", nil, false}}, 1, "b", nil, 15 * ms, []time.Duration{0, 10 * ms}, 0, nil},
		{"a failure of the second while the first runs", []answer{{20 * ms, "a", nil, false}, {ms, "", lost, false}}, 1, "a", nil, 20 * ms, []time.Duration{0, 10 * ms}, 0, nil},
		{"a failure before there is a second", []answer{{5 * ms, "", busy, false}, {0, "b", nil, false}}, 1, "b", nil, 5 * ms, []time.Duration{0, 5 * ms}, 0, nil},
		{"what is judged Stop is an answer", []answer{never, {5 * ms, "", gone, false}}, 1, "", gone, 15 * ms, []time.Duration{0, 10 * ms}, 1, nil},
		{"a loser that succeeds as well", []answer{{18 * ms, "a", nil, true}, {5 * ms, "b", nil, false}}, 1, "b", nil, 18 * ms, []time.Duration{0, 10 * ms}, 0, []string{"a"}},
		{"and after what is judged Stop", []answer{{18 * ms, "a", nil, true}, {5 * ms, "", gone, false}}, 1, "", gone, 18 * ms, []time.Duration{0, 10 * ms}, 0, []string{"a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplica(tc.answers...)
				value, err := retry.DoValue(t.Context(), retry.NTimes(9, 0), r.hedged(tc.more), retry.Idempotent())
				assert.Equal(t, tc.took, time.Since(r.start))
				assert.Equal(t, len(r.began), r.ended, "no call outlives it")
				assert.Equal(t, tc.value, value)
				if tc.err == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, tc.err)
				}
				assert.Equal(t, tc.began, r.began)
				assert.Equal(t, slices.Repeat([]error{retry.ErrOvertaken}, tc.cut), slices.Clip(append([]error{}, r.causes...)))
				assert.Equal(t, tc.released, r.released)
			})
		})
	}
}

// The loop judges an attempt by the strictest failure of its calls, in whatever order they came.
func TestHedgeFailsWithTheStrictestFailure(t *testing.T) {
	again, unsure := answer{20 * ms, "", errors.New("busy"), false}, answer{5 * ms, "", retry.Mark(errors.New("lost"), retry.Unsure), false}
	for name, answers := range map[string][]answer{"last": {again, unsure}, "first": {{20 * ms, "", unsure.err, false}, {5 * ms, "", again.err, false}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplica(answers...)
				_, err := retry.DoValue(t.Context(), retry.NTimes(1, 0), r.hedged(1), retry.Idempotent())
				var e *retry.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, unsure.err, e.Last)
				assert.Equal(t, 1, e.Attempts, "the second call was the policy's only retry")
			})
		})
	}
}

func TestHedgeIsCharged(t *testing.T) {
	never := answer{after: time.Hour}
	for _, tc := range []struct {
		name   string
		policy retry.Policy // of the loop
		outer  retry.Policy // of the one around it
		budget int
		calls  int
		left   float64
		told   int
	}{
		{"to the budget", retry.NTimes(9, 0), retry.Policy{}, 5, 4, 2, 0},
		{"as long as that has something", retry.NTimes(9, 0), retry.Policy{}, 2, 3, 0, 1},
		{"nothing", retry.NTimes(9, 0), retry.Policy{}, 0, 1, 0, 1},
		{"to the retries", retry.NTimes(2, 0), retry.Policy{}, 5, 3, 3, 0},
		{"to None", retry.None(), retry.Policy{}, 5, 1, 5, 0},
		{"to a policy without retries", retry.Policy{}, retry.Policy{}, 2, 3, 0, 1},
		{"to the time", retry.Forever(ms).WithMaxElapsed(25 * ms), retry.Policy{}, 5, 3, 3, 0},
		{"to the loop around", retry.NTimes(9, 0), retry.NTimes(1, 0), 5, 2, 4, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := 0
				b := retry.NewBudget(tc.budget, 0).OnEmpty(func(_ context.Context, a retry.Attempt) {
					told++
					assert.Equal(t, "orders", a.Policy)
					assert.NoError(t, a.Err)
				})
				r := newReplica(answer{100 * ms, "a", nil, false}, never)
				err := retry.Do(t.Context(), tc.outer, func(ctx context.Context) error {
					_, err := retry.DoValue(ctx, tc.policy.Named("orders").WithBudget(b), r.hedged(3), retry.Idempotent())
					return err
				})
				require.NoError(t, err)
				assert.Len(t, r.began, tc.calls)
				assert.Equal(t, tc.left, b.Left())
				assert.Equal(t, tc.told, told)
			})
		})
	}
}

func TestHedgeAndContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), key{}, 7), 25*ms, errors.New("shutdown"))
		defer cancel()
		r := newReplica(answer{after: time.Hour})
		var values atomic.Int64
		_, err := retry.DoValue(ctx, retry.NTimes(9, 0), retry.Hedge(func(ctx context.Context) (string, error) {
			values.Add(int64(ctx.Value(key{}).(int)))
			return r.get(ctx)
		}, 10*ms, 9, nil), retry.Idempotent())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 25*ms, time.Since(r.start))
		assert.Equal(t, 3, r.ended)
		assert.EqualValues(t, 21, values.Load())
		require.Len(t, r.causes, 3)
		assert.EqualError(t, r.causes[0], "shutdown")
	})
	synctest.Test(t, func(t *testing.T) { // the timeout is that of all calls together
		r := newReplica(answer{after: time.Hour}, answer{after: time.Hour}, answer{5 * ms, "c", nil, false})
		value, err := retry.DoValue(t.Context(), retry.NTimes(9, 0).WithAttemptTimeout(15*ms), r.hedged(1), retry.Idempotent())
		require.NoError(t, err)
		assert.Equal(t, "c", value)
		assert.Equal(t, []time.Duration{0, 10 * ms, 15 * ms}, r.began)
	})
	synctest.Test(t, func(t *testing.T) { // a call's context ends with the call
		began := make(chan context.Context, 1)
		value, err := retry.DoValue(t.Context(), retry.NTimes(9, 0), retry.Hedge(func(ctx context.Context) (string, error) {
			select {
			case first := <-began:
				time.Sleep(10 * ms)
				assert.Error(t, first.Err())
				return "b", ctx.Err()
			default:
				began <- ctx
				time.Sleep(12 * ms)
				return "", errFailure
			}
		}, 10*ms, 1, nil), retry.Idempotent())
		require.NoError(t, err)
		assert.Equal(t, "b", value)
	})
}

func TestHedgeIsRefused(t *testing.T) {
	r := newReplica(answer{})
	_, err := retry.DoValue(t.Context(), retry.NTimes(9, 0), r.hedged(1))
	require.ErrorIs(t, err, retry.ErrStopped)
	require.ErrorContains(t, err, "op is hedged in a call that is not Idempotent")
	_, err = retry.DoValue(t.Context(), retry.NTimes(9, 0), retry.Hedge(r.get, 50, 1, nil), retry.Idempotent())
	require.ErrorIs(t, err, retry.ErrStopped)
	require.ErrorContains(t, err, "after is 50ns: it must be 100µs at least")
	assert.Empty(t, r.began)
	_, err = retry.DoValue(t.Context(), retry.OneTime(0), retry.Hedge[string](nil, ms, 1, nil), retry.Idempotent())
	assert.ErrorContains(t, err, "op is nil")
	_, err = r.hedged(1)(nil)
	require.ErrorContains(t, err, "context is nil")
	assert.Empty(t, r.began)
}

func TestHedgeOutsideOfDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(answer{after: time.Hour}, answer{after: time.Hour}, answer{ms, "c", nil, false})
		value, err := retry.Hedge(r.get, 0, 2, nil)(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "c", value)
		assert.Equal(t, []time.Duration{0, 0, 0}, r.began, "all at once")
	})
}

func TestHedgePanics(t *testing.T) {
	for _, which := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			r := newReplica(answer{15 * ms, "other", nil, true}, answer{20 * ms, "other", nil, true})
			calls := new(atomic.Int64)
			done := 0
			p := retry.NTimes(9, 0).OnDone(func(context.Context, retry.Attempt) { done++ })
			assert.PanicsWithValue(t, "op", func() {
				_, _ = retry.DoValue(t.Context(), p, retry.Hedge(func(ctx context.Context) (string, error) {
					if int(calls.Add(1)) == which {
						time.Sleep(12 * ms)
						panic("op")
					}
					return r.get(ctx)
				}, 10*ms, 1, r.release), retry.Idempotent())
			})
			assert.Equal(t, 1, r.ended, "the other call has returned")
			assert.Equal(t, []string{"other"}, r.released)
			assert.Equal(t, 1, done)
		})
	}
	synctest.Test(t, func(t *testing.T) { // after the other one has won
		r := newReplica(answer{12 * ms, "won", nil, false})
		calls := new(atomic.Int64)
		assert.PanicsWithValue(t, "late", func() {
			_, _ = retry.DoValue(t.Context(), retry.NTimes(9, 0), retry.Hedge(func(ctx context.Context) (string, error) {
				if calls.Add(1) == 2 {
					<-ctx.Done()
					panic("late")
				}
				return r.get(ctx)
			}, 10*ms, 1, r.release), retry.Idempotent())
		})
		assert.Equal(t, []string{"won"}, r.released)
	})
	synctest.Test(t, func(t *testing.T) { // the end of the goroutine of a further call
		r := newReplica(answer{after: time.Hour})
		calls := new(atomic.Int64)
		_, err := retry.DoValue(t.Context(), retry.NTimes(9, 0), retry.Hedge(func(ctx context.Context) (string, error) {
			if calls.Add(1) == 2 {
				runtime.Goexit()
			}
			return r.get(ctx)
		}, 10*ms, 1, nil), retry.Idempotent())
		require.ErrorIs(t, err, retry.ErrStopped)
		assert.Equal(t, 10*ms, time.Since(r.start))
	})
}

// A result that the policy does not accept is no answer while another call runs.
func TestHedgeAndResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := retry.WithResult(retry.NTimes(9, 0), func(s string) retry.Decision {
			if s == "stale" {
				return retry.Again
			}
			return retry.Pass
		})
		r := newReplica(answer{20 * ms, "fresh", nil, false}, answer{5 * ms, "stale", nil, false})
		value, err := retry.DoValue(t.Context(), p, r.hedged(1), retry.Idempotent())
		require.NoError(t, err)
		assert.Equal(t, "fresh", value)
		assert.Len(t, r.began, 2)
	})
}

// Whatever comes first, each result but the caller's is released, and nothing is left running.
func TestHedgeUnderContention(t *testing.T) {
	var made, released, got atomic.Int64
	b := retry.NewBudget(1000, 0.1)
	p := retry.NTimes(5, 0).WithBudget(b)
	op := retry.Hedge(func(ctx context.Context) (int64, error) {
		n := made.Add(1)
		if n%3 == 0 {
			runtime.Gosched()
		}
		if n%5 == 0 && ctx.Err() != nil {
			made.Add(-1)
			return 0, ctx.Err()
		}
		return n, nil
	}, 0, 3, func(int64) { released.Add(1) })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				_, err := retry.DoValue(t.Context(), p, op, retry.Idempotent())
				assert.NoError(t, err)
				got.Add(1)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1600, got.Load())
	assert.Equal(t, made.Load(), got.Load()+released.Load())
}

package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// served lets a window be used by as many as like, on servers that take a while for
// each request, for so long. It returns how many were answered, and how long the
// last one took.
func (w *window) served(from time.Time, trip, takes, span time.Duration) (answered int, took time.Duration, end time.Time) {
	type request struct{ sent, received time.Time }
	var out []request
	now, free := from, from
	for now.Sub(from) < span {
		for w.used < w.size {
			w.used++
			free = later(free, now.Add(trip/2)).Add(takes)
			out = append(out, request{now, free.Add(trip / 2)})
		}
		w.limited = true
		r := out[0]
		out = out[1:]
		now = r.received
		took = r.received.Sub(r.sent)
		w.answered(r.sent, r.received)
		w.Release(1)
		answered++
	}
	w.used = 0
	return answered, took, now
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func TestWindowKeepsAnswersQuickAndServersBusy(t *testing.T) {
	const timeout, span = 2 * time.Second, 20 * time.Second
	for _, tc := range []struct{ trip, takes time.Duration }{
		{time.Millisecond, 50 * time.Microsecond},
		{time.Millisecond, time.Millisecond},
		{time.Millisecond, 10 * time.Millisecond},
		{100 * time.Millisecond, 100 * time.Microsecond},
		{100 * time.Millisecond, 5 * time.Millisecond},
		{400 * time.Millisecond, time.Millisecond},
	} {
		w := newWindow()
		w.begin(timeout, time.Time{})
		_, _, now := w.served(time.Time{}, tc.trip, tc.takes, span/4)
		n, took, _ := w.served(now, tc.trip, tc.takes, span)
		possible := min(float64(span/tc.takes), mostOutstanding*float64(span/tc.trip))
		t.Logf("trips of %v, requests of %v: %d on their way, answered after %v, %.0f %% of what is possible", tc.trip, tc.takes, w.size, took, float64(n)*100/possible)
		assert.Greater(t, float64(n), 0.9*possible)
		assert.Less(t, took-tc.trip, timeout/10+20*tc.takes)
	}
}

// The way becomes longer, and shorter again: the window follows.
func TestWindowOnAnotherWay(t *testing.T) {
	const timeout, span = 2 * time.Second, 20 * time.Second
	w := newWindow()
	w.begin(timeout, time.Time{})
	_, _, now := w.served(time.Time{}, time.Millisecond, 100*time.Microsecond, span)
	_, _, now = w.served(now, 300*time.Millisecond, 100*time.Microsecond, 2*span)
	n, _, now := w.served(now, 300*time.Millisecond, 100*time.Microsecond, span)
	assert.Greater(t, n, int(span/time.Millisecond), "not as if all of it were waiting")
	_, took, _ := w.served(now, time.Millisecond, 100*time.Microsecond, span)
	assert.Less(t, took, timeout/10)
}

// Before anything is known no more is sent than slow servers answer soon.
func TestWindowBeginsSmall(t *testing.T) {
	for timeout, size := range map[time.Duration]int{time.Second: 32, 2 * time.Second: 64, 30 * time.Second: 960, time.Hour: mostOutstanding} {
		w := newWindow()
		w.begin(timeout, time.Time{})
		assert.Equal(t, size, w.size)
	}
}

func TestWindowServesInTurn(t *testing.T) {
	w := newWindow()
	w.size = 2
	granted := func(p *slotRequest) bool {
		select {
		case <-p.granted:
			return true
		default:
			return false
		}
	}
	require.True(t, w.free(1))
	require.True(t, granted(w.ask(5)), "what is sent together enters together")
	first, second, third := w.ask(1), w.ask(1), w.ask(1)
	assert.False(t, w.free(1), "others wait")
	w.Release(4)
	assert.False(t, granted(first), "two are on their way")
	w.giveUp(second)
	assert.Equal(t, []*slotRequest{first, third}, waitingIn(w))
	w.Release(1)
	assert.True(t, granted(first))
	assert.False(t, granted(third))
	w.take(1)
	w.Release(1)
	assert.False(t, granted(third), "slots were taken that nobody waited for")
	w.Release(1)
	assert.True(t, granted(third))
	fourth := w.ask(1)
	w.giveUp(third) // when it has its slot already
	assert.True(t, granted(fourth))
	assert.Empty(t, waitingIn(w))
	w.Release(2)
	assert.Zero(t, w.used)
}

func waitingIn(w *window) (all []*slotRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := w.queue.first; p != nil; p = p.next {
		all = append(all, p)
	}
	return all
}

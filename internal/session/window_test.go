package session

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// served lets a window be used by as many as like, on servers that take a while for
// each request, for so long. It returns how many were answered, and how long the
// last one took.
func (w *window) served(from time.Time, trip, takes, span time.Duration) (answered int, took time.Duration, end time.Time) {
	type request struct{ sent, received time.Time }
	var out []request
	now, free := from, from
	for now.Sub(from) < span {
		for !w.requests.full() {
			w.requests.used++
			free = later(free, now.Add(trip/2)).Add(takes)
			out = append(out, request{now, free.Add(trip / 2)})
		}
		w.requests.limited = true
		r := out[0]
		out = out[1:]
		now = r.received
		took = r.received.Sub(r.sent)
		w.answered(transport.Ack{Sent: r.sent, Replied: r.received})
		w.Release(1, 0)
		answered++
	}
	w.requests.used = 0
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
		t.Logf("trips of %v, requests of %v: %d on their way, answered after %v, %.0f %% of what is possible", tc.trip, tc.takes, w.requests.size, took, float64(n)*100/possible)
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
		assert.Equal(t, size, w.requests.size)
	}
}

// Long replies take a link for as long as many requests take the servers. From the first
// burst on, no answer waits for a fifth of the session timeout, and the link is busy.
func TestWindowBoundsBytesOfReplies(t *testing.T) {
	const trip = time.Millisecond
	for _, tc := range []struct {
		timeout time.Duration
		size    int
		link    float64 // bytes a second
	}{
		{2 * time.Second, 100 << 10, 12.5e6},
		{4 * time.Second, 900 << 10, 12.5e6},
		{4 * time.Second, 900 << 10, 125e6},
		{4 * time.Second, 20 << 10, 12.5e6},
		{15 * time.Second, 900 << 10, 12.5e6},
		{30 * time.Second, 900 << 10, 12.5e6},
	} {
		w := newWindow()
		w.begin(tc.timeout, time.Time{})
		call := transport.NewCall(wire.OpGetData, &wire.PathWatchRequest{Path: "/a"})
		type request struct {
			sent, received time.Time
			load           load
		}
		var out []request
		var now, free time.Time
		takes := time.Duration(float64(tc.size) / tc.link * float64(time.Second))
		answered, longest := 0, time.Duration(0)
		for span := 20 * time.Second; now.Sub(time.Time{}) < span; answered++ {
			for l := w.expects(call); w.free(call); {
				free = later(free, now.Add(trip/2)).Add(takes)
				out = append(out, request{now, free.Add(trip / 2), l})
			}
			w.requests.limited, w.bytes.limited = w.requests.full(), w.bytes.full()
			r := out[0]
			out, now = out[1:], r.received
			longest = max(longest, r.received.Sub(r.sent))
			w.answered(transport.Ack{Sent: r.sent, Replied: r.received, Op: wire.OpGetData, Size: tc.size})
			w.Release(r.load.requests, r.load.bytes)
		}
		possible := float64(20*time.Second) / float64(takes)
		t.Logf("%d bytes, T=%v: %.0f %% of what is possible, the longest took %v", tc.size, tc.timeout, float64(answered)*100/possible, longest)
		assert.Greater(t, float64(answered), 0.9*possible)
		assert.Less(t, longest, tc.timeout/5)
	}
}

// What an operation has had lately is what the window expects of it. Many short replies
// make it expect less, and one long reply is enough to make it expect more.
func TestWindowExpects(t *testing.T) {
	w := newWindow()
	w.begin(4*time.Second, time.Time{})
	read, list := transport.NewCall(wire.OpGetData, wire.Empty{}), transport.NewCall(wire.OpGetChildren, wire.Empty{})
	ofUsers := transport.NewCall(wire.OpGetChildren2, wire.Empty{})
	reply := func(op wire.Op, size int) { w.answered(transport.Ack{Op: op, Size: size}) }
	assert.Equal(t, load{2, expectedData + expectedList}, w.expects(read, list))
	assert.Equal(t, expectedData, w.expects(ofUsers).bytes, "users' lists are as long as users' data may be")
	for range 60 {
		reply(wire.OpGetData, 100)
	}
	assert.Less(t, w.expects(read).bytes, 300)
	reply(wire.OpGetData, 1<<20)
	assert.Equal(t, load{1, 1 << 20}, w.expects(read))
	assert.Equal(t, expectedList, w.expects(list).bytes, "which is another operation")
	reply(wire.OpExists, 1<<20)
	assert.Zero(t, w.expects(transport.NewCall(wire.OpExists, wire.Empty{})).bytes, "its replies are short")

	w.bytes.size = 1 << 20
	l := w.expects(read)
	require.True(t, w.free(read))
	w.ask(func() {}, read)
	third := transport.NewCall(wire.OpGetData, wire.Empty{})
	w.ask(func() {}, third)
	assert.Len(t, waitingIn(w), 2)
	for range 60 {
		reply(wire.OpGetData, 100)
	}
	w.Release(l.requests, l.bytes)
	assert.Empty(t, waitingIn(w))
	assert.Equal(t, 2, w.requests.used)
	used := w.bytes.used
	third.Discard()
	assert.Less(t, used-w.bytes.used, 1000, "what is known when it enters, not when it asks")
	assert.Equal(t, 1, w.requests.used)
}

func TestWindowServesInTurn(t *testing.T) {
	w := newWindow()
	w.requests.size = 2
	granted := func(p *slotRequest) bool { return p.place.In() == nil }
	one := transport.NewCall(wire.OpExists, wire.Empty{})
	require.True(t, w.free(one))
	require.True(t, granted(w.ask(func() {}, one, one, one, one, one)), "what is sent together enters together")
	first, second, third := w.ask(func() {}, one), w.ask(func() {}, one), w.ask(func() {}, one)
	assert.False(t, w.free(one), "others wait")
	w.Release(4, 0)
	assert.False(t, granted(first), "two are on their way")
	w.giveUp(second)
	assert.Equal(t, []*slotRequest{first, third}, waitingIn(w))
	w.Release(1, 0)
	assert.True(t, granted(first))
	assert.False(t, granted(third))
	w.take(one)
	w.Release(1, 0)
	assert.False(t, granted(third), "slots were taken that nobody waited for")
	w.Release(1, 0)
	assert.True(t, granted(third))
	fourth := w.ask(func() {}, one)
	w.giveUp(third) // when it has its slot already
	assert.False(t, granted(fourth))
	one.Discard()
	assert.True(t, granted(fourth))
	assert.Empty(t, waitingIn(w))
	w.Release(2, 0)
	assert.Zero(t, w.requests.used)
}

func waitingIn(w *window) (all []*slotRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.AppendSeq(all, w.queue.All())
}

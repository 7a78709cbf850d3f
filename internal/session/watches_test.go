package session

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

func TestWatchAnsweredAfterTheEndIsToldOfIt(t *testing.T) {
	w := newWatches(1 << 20)
	var got []Event
	sub := &Watch{key: watchKey{"/a", watchChild}, fn: func(ev Event) { got = append(got, ev) }}
	w.setters[sub.key]++
	w.end(ErrClosed, true)
	w.answered(sub, transport.NewCall(wire.OpGetChildren2, wire.Empty{}))
	assert.Equal(t, []Event{{Path: "/a", Err: ErrClosed}}, got)
	assert.Empty(t, w.setters)
}

func TestWatchersOfOneNodeAreToldInTheirOrder(t *testing.T) {
	w := newWatches(1 << 20)
	var told []int
	var subs []*Watch
	for i := range 5 {
		sub := &Watch{key: watchKey{"/a", watchData}, fn: func(Event) { told = append(told, i) }}
		w.setters[sub.key]++
		w.answered(sub, transport.NewCall(wire.OpGetData, wire.Empty{}))
		subs = append(subs, sub)
	}
	for _, i := range []int{4, 0, 2, 2} {
		w.stop(subs[i])
	}
	w.fire(wire.WatcherEvent{Type: wire.EventNodeDataChanged, Path: "/a"})
	assert.Equal(t, []int{1, 3}, told)
	assert.Empty(t, w.subs)
}

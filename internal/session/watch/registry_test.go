package watch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

var errEnd = errors.New("the end")

func TestWatchAnsweredAfterTheEndIsToldOfIt(t *testing.T) {
	w := New(1 << 20)
	var got []Event
	sub := &Watch{key: watched{"/a", Children}, fn: func(ev Event) { got = append(got, ev) }}
	w.setters[sub.key]++
	w.End(errEnd, true)
	w.answered(sub, transport.NewCall(wire.OpGetChildren2, wire.Empty{}))
	assert.Equal(t, []Event{{Path: "/a", Err: errEnd}}, got)
	assert.Empty(t, w.setters)
}

func TestWatchersOfOneNodeAreToldInTheirOrder(t *testing.T) {
	w := New(1 << 20)
	var told []int
	var subs []*Watch
	for i := range 5 {
		sub := &Watch{key: watched{"/a", Data}, fn: func(Event) { told = append(told, i) }}
		w.setters[sub.key]++
		w.answered(sub, transport.NewCall(wire.OpGetData, wire.Empty{}))
		subs = append(subs, sub)
	}
	for _, i := range []int{4, 0, 2, 2} {
		w.Stop(subs[i])
	}
	w.Fire(wire.WatcherEvent{Type: wire.EventNodeDataChanged, Path: "/a"}, 0)
	assert.Equal(t, []int{1, 3}, told)
	assert.Empty(t, w.subs)
}

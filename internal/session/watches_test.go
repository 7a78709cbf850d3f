package session

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/wire"
)

func TestWatchAnsweredAfterTheEndIsToldOfIt(t *testing.T) {
	w := newWatches()
	var got []Event
	sub := &Watch{key: watchKey{"/a", watchChild}, fn: func(ev Event) { got = append(got, ev) }}
	w.setters[sub.key]++
	w.end(ErrClosed, true)
	w.answered(sub, link.NewCall(wire.OpGetChildren2, wire.Empty{}))
	assert.Equal(t, []Event{{Path: "/a", Err: ErrClosed}}, got)
	assert.Empty(t, w.setters)
}

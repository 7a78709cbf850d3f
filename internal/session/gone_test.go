package session

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
)

// The reason why a node is gone may come later than the news that it is.
func TestReasonComesLater(t *testing.T) {
	var g gone
	first, second := g.add(), g.add()
	err := fmt.Errorf("lost: %w", first)
	assert.NotErrorIs(t, err, ErrNodeDeleted)
	assert.NotErrorIs(t, err, zk.ErrSessionExpired)
	assert.Contains(t, err.Error(), "deleted, or its session has expired")
	g.asking = true
	told := 0
	first.then = append(first.then, func() { told++ }, func() { told++ })
	for _, fn := range g.explain(zk.ErrSessionExpired) {
		fn()
	}
	assert.Equal(t, 2, told)
	for _, e := range []error{err, second} {
		assert.ErrorIs(t, e, zk.ErrSessionExpired)
		assert.NotErrorIs(t, e, ErrNodeDeleted)
	}
	assert.Empty(t, g.waiting)
	assert.False(t, g.asking)
	third := g.add()
	assert.Empty(t, g.explain(ErrNodeDeleted))
	assert.ErrorIs(t, third, ErrNodeDeleted)
	assert.ErrorIs(t, err, zk.ErrSessionExpired, "what is settled stays")
}

package deadlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTurn(t *testing.T) {
	var turn Turn
	next := func() time.Duration {
		d, yields := turn.Next(2)
		assert.True(t, yields)
		return d
	}
	assert.Equal(t, firstTurn, next())
	assert.Equal(t, firstTurn, next(), "to ask changes nothing")
	for range 10 {
		turn.Checked(false)
	}
	assert.Equal(t, mostTurn, next(), "it does not look for ever less often")
	turn.Checked(true)
	assert.Equal(t, 2*mostTurn, next(), "it keeps its turn for longer with each yield")
	turn.Checked(false)
	assert.Equal(t, 2*mostTurn, next())
}

func TestOneLeaseNeverYields(t *testing.T) {
	_, yields := new(Turn).Next(1)
	assert.False(t, yields)
}

package deadline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// waiter notes its name when it is late.
type waiter struct {
	name  string
	told  *[]string
	entry Entry
}

func (w *waiter) GiveUp() { *w.told = append(*w.told, w.name) }

func TestWaitsEndInTheOrderOfTheirLimits(t *testing.T) {
	start := time.Unix(0, 0)
	var poked []time.Duration
	l := New(func() time.Time { return start }, func(due time.Time) { poked = append(poked, due.Sub(start)) })
	var told []string
	add := func(name string, limit time.Duration) *waiter {
		w := &waiter{name: name, told: &told}
		l.Add(&w.entry, w, limit)
		return w
	}
	add("b", 2)
	add("d", 4)
	gone := add("gone", 3)
	add("a", 1)
	add("b, later", 2)
	last := add("last", 5)
	assert.Equal(t, []time.Duration{2, 4, 3, 1, 2, 5}, poked)

	l.Remove(&gone.entry)
	l.Remove(&gone.entry) // again does nothing
	assert.Equal(t, start.Add(1), l.Expire(start))
	assert.Empty(t, told)
	assert.Equal(t, start.Add(4), l.Expire(start.Add(3)))
	assert.Equal(t, []string{"a", "b", "b, later"}, told)
	l.Remove(&last.entry)
	assert.Zero(t, l.Expire(start.Add(9)))
	assert.Equal(t, []string{"a", "b", "b, later", "d"}, told)
	assert.Nil(t, l.waits.First())
	assert.Nil(t, l.waits.Last())
}

func TestAWaiterMayBeAddedAgain(t *testing.T) {
	start := time.Unix(0, 0)
	l := New(func() time.Time { return start }, func(time.Time) {})
	var told []string
	w := &waiter{name: "w", told: &told}
	l.Add(&w.entry, w, 1)
	assert.Zero(t, l.Expire(start.Add(1)))
	l.Add(&w.entry, w, 2)
	assert.Equal(t, start.Add(2), l.Expire(start.Add(1)))
	assert.Zero(t, l.Expire(start.Add(2)))
	assert.Equal(t, []string{"w", "w"}, told)
}

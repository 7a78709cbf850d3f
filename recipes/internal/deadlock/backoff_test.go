package deadlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBackoff(t *testing.T) {
	p := begun(1).sure
	begins := func() (after int) { // anew
		for p.yielded(); p.yields > 0; p.yielded() {
			after++
		}
		return after
	}
	assert.Equal(t, firstSure, p.time())
	p.yielded()
	assert.Equal(t, firstSure*5/4, p.time())
	begins()
	assert.Equal(t, firstSure, p.time())
	assert.Equal(t, 28, begins(), "yields up to 450 ms")

	p.worth()
	assert.False(t, p.paid, "to have waited for a millisecond says nothing about half a second")
	for p.time() < mostBackoff/4 {
		p.yielded()
	}
	p.worth()
	assert.True(t, p.paid)
	assert.Equal(t, 2*mostBackoff, p.time(), "where it was")
	begins()
	assert.Equal(t, 10, begins(), "yields up to 900 ms, in larger steps")
	for range 100 {
		for p.time() < p.most/4 {
			p.yielded()
		}
		p.worth()
	}
	assert.Equal(t, endless, p.most)
}

func TestStallTimeout(t *testing.T) {
	began := time.Now()
	s := stallTimeout{waiting: began}
	after := func(d time.Duration) time.Duration { return s.time(began.Add(d)) }
	assert.Equal(t, leastStall, after(0))
	assert.Equal(t, 100*time.Millisecond, after(time.Second), "a tenth")
	assert.Equal(t, mostStall, after(24*time.Hour))

	for range hasty {
		s.yielded(began)
	}
	assert.False(t, s.rests(began))
	s.yielded(began)
	assert.True(t, s.rests(began.Add(leastStall/2-1)))
	assert.False(t, s.rests(began.Add(leastStall/2)))

	assert.Equal(t, leastStall*3125/1024, (&stallTimeout{waiting: began, yields: 5}).time(began.Add(400*time.Millisecond)), "by yields")
	assert.Equal(t, 250*time.Millisecond, after(time.Second), "a quarter of the wait at most")
	s.yields = 100
	assert.Equal(t, mostGrown, after(3*time.Second))
	assert.Equal(t, 2*mostGrown, after(10*time.Second), "a tenth again")
}

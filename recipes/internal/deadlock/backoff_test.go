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
	assert.Equal(t, firstBackoff, p.time())
	p.yielded()
	assert.Equal(t, firstBackoff*5/4, p.time())
	begins()
	assert.Equal(t, firstBackoff, p.time())
	assert.Equal(t, 28, begins(), "yields up to 450 ms")

	p.worth()
	assert.Equal(t, mostBackoff, p.most, "to have waited for a millisecond says nothing about half a second")
	for p.time() < mostBackoff/4 {
		p.yielded()
	}
	p.worth()
	assert.Equal(t, 2*mostBackoff, p.most)
	assert.Less(t, p.time(), mostBackoff, "where it was")
	begins()
	assert.Equal(t, 31, begins(), "yields up to 900 ms")
	for range 100 {
		for p.time() < p.most/4 {
			p.yielded()
		}
		p.worth()
	}
	assert.Equal(t, mostPatience, p.most)
}

func TestStallTimeout(t *testing.T) {
	began := time.Now()
	s := stallTimeout{waiting: began}
	after := func(d time.Duration) time.Duration { return s.time(began.Add(d)) }
	assert.Equal(t, leastStall, after(0))
	assert.Equal(t, 100*time.Millisecond, after(time.Second), "a tenth")
	assert.Equal(t, mostPatience, after(24*time.Hour))

	after = func(d time.Duration) time.Duration { return s.beside(began.Add(d)) }
	assert.Equal(t, besideStall, after(0))
	assert.Equal(t, 24*time.Hour/stallShare, after(24*time.Hour), "without a limit")
	s.library = true
	assert.Equal(t, libraryStall, after(0))
	assert.Equal(t, besideStall, after(24*time.Hour))
	s.patient = true
	assert.Equal(t, mostPatience, after(24*time.Hour))
}

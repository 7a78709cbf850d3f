package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// In virtual time both clocks of package time move together, so the wall clock
// is moved by hand: by what the machine sleeps, and by somebody who sets it.
func TestClockGoesOnWhileTheMachineSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wall, slept time.Duration
		asked := 0
		began := time.Now()
		showsWall := func(t time.Time) int64 { return t.UnixNano() + int64(wall) }
		c := newSleepClock(showsWall, func() (time.Duration, bool) {
			asked++
			return time.Hour + time.Since(began) + slept, true
		})
		start, first := c.Now(), asked
		advance := func(d time.Duration) { <-time.After(d) }
		advance(time.Minute)
		assert.Equal(t, time.Minute, c.Now().Sub(start))
		assert.Equal(t, first, asked, "the kernel is not asked without need")
		wall, slept = wall+time.Hour, slept+time.Hour
		assert.Equal(t, time.Hour+time.Minute, c.Now().Sub(start), "a sleep")
		wall -= 30 * time.Minute
		assert.Equal(t, time.Hour+time.Minute, c.Now().Sub(start), "somebody sets the clock back")
		wall += 24 * time.Hour
		advance(time.Second)
		assert.Equal(t, time.Hour+time.Minute+time.Second, c.Now().Sub(start), "and ahead")
		wall, slept = wall+time.Minute, slept+time.Minute
		assert.Equal(t, time.Hour+2*time.Minute+time.Second, c.Now().Sub(start), "another sleep")
		assert.Equal(t, first+4, asked)
	})
}

func TestSinceBoot(t *testing.T) {
	boot, ok := sinceBoot()
	if !ok {
		t.Skip("not known on this system")
	}
	assert.Positive(t, boot)
	again, _ := sinceBoot()
	assert.GreaterOrEqual(t, again, boot)
	c := newSleepClock(time.Time.UnixNano, sinceBoot)
	assert.InDelta(t, 0, float64(time.Until(c.Now())), float64(10*time.Millisecond))
	c.ask(0)
	assert.Less(t, time.Duration(c.asleep.Load()), 10*time.Millisecond, "it has not slept")
}

func BenchmarkClock(b *testing.B) {
	c := NewClock()
	for b.Loop() {
		c.Now()
	}
}

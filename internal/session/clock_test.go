package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// In virtual time both clocks of package time move together. So this test moves the
// wall clock by hand: when the machine sleeps, and when a user sets the clock.
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
		first := asked
		advance := func(d time.Duration) { <-time.After(d) }
		since := func() time.Duration { return c.Now().Sub(began) }
		advance(time.Minute)
		assert.Equal(t, time.Minute, since())
		assert.Equal(t, first, asked, "the kernel is not asked without need")
		wall, slept = wall+time.Hour, slept+time.Hour
		advance(lookEvery)
		assert.Equal(t, time.Hour+time.Minute+lookEvery, since(), "a sleep")
		wall -= 30 * time.Minute
		advance(lookEvery)
		assert.Equal(t, time.Hour+time.Minute+2*lookEvery, since(), "somebody sets the clock back")
		wall += 24 * time.Hour
		advance(time.Second)
		assert.Equal(t, time.Hour+time.Minute+2*lookEvery+time.Second, since(), "and ahead")
		wall, slept = wall+time.Minute, slept+time.Minute
		advance(lookEvery - 1)
		assert.Equal(t, time.Hour+time.Minute+3*lookEvery-1+time.Second, since(), "too early to look")
		advance(1)
		assert.Equal(t, time.Hour+2*time.Minute+3*lookEvery+time.Second, since(), "another sleep")
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
	began := time.Now()
	c := newSleepClock(time.Time.UnixNano, sinceBoot)
	ahead := time.Until(c.Now())
	c.ask(0)
	apart := 10*time.Millisecond + time.Since(began) // one clock is read after another, on a busy machine later
	assert.InDelta(t, 0, float64(ahead), float64(apart))
	assert.Less(t, time.Duration(c.asleep.Load()), apart, "it has not slept")
}

func BenchmarkClock(b *testing.B) {
	c := newMachineClock()
	for b.Loop() {
		c.Now()
	}
}

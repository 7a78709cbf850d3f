package session

import (
	"sync"
	"sync/atomic"
	"time"
)

// Clock is the time by which the session lease is counted. It goes on while the machine
// sleeps, as the servers' does, and is otherwise time.Now. It may be used by
// many goroutines.
type Clock interface {
	Now() time.Time
	// Since is how long ago a time was that Now gave. It takes less than Now.
	Since(t time.Time) time.Duration
}

// newMachineClock is the clock of the machine.
func newMachineClock() Clock { return newSleepClock(time.Time.UnixNano, sinceBoot) }

// sleepClock adds the time that the machine has slept to the monotonic clock,
// which stands still meanwhile on most systems.
//
// To ask the system how long it has slept costs a call of the kernel. So the clock asks
// only if the wall clock has moved against the monotonic one. That happens at the end of
// each sleep, and when the wall clock is set. To read both clocks takes twice as long as
// to read one. So the wall clock is read only if the last reading is some time ago. The
// first reading after the machine has been awake for lookEvery notices a sleep.
type sleepClock struct {
	wall  func(time.Time) int64        // what the wall clock shows, in nanoseconds
	boot  func() (time.Duration, bool) // time since boot, with sleep
	base  time.Time
	day   int64         // of the wall clock at base
	start time.Duration // of boot at base

	looked atomic.Int64 // when the wall clock was looked at, without sleep, since base
	skew   atomic.Int64 // of the wall clock since base, when last asked
	asleep atomic.Int64 // since base; never shrinks
	asking sync.Mutex   // guards changes of both
}

// leastSkew is more than the difference of two readings of unmoved clocks, and less than
// matters to any deadline.
const leastSkew = int64(time.Millisecond)

func newSleepClock(wall func(time.Time) int64, boot func() (time.Duration, bool)) *sleepClock {
	c := &sleepClock{wall: wall, boot: boot, base: time.Now()}
	c.day = wall(c.base)
	c.start, _ = boot()
	return c
}

// lookEvery is no more than the time that may pass anyway between a reading and the
// action that follows it.
const lookEvery = time.Millisecond

// Now implements Clock.
func (c *sleepClock) Now() time.Time { return c.base.Add(c.elapsed()) }

// Since implements Clock.
func (c *sleepClock) Since(t time.Time) time.Duration { return c.elapsed() - t.Sub(c.base) }

// elapsed is the time since base.
func (c *sleepClock) elapsed() time.Duration {
	awake := time.Since(c.base)
	if awake-time.Duration(c.looked.Load()) >= lookEvery {
		c.look()
	}
	return awake + time.Duration(c.asleep.Load())
}

// look asks whether the machine has slept, if it may have.
func (c *sleepClock) look() {
	t := time.Now()
	awake := int64(t.Sub(c.base))
	skew := c.wall(t) - c.day - awake
	if d := skew - c.skew.Load(); d > leastSkew || d < -leastSkew {
		c.ask(skew)
	}
	c.looked.Store(awake)
}

// ask finds out how long the machine has slept. The monotonic clock is read
// last, so that a pause in between makes it too little and not too much.
func (c *sleepClock) ask(skew int64) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if boot, ok := c.boot(); ok {
		awake := time.Since(c.base)
		c.asleep.Store(max(c.asleep.Load(), int64(boot-c.start-awake)))
	}
	c.skew.Store(skew)
}

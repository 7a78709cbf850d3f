package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A client that tries each half second tells of an outage after a second, and then ever
// more seldom.
func TestOutageIsToldEverMoreSeldom(t *testing.T) {
	start := time.Now()
	o := outage{since: start}
	var told []time.Duration
	for at := time.Duration(0); at <= 2*time.Hour; at += time.Second / 2 {
		lasts, tell := o.failed(start.Add(at), false)
		assert.Equal(t, at, lasts)
		if tell {
			told = append(told, at)
		}
	}
	assert.Equal(t, []time.Duration{time.Second, 11 * time.Second, 31 * time.Second, 71 * time.Second}, told[:4])
	last := len(told) - 1
	assert.Equal(t, mostPause, told[last]-told[last-1])
	assert.Equal(t, int(2*time.Hour/(time.Second/2))+1, o.tries)
}

func TestOutageIsToldAtOnceIfTurnedAway(t *testing.T) {
	start := time.Now()
	o := outage{since: start}
	_, tell := o.failed(start, true)
	assert.True(t, tell)
	_, tell = o.failed(start.Add(time.Second), true)
	assert.False(t, tell, "once")
}

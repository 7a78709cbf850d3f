package session

import "time"

// outage is the time without a connection. The client logs it when it has lasted for a
// second, or when a server has turned us away, and then ever more seldom.
type outage struct {
	since  time.Time // zero while there is a connection
	tries  int
	pause  time.Duration // until it is told again
	toldAt time.Time     // zero if it was not told
}

const (
	firstTold  = time.Second
	firstPause = 10 * time.Second
	mostPause  = 10 * time.Minute
)

// failed counts a failure to connect, and returns for how long there is no
// connection if the log is to tell it now.
func (o *outage) failed(now time.Time, turnedAway bool) (lasts time.Duration, tell bool) {
	o.tries++
	lasts = now.Sub(o.since)
	switch {
	case o.toldAt.IsZero():
		tell = turnedAway || lasts >= firstTold
		o.pause = firstPause
	case now.Sub(o.toldAt) >= o.pause:
		tell = true
		o.pause = min(2*o.pause, mostPause)
	}
	if tell {
		o.toldAt = now
	}
	return lasts, tell
}

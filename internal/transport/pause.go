package transport

import "time"

// Pause is how long a client waits at least and at most before it tries the servers again,
// as a part of its session timeout. Between the two it draws at random.
//
// Round 0 follows the end of a connection by the other side. With a server go the
// connections of all its clients in one moment. If all of them dialed in the next one, the
// other servers could not take them: their queues for new connections are short, and each
// client that finds one full waits for a second or more. So these clients come back over a
// fifteenth of the session timeout. Later rounds follow rounds in which no server took the
// client. There the pause comes before each server: if all are back, any of them will do.
// Pauses begin short, for servers that restart soon, and end with two fifteenths of the
// session timeout.
//
// costly says that a handshake costs the servers much, as with TLS and SASL. Those that do
// not serve yet, as they have no leader, pay for it in vain. So such clients come back over
// a second at least, if that is not more than a fifth of the session timeout.
//
// left is what is left of that for which the client has to be back in time, its holds, or
// 0. Later pauses are a quarter of it at most.
//
// docs/decisions/026-fleets.md has the figures.
func Pause(round int, timeout, left time.Duration, costly bool) (least, most time.Duration) {
	timeout = min(timeout, mostCounted)
	if round == 0 {
		most = timeout / 15
		if costly {
			most = max(most, min(timeout/5, leastCostly))
		}
		return 0, most
	}
	most = min(timeout*2/15, firstPause<<min(round-1, 10))
	if left > 0 {
		most = min(most, max(firstPause, left/4))
	}
	return most / 2, most
}

const (
	firstPause = 100 * time.Millisecond
	// leastCostly is over how long those come back at least whose handshakes cost much.
	leastCostly = time.Second
	// mostCounted is the session timeout from which on pauses do not grow.
	mostCounted = 50 * time.Second
)

package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// network is a client that follows the schedule, and servers that answer after a
// while, in the order of the requests. It goes from one event to the next. Nothing
// else is sent but pings.
type network struct {
	trip, write time.Duration // of a request, and what a write takes besides
	inTurn      bool          // one write after the other; else all that are on their way together
	pause       time.Time     // nothing is answered from then on
	pauseFor    time.Duration
	refuse      Step // answered, but not as wanted

	lease   Lease
	timeout time.Duration
	served  time.Time // when the last request so far is
	now     time.Time
	events  []event
	wake    time.Time

	asked, granted, lost time.Time
	least                time.Duration // of what was left of the lease when something was sent
	syncs, writes        int
}

type event struct {
	at time.Time
	do func()
}

// join is a network with a client whose session has just begun.
func join(terms Terms, trip, write time.Duration) *network {
	n := &network{trip: trip, write: write, timeout: terms.Timeout, least: terms.Timeout}
	n.now = zero.Add(trip + write)
	n.lease.Begin(terms, zero, n.now, true)
	n.ping()
	n.renew()
	return n
}

func (n *network) after(d time.Duration, do func()) {
	n.events = append(n.events, event{n.now.Add(d), do})
}

func (n *network) ping() {
	n.after(n.timeout/3, func() {
		n.send(Touch)
		n.ping()
	})
}

// run lets time pass, and ends early if the hold is lost.
func (n *network) run(d time.Duration) {
	for until := n.now.Add(d); ; {
		first := -1
		for i, e := range n.events {
			if !e.at.After(until) && (first < 0 || e.at.Before(n.events[first].at)) {
				first = i
			}
		}
		if first < 0 {
			n.now = until
			return
		}
		e := n.events[first]
		n.events = append(n.events[:first], n.events[first+1:]...)
		n.now = e.at
		if n.over() {
			return
		}
		e.do()
	}
}

// over is whether the hold was lost.
func (n *network) over() bool {
	if !n.granted.IsZero() && n.lost.IsZero() && !n.now.Before(n.lease.Deadline()) {
		n.lost = n.now
	}
	return !n.lost.IsZero()
}

func (n *network) use() Use {
	if n.asked.IsZero() {
		return Ready
	}
	return Held
}

// send sends a request.
func (n *network) send(e Evidence) {
	sent := n.now
	served := sent.Add(n.trip / 2)
	if n.inTurn {
		served = later(served, n.served)
	}
	if end := n.pause.Add(n.pauseFor); served.Before(end) && !served.Before(n.pause) {
		served = end
	}
	if e == Confirmation {
		served = served.Add(n.write)
	}
	n.served = later(served, n.served)
	n.after(n.served.Sub(sent)+n.trip/2, func() {
		step := map[Evidence]Step{Voucher: Sync, Confirmation: Write}[e]
		if n.refuse&step != 0 {
			n.lease.Replied(Reply{sent, n.now, Touch})
			n.lease.Refused(step, n.now)
			n.renew()
		} else if n.lease.Replied(Reply{sent, n.now, e}) {
			n.renew()
		}
	})
}

// renew does what the run loop does.
func (n *network) renew() {
	if !n.asked.IsZero() && n.granted.IsZero() && n.lease.Enough(n.now) {
		n.granted = n.now
	}
	step, next := n.lease.Renew(n.now, n.use())
	if !n.granted.IsZero() {
		n.least = min(n.least, n.lease.Deadline().Sub(n.now))
	}
	if step&Write != 0 {
		n.writes++
		n.send(Confirmation)
	}
	if step&Sync != 0 {
		n.syncs++
		n.send(Voucher)
	}
	n.wake = next
	if !next.IsZero() {
		n.after(next.Sub(n.now), func() {
			if n.wake.Equal(next) {
				n.renew()
			}
		})
	}
}

// acquire makes a node, and asks for a hold when that is answered.
func (n *network) acquire() {
	n.send(Confirmation)
	n.after(n.trip+n.write, func() {
		n.asked = n.now
		n.renew()
	})
}

// part is one part of so many of the session timeout; none if that is 0.
func part(timeout time.Duration, of float64) time.Duration {
	if of == 0 {
		return 0
	}
	return time.Duration(float64(timeout) / of)
}

var timeouts = []time.Duration{2 * time.Second, 4 * time.Second, 15 * time.Second, 40 * time.Second}

// A hold on a quiet client lasts as long as round trips are within bounds, and
// costs little.
func TestSteadyRoundTrips(t *testing.T) {
	all := []float64{10_000, 100, 50, 30, 20, 15, 12, 10, 9, 8, 7.5, 7, 6.5, 6, 5.5, 5, 4.5, 4, 3.5, 3}
	for _, tc := range []struct {
		name        string
		tick        float64 // parts of the timeout; 0 is not stated
		slowWrites  bool
		atMost      float64 // round trip, parts of the timeout
		leastOf     time.Duration
		writesUpTo  float64
		writesAtAll float64
	}{
		{"all slow", 0, false, 7, 4 * time.Second, 30, 6},
		{"all slow, tick stated", 10, false, 5, 15 * time.Second, 30, 6},
		{"writes slow", 0, true, 4.5, 4 * time.Second, 4.5, 6},
		{"writes slow, tick stated", 10, true, 4, 4 * time.Second, 4.5, 6},
	} {
		for _, timeout := range timeouts {
			lines := fmt.Sprintf("%s, T = %v: part of T that is slow, what is left at least, writes and syncs per T:", tc.name, timeout)
			for _, slow := range all {
				terms := Terms{Timeout: timeout}
				if tc.tick > 0 {
					terms.Tick = part(timeout, tc.tick)
				}
				n := join(terms, part(timeout, slow), 0)
				if tc.slowWrites {
					n = join(terms, time.Millisecond, part(timeout, slow))
				}
				n.acquire()
				n.run(3 * timeout)
				n.syncs, n.writes = 0, 0
				n.run(10 * timeout)
				writes := float64(n.writes) / 10
				what := fmt.Sprintf("%s, T = %v, 1/%v of it", tc.name, timeout, slow)
				if n.lost.IsZero() && !n.granted.IsZero() {
					lines += fmt.Sprintf(" 1/%v %.2f %.1f %.1f;", slow, float64(n.least)/float64(timeout), writes, float64(n.syncs)/10)
				}
				if timeout < tc.leastOf || slow < tc.atMost {
					continue
				}
				require.False(t, n.granted.IsZero(), what)
				require.Zero(t, n.lost, what)
				if slow >= tc.writesUpTo && (timeout >= 4*time.Second || slow >= 50) {
					assert.LessOrEqual(t, writes, tc.writesAtAll, what)
				}
			}
			t.Log(lines)
		}
	}
}

// The servers stand still once, at any moment.
func TestPauseOfTheServers(t *testing.T) {
	const phases = 60
	for _, tc := range []struct {
		timeout time.Duration
		trip    time.Duration
		tick    bool
		stands  float64 // parts of the timeout
	}{
		{2 * time.Second, time.Millisecond, false, 0.3},
		{4 * time.Second, time.Millisecond, false, 0.35},
		{4 * time.Second, 4 * time.Second / 30, false, 0.3},
		{15 * time.Second, 2 * time.Millisecond, false, 0.35},
		{15 * time.Second, 15 * time.Second / 20, false, 0.3},
		{15 * time.Second, 2 * time.Millisecond, true, 0.6},
		{15 * time.Second, 15 * time.Second / 20, true, 0.35},
	} {
		line := fmt.Sprintf("T = %v, round trip %v, tick stated %v: lost of %d:", tc.timeout, tc.trip, tc.tick, phases)
		for _, pause := range []float64{0.2, 0.3, 0.35, 0.4, 0.6} {
			lost := 0
			for phase := range phases {
				terms := Terms{Timeout: tc.timeout}
				if tc.tick {
					terms.Tick = tc.timeout / 10
				}
				n := join(terms, tc.trip, 0)
				n.acquire()
				n.run(3 * tc.timeout)
				n.pause, n.pauseFor = n.now.Add(tc.timeout*time.Duration(phase)/phases), time.Duration(pause*float64(tc.timeout))
				n.run(4 * tc.timeout)
				if !n.lost.IsZero() {
					lost++
				}
			}
			line += fmt.Sprintf(" %v: %d", pause, lost)
			if pause <= tc.stands {
				assert.Zero(t, lost, "%v of T = %v, round trip %v", pause, tc.timeout, tc.trip)
			}
		}
		t.Log(line)
	}
}

// They stand still twice in a row. Renewals hurry after the first time.
func TestTwoPauses(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 15 * time.Second} {
		pause := timeout / 4
		for _, between := range []time.Duration{timeout / 10, timeout / 5, timeout * 3 / 10, timeout / 2} {
			for phase := range 60 {
				n := join(Terms{Timeout: timeout}, time.Millisecond, 0)
				n.acquire()
				n.run(3 * timeout)
				n.pause, n.pauseFor = n.now.Add(timeout*time.Duration(phase)/60), pause
				n.run(n.pause.Add(pause + between).Sub(n.now))
				n.pause = n.now
				n.run(4 * timeout)
				assert.Zero(t, n.lost, "T = %v, two pauses of %v, %v between them, phase %d", timeout, pause, between, phase)
			}
		}
	}
}

// After a pause renewals hurry, for as long as they gain something.
func TestRenewalsAfterAPause(t *testing.T) {
	const timeout = 15 * time.Second
	n := join(Terms{Timeout: timeout}, time.Millisecond, 0)
	n.acquire()
	n.run(3 * timeout)
	n.pause, n.pauseFor = n.now, timeout/3
	n.run(timeout / 3)
	n.syncs, n.writes, n.least = 0, 0, timeout
	n.run(timeout)
	t.Logf("%d syncs, %d writes, least left %v", n.syncs, n.writes, n.least)
	assert.LessOrEqual(t, n.syncs, 60)
	assert.LessOrEqual(t, n.writes, 30)
	n.syncs, n.writes = 0, 0
	n.run(timeout)
	assert.LessOrEqual(t, n.writes, 5, "as before")
}

// Servers that refuse are not hammered, and asked again soon enough.
func TestRefusedRenewals(t *testing.T) {
	const timeout = 4 * time.Second
	for _, refuse := range []Step{Sync, Write, Sync | Write} {
		n := join(Terms{Timeout: timeout}, time.Millisecond, 0)
		n.acquire()
		n.run(3 * timeout)
		n.syncs, n.writes = 0, 0
		n.refuse = refuse
		n.run(timeout / 4)
		t.Logf("refused %d: %d syncs, %d writes", refuse, n.syncs, n.writes)
		assert.LessOrEqual(t, n.syncs+n.writes, 16)
		if refuse == Write {
			assert.GreaterOrEqual(t, n.writes, 3, "repeated soon")
		} else {
			assert.GreaterOrEqual(t, n.syncs, 4, "repeated soon")
		}
		n.refuse = 0
		n.run(5 * timeout)
		require.Zero(t, n.lost)
	}
	n := join(Terms{Timeout: timeout}, time.Millisecond, 0)
	n.acquire()
	n.run(3 * timeout)
	n.writes = 0
	n.refuse = Write
	n.run(2 * timeout)
	assert.False(t, n.lost.IsZero(), "nothing is proved any more")
	assert.LessOrEqual(t, n.writes, 16)
}

// A client that holds nothing asks just enough for the next hold to take no more
// than the creation of its node.
func TestReadyForAHold(t *testing.T) {
	for _, timeout := range timeouts {
		for phase := range 50 {
			n := join(Terms{Timeout: timeout}, 2*time.Millisecond, 0)
			n.run(10 * timeout)
			n.syncs = 0
			n.run(10 * timeout)
			assert.LessOrEqual(t, n.syncs, 62)
			assert.Zero(t, n.writes)
			n.run(timeout * time.Duration(phase) / 50)
			began := n.now
			n.acquire()
			n.run(timeout)
			assert.Equal(t, began.Add(n.trip), n.granted)
			assert.Zero(t, n.lost)
		}
	}
}

// Two vouchers are a fixed part of a second apart at least, so short timeouts cost
// more syncs.
func TestSyncsWhenReady(t *testing.T) {
	for _, tc := range []struct {
		timeout time.Duration
		trip    float64 // part of the timeout
		syncs   int     // in each timeout
	}{
		{time.Second, 1000, 12},
		{time.Second, 100, 14},
		{1500 * time.Millisecond, 100, 10},
		{2 * time.Second, 300, 6},
		{2 * time.Second, 100, 9},
		{2500 * time.Millisecond, 100, 6},
		{4 * time.Second, 100, 6},
		{40 * time.Second, 100, 6},
		{4 * time.Second, 30, 10},
	} {
		n := join(Terms{Timeout: tc.timeout}, part(tc.timeout, tc.trip), 0)
		n.run(20 * tc.timeout)
		n.syncs = 0
		n.run(20 * tc.timeout)
		assert.InDelta(t, tc.syncs, float64(n.syncs)/20, 0.5, "T = %v, round trips of T/%v", tc.timeout, tc.trip)
	}
}

// A free lock is granted where writes are slow but come, also after idling.
func TestSlowWritesGrantAFreeLock(t *testing.T) {
	for _, timeout := range timeouts {
		for _, slow := range []float64{8, 6, 5, 4, 3.5} {
			n := join(Terms{Timeout: timeout}, time.Millisecond, part(timeout, slow))
			n.run(5 * timeout)
			began := n.now
			n.acquire()
			n.run(10 * timeout)
			require.False(t, n.granted.IsZero(), "T = %v, writes of 1/%v", timeout, slow)
			t.Logf("T = %v, writes of 1/%v of it: granted after %.2f T, lost after %v", timeout, slow,
				float64(n.granted.Sub(began))/float64(timeout), max(0, n.lost.Sub(n.granted)))
			assert.Less(t, n.granted.Sub(began), 2*timeout)
			if slow >= 4.5 && timeout >= 4*time.Second {
				assert.Zero(t, n.lost)
			}
		}
	}
}

// The parents of a lock are made one after another, which renews too. The hold that
// comes of the last creation lasts all the same, whenever it was made.
func TestFreeLockBelowNewParents(t *testing.T) {
	const phases, timeout = 20, 4 * time.Second
	for _, tc := range []struct {
		name   string
		tick   float64   // parts of the timeout; 0 is not stated
		trips  []float64 // parts of the timeout
		writes []float64 // the same; 0 is none
	}{
		{"all slow", 0, []float64{1000, 10, 7}, []float64{0}},
		{"all slow, tick stated", 10, []float64{1000, 10, 5}, []float64{0}},
		{"writes slow", 0, []float64{4000}, []float64{12, 8, 6, 5, 4.5}},
		{"writes slow, tick stated", 10, []float64{4000}, []float64{8, 5, 3.5}},
	} {
		total, latest := 0, time.Duration(0)
		for _, trip := range tc.trips {
			for _, write := range tc.writes {
				for _, parents := range []int{0, 4} {
					for phase := range phases {
						n := join(Terms{Timeout: timeout, Tick: part(timeout, tc.tick)}, part(timeout, trip), part(timeout, write))
						n.run(2 * timeout * time.Duration(phase) / phases)
						for range parents {
							n.send(Confirmation)
							n.run(n.trip + n.write)
						}
						n.acquire()
						n.run(4 * timeout)
						what := fmt.Sprintf("%s: round trips of T/%v, writes of T/%v, %d parents, phase %d", tc.name, trip, write, parents, phase)
						require.False(t, n.granted.IsZero(), what)
						require.Zero(t, n.lost, what)
						total++
						latest = max(latest, n.granted.Sub(n.asked))
					}
				}
			}
		}
		t.Logf("%s: %d holds lasted, the latest granted %.2f T after its creation", tc.name, total, float64(latest)/float64(timeout))
	}
}

func TestUnused(t *testing.T) {
	step, next := (&Lease{}).Renew(at(0), Held)
	assert.Zero(t, step, "no session")
	assert.Zero(t, next)
	for name, l := range map[string]*Lease{"standalone": begun(Terms{Rule: ByServer, Timeout: timeout}), "no locks": begun(Terms{Timeout: timeout})} {
		use := Held
		if name == "no locks" {
			use = Unused
		}
		for i := range 100 {
			l.Replied(pinged(float64(i), float64(i)))
			step, next := l.Renew(at(float64(i)), use)
			assert.Zero(t, step, name)
			assert.Zero(t, next, name)
		}
	}
}

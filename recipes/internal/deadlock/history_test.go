package deadlock

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What has come of suspicions says whether backoff pays.
func TestLearn(t *testing.T) {
	queue := func(names ...string) []string { return names }
	const own, waits, has, other, another = "own", "waits", "has", "other", "another"
	const none, paid, kept = "none", "paid", "kept"
	for name, c := range map[string]struct {
		at, of []string
		own    string
		stale  bool
		want   string
	}{
		"both still there":                      {queue(own, waits), queue(has), own, false, kept},
		"not listed again":                      {queue(own), queue(), own, true, kept},
		"gave it back while it waited":          {queue(own, waits), queue(other), own, false, paid},
		"gave it back while it had the other":   {queue(waits, another), queue(other), another, false, paid},
		"tired of waiting":                      {queue(own), queue(has), own, false, paid},
		"let pass, and has given that back":     {queue(another), queue(has), another, false, none},
		"let pass, and has given back both":     {queue(another), queue(other), another, false, none},
		"gone with both before it was its turn": {queue(own), queue(other), own, false, none},
	} {
		t.Run(name, func(t *testing.T) {
			h := begun(2)
			h.sure.yields = 25 // of 28 up to its most
			s := suspectedCycle{grade: sure, at: 0, own: own, waits: waits, of: 1, has: has}
			h.remember(s, true)
			assert.False(t, h.Suspects(), "other MultiLocks are none")
			h.remember(s, false)
			h.remember(s, false)
			assert.Len(t, h.cycles, 1)
			h.Learn(&View{Queues: []Queue{
				{Listed: true, First: true, Own: c.own, Has: func(name string) bool { return slices.Contains(c.at, name) }},
				{Listed: !c.stale, Has: func(name string) bool { return slices.Contains(c.of, name) }},
			}})
			got := none
			switch {
			case h.sure.most > mostBackoff:
				got = paid
			case h.Suspects():
				got = kept
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// A session that ends takes what was learned with it, and not who was seen.
func TestBeginAgain(t *testing.T) {
	h := begun(1)
	h.SawHolder(0, "a", start)
	h.sure.yielded()
	h.Begin(1, false, start.Add(time.Second))
	assert.Zero(t, h.sure.yields)
	assert.Equal(t, fmt.Sprint([]head{{name: "a", since: start, listed: start}}), fmt.Sprint(h.heads))
	h.Connected(start.Add(time.Minute))
	assert.Equal(t, leastStall, h.stall.time(start.Add(time.Minute)), "a wait through a fault does not count")
}

// A MultiLock that finds all of its queues free remembers nobody, and allocates nothing
// for that.
func TestFreeMultiLockAllocatesNothing(t *testing.T) {
	var h History
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		h = History{}
		h.Begin(3, false, start)
		for i := range 3 {
			h.SawHolder(i, "", start)
		}
	}))
	nobody := func(int) bool { return false }
	assert.Equal(t, firstCheck/2, h.Next(start, nobody, func(time.Duration) time.Duration { return 0 }))
}

// A holder that was there before the first look that counted has been there for
// ever.
func TestHolderThatWasNotSeen(t *testing.T) {
	yield, _ := begun(2).Decide(blocked(0, of("a1", 1, "x"), of("a0", 1, "x")))
	assert.Equal(t, []int{0}, yield)
}

// A MultiLock that goes on in the reverse order knows its holders as before.
func TestHoldersAfterTurningRound(t *testing.T) {
	var h History
	h.Begin(3, false, start)
	h.SawHolder(0, "first", start)
	h.SawHolder(2, "last", start.Add(time.Second))
	h.TurnRound()
	for i, name := range []string{"last", "", "first"} {
		h.SawHolder(i, name, start.Add(time.Minute))
	}
	assert.Equal(t, []time.Time{start.Add(time.Second), {}, start}, []time.Time{h.since(0), h.since(1), h.since(2)})
}

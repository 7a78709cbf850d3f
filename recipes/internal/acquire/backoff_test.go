package acquire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// listed is the queue that a list of these names shows.
func listed(names ...string) (*znode.Snapshot, error) {
	return znode.Parse(wire.NamesOf(names), []znode.Kind{znode.Lock}, true)
}

func TestPatience(t *testing.T) {
	p := newBackoffs(time.Now()).sure
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
	for p.time() < mostPatience/4 {
		p.yielded()
	}
	p.worth()
	assert.True(t, p.paid)
	assert.Equal(t, 2*mostPatience, p.time(), "where it was")
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

func TestPatienceWithAStall(t *testing.T) {
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

// Looks become rare with time, but there is one when the backoff with those ends
// of whom nothing shows.
func TestLookWhenPatienceEnds(t *testing.T) {
	const waited, patience = 2 * time.Second, 2 * time.Second / stallShare
	for name, c := range map[string]struct {
		stood           time.Duration // who has what we wait for
		earliest, least time.Duration // the latest look comes at least then
		most            time.Duration
	}{
		"about to end": {stood: patience / 2, earliest: patience / 2, least: patience / 2, most: patience/2 + patience/stallJitter},
		"over":         {stood: waited, earliest: mostLook / 2, least: mostLook, most: mostLook * 3 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			snap, err := listed("lock-0000000001", "lock-0000000002")
			require.NoError(t, err)
			now := time.Now()
			var latest time.Duration
			for range 1000 {
				k := &contender{queue: new(Queue), phase: queued, path: "/l/lock-0000000002", snapshot: snap}
				a := &Multi{members: []*member{{contender: k, at: 1, headSince: headSince{since: now.Add(-c.stood)}}}}
				a.session = new(session.Session)
				a.backoffs = newBackoffs(now.Add(-waited))
				a.lookIn = mostLook
				next := a.untilLook(now)
				assert.GreaterOrEqual(t, next, c.earliest)
				latest = max(latest, next)
			}
			assert.GreaterOrEqual(t, latest, c.least)
			assert.Less(t, latest, c.most)
		})
	}
}

// What has come of suspicions says whether backoff pays.
func TestPatienceLearns(t *testing.T) {
	queue := func(names ...string) *znode.Snapshot {
		snap, err := listed(names...)
		require.NoError(t, err)
		return snap
	}
	const own, waits, has, other, another = "lock-0000000001", "lock-0000000002", "lock-0000000003", "lock-0000000004", "lock-0000000005"
	const none, paid, kept = 0, 1, 2
	for name, c := range map[string]struct {
		at, of *znode.Snapshot
		own    string
		stale  bool
		want   int
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
			p := &backoff{first: mostPatience / 4, most: mostPatience}
			at := &member{contender: &contender{phase: queued, path: "/l/" + c.own, first: true, snapshot: c.at}, seen: 1}
			of := &member{contender: &contender{phase: queued, path: "/l/ours", snapshot: c.of}, seen: 1}
			g := backoffs{rounds: 1}
			if c.stale {
				of.seen = 0
			}
			s := suspectedCycle{backoff: p, at: at, own: own, waits: waits, of: of, has: has}
			g.remember(s, true)
			assert.Empty(t, g.suspects, "other MultiLocks are none")
			g.remember(s, false)
			g.remember(s, false)
			assert.Len(t, g.suspects, 1)
			g.learn()
			got := none
			switch {
			case p.paid:
				got = paid
			case len(g.suspects) > 0:
				got = kept
			}
			assert.Equal(t, c.want, got)
		})
	}
}

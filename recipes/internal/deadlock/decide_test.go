package deadlock

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/session/nodename"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// begun is the history of a MultiLock that has just begun.
func begun(queues int) *History {
	h := new(History)
	h.Begin(queues, false, start)
	return h
}

// of makes a node of a session, with a tag or without, as those of other libraries are. It is a
// MultiLock's if the tag begins with an M.
func of(name string, session int64, tag string) Node {
	n := Node{Name: name, Known: true, Session: session, Tag: tag}
	switch {
	case tag == "":
		n.Way = nodename.Unknown
	case tag[0] == 'M':
		n.Way = nodename.Joint
	}
	return n
}

// We are first in queue 0, where others wait behind us. In queue 1 another owner has
// the lock that we want.
func blocked(after time.Duration, has Node, behind ...Node) *View {
	listed := func(q Queue, names ...string) Queue {
		q.Listed, q.Has = true, func(name string) bool { return slices.Contains(names, name) }
		return q
	}
	names, ways := []string{"ours0"}, nodename.Ways(0)
	for _, n := range behind {
		names, ways = append(names, n.Name), ways.With(n.Way)
	}
	return &View{Now: start.Add(after), Ours: nodename.Joint, Queues: []Queue{
		listed(Queue{First: true, Own: "ours0", OwnTag: "Mm", Followers: behind, Behind: ways, Made: 1}, names...),
		listed(Queue{Own: "ours1", OwnTag: "Mm", Holders: []Node{has}, Waits: true, Made: 1}, has.Name, "ours1"),
	}}
}

// Threads of another library share a session. One that waits behind us is not the one that has what
// we wait for if its node was there first, or before that one had the lock. A tag tells more.
func TestOwnersOfOneSessionDiffer(t *testing.T) {
	const write, read, lease = "aa__WRIT__0000000001", "aa__READ__0000000001", "aa-lease-0000000001"
	for name, tc := range map[string]struct {
		has   string
		made  int64 // after 2, that of the one that waits
		since string
		tag   string
		want  []int
	}{
		"had it at the first look":         {write, 1, "", "", []int{0}},
		"waits since it had it":            {write, 1, "before", "", []int{0}},
		"waited before it had it":          {write, 1, "after", "", nil},
		"read, and came to the head since": {read, 1, "after", "", []int{0}},
		"a lease, which came there since":  {lease, 1, "after", "", []int{0}},
		"was made later":                   {write, 3, "", "", nil},
		"of one tag, was made later":       {write, 3, "", "x", []int{0}},
		"of one tag, waited before":        {write, 1, "after", "x", []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			has, waits := of(tc.has, 1, tc.tag), of("b0", 1, tc.tag)
			has.Made, waits.Made = tc.made, 2
			asked, h := start.Add(time.Second), begun(2)
			waits.Seen = asked
			if tc.since != "" {
				h.SawHolder(1, "other", start)
			}
			if tc.since == "after" { // it was asked about
				h.SawHolder(1, "other", asked.Add(time.Millisecond))
			}
			h.SawHolder(1, tc.has, asked.Add(2*time.Millisecond))
			got, _ := h.Decide(blocked(time.Second+libraryStall-time.Millisecond, has, waits))
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestDecide(t *testing.T) {
	const soon, later = firstBackoff, besideStall
	unknown := of("b0", 1, "x")
	unknown.Known = false
	for name, c := range map[string]struct {
		after time.Duration
		has   Node
		wait  []Node // behind us
		want  []int
	}{
		"nobody behind us":                       {later, of("a1", 1, "x"), nil, nil},
		"the owner waits behind us":              {soon, of("a1", 1, "x"), []Node{of("a0", 1, "x")}, []int{0}},
		"the owner, sooner than the backoff":     {soon - 1, of("a1", 1, "x"), []Node{of("a0", 1, "x")}, nil},
		"an owner without a tag, of the session": {firstUnsure, of("a1", 1, ""), []Node{of("a0", 1, "")}, []int{0}},
		"without a tag, too soon":                {firstUnsure - 1, of("a1", 1, ""), []Node{of("a0", 1, "")}, nil},
		"two without tags of the session wait":   {firstUnsure, of("a1", 1, ""), []Node{of("b0", 1, ""), of("c0", 1, "")}, []int{0}},
		"of another session":                     {later - 1, of("a1", 1, "x"), []Node{of("b0", 2, "y")}, nil},
		"one owner over two clients":             {soon, of("a1", 1, "x"), []Node{of("a0", 2, "x")}, []int{0}},
		"of another session, and a stall":        {later, of("a1", 1, "x"), []Node{of("b0", 2, "y")}, []int{0}},
		"another tag of the session":             {later - 1, of("a1", 1, "x"), []Node{of("b0", 1, "y")}, nil},
		"the same, and a stall":                  {later, of("a1", 1, "x"), []Node{of("b0", 1, "y")}, []int{0}},
		"one without a tag of the session":       {libraryStall - 1, of("a1", 1, "x"), []Node{of("b0", 1, "")}, nil},
		"a MultiLock with a lesser tag":          {soon, of("a1", 1, "Ma"), []Node{of("a0", 1, "Ma")}, []int{0}},
		"a MultiLock with a greater tag":         {later - 1, of("a1", 1, "Mz"), []Node{of("a0", 1, "Mz")}, nil},
		"nobody knows whose it is":               {later - 1, of("a1", 1, "x"), []Node{unknown}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := begun(2)
			h.SawHolder(1, c.has.Name, start)
			yield, why := h.Decide(blocked(c.after, c.has, c.wait...))
			assert.Equal(t, c.want, yield)
			switch {
			case c.want == nil:
				assert.Equal(t, Time, why)
			case c.after < libraryStall:
				assert.Equal(t, Matched, why)
			default:
				assert.Equal(t, Among, why)
			}
		})
	}
}

// Where only time shows that somebody may wait for us, we yield wherever we are in the way. Then
// that has as much time to be of use.
func TestDecideYieldsInAllQueuesByTime(t *testing.T) {
	h := begun(3)
	decide := func(after time.Duration) []int {
		v := blocked(after, of("a1", 1, "x"), of("b0", 2, "y"))
		v.Queues = []Queue{v.Queues[0], v.Queues[0], v.Queues[1]}
		yield, _ := h.Decide(v)
		return yield
	}
	h.SawHolder(2, "a1", start)
	assert.Equal(t, []int{0, 1}, decide(besideStall))
	assert.Nil(t, decide(2*besideStall-1), "too soon after that")
	assert.Equal(t, []int{0, 1}, decide(2*besideStall))
	assert.Equal(t, []int{0, 1}, decide(time.Hour))
	assert.Nil(t, decide(time.Hour+6*time.Minute), "we have waited for ten times as long")
	assert.Equal(t, []int{0, 1}, decide(time.Hour+7*time.Minute))
}

// A yield has time to be of use. Before it is over, we do not suspect somebody else, either.
func TestDecideWaitsForWhatItYieldedFor(t *testing.T) {
	h := begun(2)
	h.SawHolder(1, "a1", start)
	yield, _ := h.Decide(blocked(besideStall, of("a1", 1, "x"), of("b0", 2, "y"))) // time shows that
	assert.Equal(t, []int{0}, yield)
	for after, want := range map[time.Duration][]int{firstBackoff - 1: nil, firstBackoff: {0}} {
		h := *h
		yield, _ := h.Decide(blocked(besideStall+after, of("a1", 1, "x"), of("a0", 1, "x")))
		assert.Equal(t, want, yield, after)
	}
}

// One that has waited for long is more patient with owners of which only the session shows.
func TestPatienceWithOwnersWithoutATag(t *testing.T) {
	h := begun(2)
	for waited, want := range map[time.Duration]time.Duration{0: firstUnsure, 300 * time.Millisecond: 30 * time.Millisecond, time.Minute: mostUntagged} {
		assert.Equal(t, want, h.patience(unsure, start.Add(waited)), waited)
		assert.Equal(t, firstBackoff, h.patience(sure, start.Add(waited)), waited)
	}
}

// A lease holds nobody up.
func TestLeasesDoNotYield(t *testing.T) {
	v := blocked(time.Hour, of("a1", 1, "x"), of("a0", 1, "x"))
	v.Queues[0].Lease = true
	yield, _ := begun(2).Decide(v)
	assert.Nil(t, yield)
}

// Beside owners that take their locks as we do, we yield where nothing shows only if our
// places are out of order.
func TestOrderOfOurPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		ordered, lease bool
		here, there    int64 // what made our nodes
		first          int   // the queue in which we are first
		want           bool
	}{
		"in order":                              {here: 5, there: 5},
		"we have yielded there":                 {here: 5, there: 7, want: true},
		"we have yielded here":                  {here: 7, there: 5},
		"nobody knows what made our node here":  {there: 5, want: true},
		"nobody knows what made our node there": {here: 5, want: true},
		"we wait for a lease":                   {here: 5, there: 7, lease: true},
		"ordered, and we wait for a later path": {ordered: true, here: 5, there: 7},
		"ordered, and for an earlier one":       {ordered: true, here: 5, there: 5, first: 1, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := begun(2)
			v := blocked(time.Minute, of("a1", 1, "x"), of("b0", 2, "Mz"))
			if tc.ordered {
				v.Ours = nodename.Ordered
			}
			v.Queues[0].Made, v.Queues[0].Behind = tc.here, nodename.Ways(0).With(v.Ours)
			v.Queues[1].Made, v.Queues[1].Lease = tc.there, tc.lease
			if tc.first == 1 {
				slices.Reverse(v.Queues)
			}
			h.SawHolder(1-tc.first, "a1", start)
			var want []int
			if tc.want {
				want = []int{tc.first}
			}
			yield, why := h.Decide(v)
			assert.Equal(t, want, yield)
			assert.Equal(t, Time, why)
		})
	}
}

// Looks become rare with time, but there is one when the backoff with those ends
// of whom nothing shows.
func TestLookWhenPatienceEnds(t *testing.T) {
	const waited, patience = 2 * time.Second, 2 * time.Second / stallShare
	for name, c := range map[string]struct {
		stood          time.Duration // who has what we wait for
		earliest, most time.Duration
	}{
		"about to end": {stood: patience / 2, earliest: patience / 2, most: patience/2 + patience/stallJitter},
		"over":         {stood: waited, earliest: mostCheck / 2, most: mostCheck * 3 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			next := func(draw func(time.Duration) time.Duration) time.Duration {
				now := start.Add(waited)
				h := begun(1)
				h.checkIn = mostCheck
				h.SawHolder(0, "a", now.Add(-c.stood))
				return h.Next(now, func(int) bool { return true }, draw)
			}
			assert.Equal(t, c.earliest, next(func(time.Duration) time.Duration { return 0 }))
			assert.Equal(t, c.most, next(func(d time.Duration) time.Duration { return d }))
		})
	}
}

// The time to the next look follows the owner whose backoff ends next.
func TestNextLook(t *testing.T) {
	least := func(time.Duration) time.Duration { return 0 }
	all := func(int) bool { return true }
	h := begun(1)
	h.SawHolder(0, "a", start)
	assert.Equal(t, firstBackoff, h.Next(start, all, least), "when it is sure")
	assert.Equal(t, firstCheck/2, h.Next(start, func(int) bool { return false }, least), "nobody has anything")
	assert.Equal(t, 2*firstCheck, h.checkIn)
	h.CameFirst()
	assert.Equal(t, firstCheck, h.checkIn)
	for range 20 {
		h.Next(start, func(int) bool { return false }, least)
	}
	assert.Equal(t, mostCheck, h.checkIn)
}

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
	h.Begin(queues, false, false, start)
	return h
}

// of makes a node of a session, with a tag or without. It is a MultiLock's if the tag
// begins with an M.
func of(name string, session int64, tag string) Node {
	n := Node{Name: name, Known: true, Session: session, Tag: tag}
	if tag != "" && tag[0] == 'M' {
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

// Threads of another library share a session, and so do owners that do not pass their contexts on. One
// that waits behind us is not the one that has what we wait for if its node was there first, or
// before that one had the lock.
func TestOwnersOfOneSessionDiffer(t *testing.T) {
	const write, read, lease = "aa__WRIT__0000000001", "aa__READ__0000000001", "aa-lease-0000000001"
	for name, tc := range map[string]struct {
		has   string
		made  int64 // after 2, that of the one that waits
		since string
		way   nodename.Way
		want  []int
	}{
		"had it at the first look":           {write, 1, "", nodename.Unknown, []int{0}},
		"waits since it had it":              {write, 1, "before", nodename.Unknown, []int{0}},
		"waited before it had it":            {write, 1, "after", nodename.Unknown, nil},
		"read, and came to the head since":   {read, 1, "after", nodename.Unknown, []int{0}},
		"a lease, which came there since":    {lease, 1, "after", nodename.Unknown, []int{0}},
		"was made later":                     {write, 3, "", nodename.Unknown, nil},
		"plain, waits since it had it":       {write, 1, "before", nodename.Plain, []int{0}},
		"plain, waited before it had it":     {write, 1, "after", nodename.Plain, nil},
		"plain, was made later":              {write, 3, "", nodename.Plain, nil},
		"a nested MultiLock was made later":  {write, 3, "", nodename.Nesting, []int{0}},
		"a nested MultiLock waited at first": {write, 1, "after", nodename.Nesting, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			has, waits := of(tc.has, 1, ""), of("b0", 1, "")
			has.Way, waits.Way, has.Made, waits.Made = tc.way, tc.way, tc.made, 2
			switch tc.way {
			case nodename.Nesting:
				has.Tag, waits.Tag = "x", "x"
			case nodename.Plain:
				has.Tag, waits.Tag = "x", "y"
			}
			asked, h := start.Add(time.Second), begun(2)
			waits.Seen = asked
			if tc.since != "" {
				h.SawHolder(1, "other", start)
			}
			if tc.since == "after" { // it was asked about
				h.SawHolder(1, "other", asked.Add(time.Millisecond))
			}
			h.SawHolder(1, tc.has, asked.Add(2*time.Millisecond))
			v := blocked(time.Second+libraryStall-time.Millisecond, has, waits)
			got, _ := h.Decide(v)
			assert.Equal(t, tc.want, got)
			_, earlier, some := h.Shown(v)
			assert.Equal(t, tc.want != nil, earlier > 0)
			assert.Equal(t, tc.want != nil, some)
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
		"another tag of the session":             {firstUnsure, of("a1", 1, "x"), []Node{of("b0", 1, "y")}, []int{0}},
		"the same, too soon":                     {firstUnsure - 1, of("a1", 1, "x"), []Node{of("b0", 1, "y")}, nil},
		"two of the session wait":                {later - 1, of("a1", 1, "x"), []Node{of("b0", 1, "y"), of("c0", 1, "z")}, nil},
		"one of the session, and MultiLocks":     {firstUnsure, of("a1", 1, "x"), []Node{of("b0", 1, "y"), of("c0", 1, "My"), of("d0", 1, "Mz")}, []int{0}},
		"another tag, but a MultiLock":           {later - 1, of("a1", 1, "x"), []Node{of("b0", 1, "My")}, nil},
		"a MultiLock with a lesser tag":          {soon, of("a1", 1, "Ma"), []Node{of("a0", 1, "Ma")}, []int{0}},
		"a MultiLock with a greater tag":         {later - 1, of("a1", 1, "Mz"), []Node{of("a0", 1, "Mz")}, nil},
		"nobody knows whose it is":               {later - 1, of("a1", 1, "x"), []Node{unknown}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := begun(2)
			h.SawHolder(1, c.has.Name, start)
			yield, why := h.Decide(blocked(c.after, c.has, c.wait...))
			assert.Equal(t, c.want, yield)
			assert.Equal(t, c.want != nil && c.after < later, why >= Matched)
		})
	}
}

// An owner that waits for us here, and has a later lock, takes the locks in the reverse of our
// order. A MultiLock that waits here gives way, and says nothing of an order.
func TestDecideSeesTheOrderOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		waits    Node
		reversed bool // we have the later queue, and it has the earlier one
		want     Reason
	}{
		"has the later one":            {of("a0", 1, "x"), false, Against},
		"perhaps has the later one":    {of("b0", 1, "y"), false, Against},
		"has the earlier one":          {of("a0", 1, "x"), true, Matched},
		"perhaps has the earlier one":  {of("b0", 1, "y"), true, Matched},
		"a MultiLock, with that tag":   {func() Node { n := of("a0", 1, "x"); n.Way = nodename.Joint; return n }(), false, Matched},
		"of a session, without a tag":  {of("b0", 1, ""), false, Matched},
		"of another session, in stall": {of("b0", 2, "y"), false, Beside},
	} {
		t.Run(name, func(t *testing.T) {
			h := begun(2)
			v := blocked(besideStall, of("a1", 1, "x"), tc.waits)
			v.Queues[0].OwnTag = "z" // younger than either
			holds := 1
			if tc.reversed {
				slices.Reverse(v.Queues)
				holds = 0
			}
			h.SawHolder(holds, "a1", start)
			yield, why := h.Decide(v)
			assert.Equal(t, []int{1 - holds}, yield)
			assert.Equal(t, tc.want, why)
			later, earlier, _ := h.Shown(v)
			shown := tc.want != Beside && !tc.waits.Way.Yields()
			assert.Equal(t, [2]bool{shown && tc.reversed, shown && !tc.reversed}, [2]bool{later > 0, earlier > 0})
		})
	}
}

// A look shows an owner once. Several nodes of one session that wait are of several owners, of which
// none may be the one that has what we wait for.
func TestALookShowsAnOwnerOnce(t *testing.T) {
	h := begun(2)
	crowd := func(waiting ...Node) *View { return blocked(time.Second, of("a1", 1, "x"), waiting...) }
	counts := func(v *View) [2]int {
		later, earlier, some := h.Shown(v)
		assert.True(t, some)
		return [2]int{later, earlier}
	}
	one, another := of("a0", 1, "y"), of("b0", 1, "z")
	assert.Equal(t, [2]int{}, counts(crowd(one, another)), "two of a session")
	assert.Equal(t, [2]int{0, 1}, counts(crowd(one)))
	assert.Equal(t, [2]int{}, counts(crowd(one)), "the same again")
	assert.Equal(t, [2]int{}, counts(crowd(one, another)), "beside another one")
	assert.Equal(t, [2]int{0, 1}, counts(crowd(another)))
}

// In a slow crowd MultiLocks wait for each other for long. Only an owner that takes its locks in another way,
// and has had for as long what we wait for, may hide another lock.
func TestOnlyAStrangerMayHideALock(t *testing.T) {
	for name, tc := range map[string]struct {
		way  nodename.Way
		late bool // a plain owner has something else that we wait for since shortly
		want Reason
	}{
		"one of our way":                   {nodename.Joint, false, Among},
		"one of our way, and a late other": {nodename.Joint, true, Among},
		"a plain one":                      {nodename.Plain, false, Beside},
		"an Ordered one":                   {nodename.Ordered, false, Beside},
	} {
		t.Run(name, func(t *testing.T) {
			has := of("a1", 1, "x")
			has.Way = tc.way
			v := blocked(besideStall, has, of("b0", 2, "y"))
			h := begun(3)
			h.SawHolder(1, "a1", start)
			if tc.late {
				v.Queues = append(v.Queues, Queue{Holders: []Node{of("c2", 3, "z")}, Waits: true, Made: 1})
				h.SawHolder(2, "c2", start.Add(1))
			}
			yield, why := h.Decide(v)
			assert.Equal(t, []int{0}, yield)
			assert.Equal(t, tc.want, why)
		})
	}
}

// Where only time shows that somebody may wait for us, we yield in all queues a few times. Then
// we yield in one at a time, and begin with the one that was of use the last time.
func TestDecideYieldsInOneQueueAtATime(t *testing.T) {
	const between = besideStall
	h := begun(3)
	decide := func(after time.Duration) []int {
		v := blocked(after, of("a1", 1, "x"), of("b0", 2, "y"))
		v.Queues = []Queue{v.Queues[0], v.Queues[0], v.Queues[1]}
		yield, _ := h.Decide(v)
		return yield
	}
	h.SawHolder(2, "a1", start)
	for n := range mostAtOnce {
		assert.Equal(t, []int{0, 1}, decide(time.Duration(n+1)*between))
	}
	const then = mostAtOnce * between
	assert.Equal(t, []int{0}, decide(then+between))
	assert.Nil(t, decide(then+2*between-1), "too soon after that")
	assert.Equal(t, []int{1}, decide(then+2*between))
	h.SawHolder(2, "b1", start.Add(then+2*between+1)) // that was of use
	assert.Equal(t, []int{1}, decide(then+3*between+1))
	assert.Equal(t, []int{0}, decide(then+4*between+1))
}

// The queue in which to begin is the same one when the queues come in reverse.
func TestQueueOfUseTurnsRound(t *testing.T) {
	h := begun(3)
	h.TurnRound()
	assert.Zero(t, h.stall.at, "we have yielded in none yet")
	h.stall.at, h.stall.yielded = 0, start
	h.TurnRound()
	assert.Equal(t, 2, h.stall.at)
	h.TurnRound()
	assert.Zero(t, h.stall.at)
}

// A yield has time to be of use. Before it is over, we do not suspect somebody else, either.
func TestDecideWaitsForWhatItYieldedFor(t *testing.T) {
	h := begun(2)
	h.SawHolder(1, "a1", start)
	yield, _ := h.Decide(blocked(besideStall, of("a1", 1, "x"), of("b0", 2, "y"))) // time shows that
	assert.Equal(t, []int{0}, yield)
	for after, want := range map[time.Duration][]int{firstUnsure - 1: nil, firstUnsure: {0}} {
		h := *h
		yield, _ := h.Decide(blocked(besideStall+after, of("a1", 1, "x"), of("c0", 1, "z")))
		assert.Equal(t, want, yield, after)
	}
}

// Where owners say what they have, one of a session is suspected as late as any other.
func TestPatienceWhereOwnersSayWhatTheyHave(t *testing.T) {
	h := begun(2)
	waits := of("a", 1, "x")
	v := &View{Now: start.Add(time.Second), Told: true}
	assert.Equal(t, 100*time.Millisecond, h.patience(unsure, &waits, v))
	assert.Equal(t, firstBackoff, h.patience(sure, &waits, v))
	v.Now = start.Add(time.Hour)
	assert.Equal(t, mostPatience, h.patience(unsure, &waits, v))
}

// Where owners say what they have, MultiLocks of a session count as a crowd of it.
func TestWhereOwnersSayWhatTheyHave(t *testing.T) {
	for told, want := range map[bool][]int{false: {0}, true: nil} {
		v := blocked(firstUnsure, of("a1", 1, "x"), of("b0", 1, "y"), of("c0", 1, "My"))
		v.Told = told
		h := begun(2)
		h.SawHolder(1, "a1", start)
		yield, _ := h.Decide(v)
		assert.Equal(t, want, yield, "told %v", told)
	}
}

// One that has waited for long is more patient with owners of which only the session shows.
func TestPatienceWithOwnersWithoutATag(t *testing.T) {
	h := begun(2)
	for waited, want := range map[time.Duration]time.Duration{0: firstUnsure, 300 * time.Millisecond: 30 * time.Millisecond, time.Minute: mostUntagged} {
		theirs, ours := of("a", 1, ""), of("a", 1, "x")
		assert.Equal(t, want, h.patience(unsure, &theirs, &View{Now: start.Add(waited)}), waited)
		assert.Equal(t, firstUnsure, h.patience(unsure, &ours, &View{Now: start.Add(waited)}), waited)
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

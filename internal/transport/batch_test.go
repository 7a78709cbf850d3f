package transport

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

func creationIn(parent string, size int) *Joint {
	return &Joint{
		Write:  NewCall(wire.OpCreate2, &wire.CreateRequest{Path: parent + "/n", Data: make([]byte, size)}),
		List:   NewCall(wire.OpGetChildren, &wire.PathWatchRequest{Path: parent}),
		Parent: parent,
	}
}

func deletionIn(parent string) *Joint {
	return &Joint{Write: NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: parent + "/n", Version: -1}), Parent: parent}
}

func TestPick(t *testing.T) {
	many := func(n int, of func(i int) *Joint) (all []*Joint) {
		for i := range n {
			all = append(all, of(i))
		}
		return all
	}
	path := func(i int) string { return fmt.Sprint("/", i) }
	for name, tc := range map[string]struct {
		waiting []*Joint
		picked  []int // places, in order; nil for all of them
		most    int   // how many are picked, if not all and not by place
	}{
		"nothing":                  {nil, nil, 0},
		"different locks":          {many(5, func(i int) *Joint { return creationIn(path(i), 0) }), nil, 0},
		"one creation of each":     {many(6, func(i int) *Joint { return creationIn(path(i/2), 0) }), []int{0, 2, 4}, 0},
		"deletions of one lock":    {many(4, func(int) *Joint { return deletionIn("/l") }), nil, 0},
		"a deletion of the same":   {[]*Joint{creationIn("/l", 0), deletionIn("/l"), creationIn("/l", 0)}, []int{0, 1}, 0},
		"deletions first":          {append(many(mostJoint, func(i int) *Joint { return deletionIn(path(i)) }), creationIn("/l", 0)), nil, mostJoint},
		"creations up to a bound":  {many(mostJoint+9, func(i int) *Joint { return creationIn(path(i), 0) }), nil, mostJoint},
		"deletions up to a bound":  {many(mostJoint+9, func(i int) *Joint { return deletionIn(path(i)) }), nil, mostJoint},
		"bytes up to about a size": {many(40, func(i int) *Joint { return creationIn(path(i), 8<<10) }), nil, 7},
	} {
		t.Run(name, func(t *testing.T) {
			picked, rest := pick(tc.waiting, mostBytes)
			assert.Len(t, rest, len(tc.waiting)-len(picked), "none is lost")
			switch {
			case tc.picked != nil:
				var want []*Joint
				for _, i := range tc.picked {
					want = append(want, tc.waiting[i])
				}
				assert.Equal(t, want, picked)
			case tc.most > 0:
				assert.Equal(t, tc.waiting[:tc.most], picked)
				assert.Equal(t, tc.waiting[tc.most:], rest)
			default:
				assert.Equal(t, tc.waiting, picked)
			}
		})
	}
}

// No request of a write is larger than the servers allow, and one that is so with its parent
// leaves without it.
func TestPickKeepsToMaxRequest(t *testing.T) {
	for _, size := range []int{0, 10, 500, 3000} {
		for _, makes := range []bool{false, true} {
			for _, deletes := range []bool{false, true} {
				const most = 4 << 10
				var waiting []*Joint
				for i := range 60 {
					path := fmt.Sprint("/", strings.Repeat("x", 400), i)
					j := deletionIn(path)
					if !deletes {
						j = creationIn(path, size)
						j.Make = wire.MultiOp{Op: wire.OpCreateContainer, Request: &wire.CreateRequest{Path: path, Data: make([]byte, size)}}
						j.makes = makes
					}
					waiting = append(waiting, j)
				}
				for writes, rest := 0, waiting; len(rest) > 0; writes++ {
					var picked []*Joint
					picked, rest = pick(rest, most-multiSize)
					require.NotEmpty(t, picked)
					f := &flush{conn: &Conn{transport: new(Transport)}}
					for _, j := range picked {
						switch {
						case deletes:
							f.deletions = append(f.deletions, j)
						case j.alone:
							f.alone = append(f.alone, j)
						default:
							f.creations = append(f.creations, j)
						}
					}
					for _, call := range f.calls() {
						assert.LessOrEqual(t, call.Size(), most, "%d bytes, parents %v", size, makes)
					}
					require.Less(t, writes, 60)
				}
			}
		}
	}
}

func TestReadyToLeave(t *testing.T) {
	now := time.Now()
	one := []*Joint{deletionIn("/l")}
	for name, tc := range map[string]struct {
		b     batches
		ok    bool
		after time.Duration
	}{
		"nothing waits":                   {batches{}, false, 0},
		"nothing on its way":              {batches{waiting: one, since: now}, true, 0},
		"little on its way":               {batches{waiting: one, since: now, flights: nearFlights - 1}, true, 0},
		"enough on its way":               {batches{waiting: one, since: now.Add(-time.Hour), flights: nearFlights}, false, 0},
		"was undone":                      {batches{waiting: one, since: now, flights: 100, urgent: true}, true, 0},
		"far away, little on its way":     {batches{waiting: one, since: now, flights: nearFlights + 39, trip: 40 * farFlight}, true, 0},
		"far away, enough on its way":     {batches{waiting: one, since: now, flights: nearFlights + 40, trip: 40 * farFlight}, false, longestWait},
		"far away, has waited for a time": {batches{waiting: one, since: now.Add(-longestWait / 4), flights: nearFlights + 40, trip: 40 * farFlight}, false, longestWait * 3 / 4},
		"far away, has waited for long":   {batches{waiting: one, since: now.Add(-longestWait), flights: nearFlights + 49, trip: 40 * farFlight}, true, 0},
		"far away, too much on its way":   {batches{waiting: one, since: now.Add(-longestWait), flights: nearFlights + 50, trip: 40 * farFlight}, false, 0},
	} {
		ok, after := tc.b.ready(now)
		assert.Equal(t, tc.ok, ok, name)
		assert.Equal(t, tc.after, after, name)
	}
}

func TestWithoutGone(t *testing.T) {
	all := []*Joint{deletionIn("/a"), creationIn("/b", 0), creationIn("/c", 0), deletionIn("/d")}
	left, gone := withoutGone(all)
	assert.Equal(t, all, left)
	assert.Empty(t, gone)
	all[0].Write.phase, all[2].List.phase = ended, ended
	left, gone = withoutGone(all)
	assert.Equal(t, []*Joint{all[1], all[3]}, left)
	assert.Equal(t, []*Joint{all[0], all[2]}, gone)
}

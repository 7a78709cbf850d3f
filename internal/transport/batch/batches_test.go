package batch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

func creationIn(parent string, size int) *joint {
	return &joint{
		write:  transport.NewCall(wire.OpCreate2, &wire.CreateRequest{Path: parent + "/n", Data: make([]byte, size)}),
		list:   transport.NewCall(wire.OpGetChildren, &wire.PathWatchRequest{Path: parent}),
		parent: parent,
	}
}

func deletionIn(parent string) *joint {
	return &joint{write: transport.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: parent + "/n", Version: -1}), parent: parent}
}

func TestPick(t *testing.T) {
	many := func(n int, of func(i int) *joint) (all []*joint) {
		for i := range n {
			all = append(all, of(i))
		}
		return all
	}
	path := func(i int) string { return fmt.Sprint("/", i) }
	for name, tc := range map[string]struct {
		waiting []*joint
		picked  []int // places, in order; nil for all of them
		most    int   // how many are picked, if not all and not by place
	}{
		"nothing":                  {nil, nil, 0},
		"different locks":          {many(5, func(i int) *joint { return creationIn(path(i), 0) }), nil, 0},
		"one creation of each":     {many(6, func(i int) *joint { return creationIn(path(i/2), 0) }), []int{0, 2, 4}, 0},
		"deletions of one lock":    {many(4, func(int) *joint { return deletionIn("/l") }), nil, 0},
		"a deletion of the same":   {[]*joint{creationIn("/l", 0), deletionIn("/l"), creationIn("/l", 0)}, []int{0, 1}, 0},
		"deletions first":          {append(many(mostJoint, func(i int) *joint { return deletionIn(path(i)) }), creationIn("/l", 0)), nil, mostJoint},
		"creations up to a bound":  {many(mostJoint+9, func(i int) *joint { return creationIn(path(i), 0) }), nil, mostJoint},
		"deletions up to a bound":  {many(mostJoint+9, func(i int) *joint { return deletionIn(path(i)) }), nil, mostJoint},
		"bytes up to about a size": {many(40, func(i int) *joint { return creationIn(path(i), 8<<10) }), nil, 7},
	} {
		t.Run(name, func(t *testing.T) {
			picked, rest := pick(tc.waiting, mostBytes)
			assert.Len(t, rest, len(tc.waiting)-len(picked), "none is lost")
			switch {
			case tc.picked != nil:
				var want []*joint
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
				var waiting []*joint
				for i := range 60 {
					path := fmt.Sprint("/", strings.Repeat("x", 400), i)
					j := deletionIn(path)
					if !deletes {
						j = creationIn(path, size)
						j.make = wire.MultiOp{Op: wire.OpCreateContainer, Request: &wire.CreateRequest{Path: path, Data: make([]byte, size)}}
						j.makes = makes
					}
					waiting = append(waiting, j)
				}
				for writes, rest := 0, waiting; len(rest) > 0; writes++ {
					var picked []*joint
					picked, rest = pick(rest, most-multiSize)
					require.NotEmpty(t, picked)
					f := &flush{batches: newBatches(new(fakeConn))}
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
	one := []*joint{deletionIn("/l")}
	for name, tc := range map[string]struct {
		b     *Batches
		ok    bool
		after time.Duration
	}{
		"nothing waits":                   {&Batches{}, false, 0},
		"nothing on its way":              {&Batches{waiting: one, since: now}, true, 0},
		"little on its way":               {&Batches{waiting: one, since: now, flights: nearFlights - 1}, true, 0},
		"enough on its way":               {&Batches{waiting: one, since: now.Add(-time.Hour), flights: nearFlights}, false, 0},
		"was undone":                      {&Batches{waiting: one, since: now, flights: 100, urgent: true}, true, 0},
		"far away, little on its way":     {&Batches{waiting: one, since: now, flights: nearFlights + 39, trip: 40 * farFlight}, true, 0},
		"far away, enough on its way":     {&Batches{waiting: one, since: now, flights: nearFlights + 40, trip: 40 * farFlight}, false, longestWait},
		"far away, has waited for a time": {&Batches{waiting: one, since: now.Add(-longestWait / 4), flights: nearFlights + 40, trip: 40 * farFlight}, false, longestWait * 3 / 4},
		"far away, has waited for long":   {&Batches{waiting: one, since: now.Add(-longestWait), flights: nearFlights + 49, trip: 40 * farFlight}, true, 0},
		"far away, too much on its way":   {&Batches{waiting: one, since: now.Add(-longestWait), flights: nearFlights + 50, trip: 40 * farFlight}, false, 0},
	} {
		ok, after := tc.b.ready(now)
		assert.Equal(t, tc.ok, ok, name)
		assert.Equal(t, tc.after, after, name)
	}
}

// fakeConn is a connection that keeps what is sent.
type fakeConn struct {
	sent  []*transport.Call
	woken int
	err   error // of Send
}

func (c *fakeConn) Send(calls ...*transport.Call) error {
	if c.err == nil {
		c.sent = append(c.sent, calls...)
	}
	return c.err
}

func (c *fakeConn) Wake()                         { c.woken++ }
func (c *fakeConn) Limit(_ wire.Op, most int) int { return most }
func (c *fakeConn) Doubts(wire.Op) bool           { return false }

// take returns what was sent since the last time, and its operations.
func (c *fakeConn) take() (sent []*transport.Call, ops []wire.Op) {
	sent, c.sent = c.sent, nil
	for _, call := range sent {
		ops = append(ops, call.Op())
	}
	return sent, ops
}

func newBatches(c Conn) *Batches { return &Batches{conn: c, counts: new(Counts)} }

// joined are creations that wait behind other joint requests.
func joined(t *testing.T, b *Batches, n int) (all []*joint) {
	t.Helper()
	b.flights = nearFlights
	for i := range n {
		all = append(all, creationIn(fmt.Sprint("/", i), 0))
		b.parents.add(all[i].parent)
		require.NoError(t, b.join(all[i]))
	}
	require.Zero(t, b.Fill(), "until others are answered")
	return all
}

// isOver is whether both calls of a request have ended without having been sent.
func isOver(t *testing.T, j *joint) bool {
	t.Helper()
	for _, call := range j.calls() {
		select {
		case <-call.Done():
		default:
			return false
		}
		var lost *transport.LostError
		require.ErrorAs(t, call.Err(), &lost)
		assert.False(t, lost.Sent)
	}
	return true
}

// What waits leaves when another write was answered, without what was taken back meanwhile.
func TestBatches_Cancel(t *testing.T) {
	c := new(fakeConn)
	b := newBatches(c)
	all := joined(t, b, 5)
	assert.Equal(t, 1, c.woken, "by the first of them")
	assert.True(t, b.Cancel(all[1].write))
	assert.True(t, isOver(t, all[1]))
	assert.False(t, b.Cancel(all[1].list), "it has ended with the other one")
	b.Landed(transport.NewCall(wire.OpSync, wire.Empty{}), true)
	assert.Equal(t, 2, c.woken)
	require.Zero(t, b.Fill())
	sent, ops := c.take()
	assert.Equal(t, []wire.Op{wire.OpMulti, wire.OpMultiRead}, ops)
	var req wire.MultiRequest
	req.Decode(wire.NewDecoder(sent[0].Frame()[headerSize:]))
	assert.Len(t, req.Ops, 4)
	assert.False(t, b.Cancel(all[0].write), "it was sent")
	assert.Equal(t, nearFlights, b.flights)
}

// A request that leaves alone shows whether its parent exists, and how long answers take.
func TestBatches_Alone(t *testing.T) {
	b := newBatches(new(fakeConn))
	j := creationIn("/l", 0)
	require.True(t, b.alone(j.list))
	require.False(t, b.alone(creationIn("/m", 0).list), "one is under way")
	j.list.EndAs(transport.NewCall(wire.OpGetChildren, wire.Empty{}), wire.CodeOK, nil)
	assert.True(t, b.parents.has("/l"))
	assert.True(t, b.alone(creationIn("/l", 0).list))
}

// What waits ends with its connection, also if that has ended before it could be sent.
func TestBatches_End(t *testing.T) {
	c := &fakeConn{err: &transport.LostError{Cause: errors.New("test")}}
	b := newBatches(c)
	all := joined(t, b, 5)
	b.flights = 0
	require.Zero(t, b.Fill())
	assert.False(t, isOver(t, all[0]), "not before the calls that were sent")
	b.End(errors.New("test"))
	for _, j := range all {
		assert.True(t, isOver(t, j))
	}
	var lost *transport.LostError
	require.ErrorAs(t, b.join(deletionIn("/l")), &lost)
	assert.False(t, lost.Sent)
}

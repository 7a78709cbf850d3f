package deadlock

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// A client takes owners of another library to go in the other order than its MultiLocks, once
// three suspicions more have lasted than have passed. It can change its mind again.
func TestOrderOfOtherLibraries(t *testing.T) {
	const ordered, backward, joint = nodename.Ordered, nodename.Backward, nodename.Joint
	type event struct {
		way   nodename.Way
		lasts bool
		times int
	}
	for name, tc := range map[string]struct {
		seen []event
		want bool
	}{
		"nothing":                       {nil, false},
		"two last":                      {[]event{{ordered, true, 2}}, false},
		"three last":                    {[]event{{ordered, true, 3}}, true},
		"one passes between":            {[]event{{ordered, true, 2}, {ordered, false, 1}, {ordered, true, 1}}, false},
		"many passed before":            {[]event{{ordered, false, 9}, {ordered, true, 3}}, true},
		"of one in no order":            {[]event{{joint, true, 3}}, false},
		"of one in the other order":     {[]event{{backward, true, 3}}, false},
		"in the other order, pass":      {[]event{{ordered, true, 3}, {backward, false, 3}}, true},
		"in the other order, last":      {[]event{{ordered, true, 3}, {backward, true, 3}}, false},
		"of one that has not turned":    {[]event{{ordered, true, 6}}, true},
		"after it has turned, two last": {[]event{{ordered, true, 3}, {backward, true, 2}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			order := new(Order)
			for _, e := range tc.seen {
				for range e.times {
					one, other := of("b0", 1, ""), of("a1", 1, "")
					one.Way, other.Way = nodename.Unknown, nodename.Unknown
					h := begun(2)
					h.SawHolder(1, other.Name, start)
					v := blocked(besideStall, other, one)
					v.Ours, v.Libraries = e.way, order
					if e.lasts {
						h.Decide(v)
						continue
					}
					v.Now = start
					h.Decide(v)
					v.Queues[1].Has = func(string) bool { return false }
					h.Learn(v)
				}
			}
			assert.Equal(t, tc.want, order.Reverse())
		})
	}
}

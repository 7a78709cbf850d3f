package deadlock

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A client takes owners of another library to go in the other order than its MultiLocks, once these
// have yielded four times, unless what they wait for comes by itself. It can change its mind again. It
// hears of clients that have learned the reverse order, unless something speaks for its own.
func TestOrderOfOtherLibraries(t *testing.T) {
	type event struct {
		what    string
		reverse bool
		times   int
	}
	yields := func(reverse bool, times int) event { return event{"yields", reverse, times} }
	comes := func(reverse bool, times int) event { return event{"comes", reverse, times} }
	far := func(times int) event { return event{"far", false, times} }
	said := func(times int) event { return event{"said", false, times} }
	hears, jam := event{"hears", true, 1}, event{"jam", false, 9}
	for name, tc := range map[string]struct {
		seen []event
		want bool
	}{
		"nothing":      {nil, false},
		"three yields": {[]event{yields(false, 3)}, false},
		"four yields":  {[]event{yields(false, 4)}, true},
		"of one jam":   {[]event{jam}, false},
		"of a jam where the servers are far away": {[]event{far(6)}, false},
		"of four jams there":                      {[]event{far(7)}, true},
		"much comes before":                       {[]event{comes(false, 99), yields(false, 6)}, false},
		"much comes before, and little later":     {[]event{comes(false, 99), yields(false, 7)}, true},
		"a bit comes between":                     {[]event{yields(false, 3), comes(false, weight-1), yields(false, 1)}, true},
		"enough comes between":                    {[]event{yields(false, 3), comes(false, weight), yields(false, 1)}, false},
		"of those in the other order":             {[]event{yields(true, 4)}, false},
		"to those in the other order":             {[]event{yields(false, 3), comes(true, 99), yields(false, 1)}, true},
		"in the other order, all comes":           {[]event{yields(false, 4), comes(true, 99)}, true},
		"in the other order, four yields":         {[]event{yields(false, 4), yields(true, 4)}, true},
		"in the other order, five yields":         {[]event{yields(false, 4), yields(true, 5)}, false},
		"of some that have not turned":            {[]event{yields(false, 9)}, true},
		"six yields beside those that say":        {[]event{said(6)}, false},
		"seven yields beside those that say":      {[]event{said(7)}, true},
		"hears of another":                        {[]event{hears}, true},
		"hears of it when it knows":               {[]event{hears, yields(true, 4), hears}, false},
		"hears of it when it has come back":       {[]event{hears, yields(true, 5), comes(false, 1), yields(false, 3), hears}, false},
		"learns it once more":                     {[]event{hears, yields(true, 5), yields(false, 9), hears}, true},
		"hears of it when all comes":              {[]event{comes(false, weight), hears}, false},
		"hears of it when nothing comes":          {[]event{comes(false, weight), yields(false, 1), hears}, true},
	} {
		t.Run(name, func(t *testing.T) {
			order, now := new(Order), start
			for _, e := range tc.seen {
				for range e.times {
					switch e.what {
					case "yields", "said":
						now = now.Add(oneJam)
						order.Yielded(e.reverse, e.what == "said", oneJam/jamTrips, now)
					case "jam":
						order.Yielded(e.reverse, false, 0, now)
					case "far": // each second one
						now = now.Add(oneJam)
						order.Yielded(e.reverse, false, 2*oneJam/jamTrips, now)
					case "comes":
						order.Came(e.reverse)
					case "hears":
						order.Hear()
					}
				}
			}
			assert.Equal(t, tc.want, order.Reverse())
		})
	}
}

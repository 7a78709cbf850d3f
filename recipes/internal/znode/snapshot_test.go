package znode

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// parse is the queue that a list of these names shows.
func parse(names []string, kinds ...Kind) (*Snapshot, error) {
	return Parse(wire.NamesOf(names), kinds, true)
}

// FuzzParse reads any children as a queue. Each entry has a name that a server
// gives, entries are in the order of their numbers, and all clients see one order.
func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add("_c_0-lock-0000000001\n_c_1-lock-0000000000\nx")
	f.Add("lock-0000000007\nlock-0000000007")
	f.Add("lock--2147483648\nlock-2147483647")
	f.Add("lock-2147418112\n_c_x-lock-00000000000")
	f.Add("a__WRIT__0000000003\na__READ__0000000003\nb__READ__0000000004")
	f.Add("lease-0000000001\nlease-x\nlock-0000000001")
	queues := [][]Kind{{Lock}, {Read, Write}, {Lease}, {Latch}}
	f.Fuzz(func(t *testing.T, text string) {
		children := strings.Split(text, "\n")
		for _, kinds := range queues {
			snap, err := parse(children, kinds...)
			if err != nil {
				require.ErrorIs(t, err, ErrSequenceExhausted)
				assert.Nil(t, snap)
				continue
			}
			if f := snap.other.name; f != "" {
				assert.Contains(t, children, f)
				assert.Negative(t, snap.Find(f))
			}
			queue := snap.Entries(0, snap.Len())
			slices.Reverse(children)
			again, err := parse(children, kinds...)
			require.NoError(t, err)
			assert.Equal(t, queue, again.Entries(0, again.Len()), "whatever the order of the list")
			again.Free()
			last := int32(math.MinInt32)
			for i, c := range queue {
				assert.Contains(t, children, c.Name)
				assert.Contains(t, kinds, c.Kind)
				assert.GreaterOrEqual(t, snap.Seq(i), max(0, last))
				assert.Less(t, snap.Seq(i), int32(seqLimit))
				last = snap.Seq(i)
				require.True(t, strings.HasSuffix(c.Name[:len(c.Name)-10], string(c.Kind)), "%q", c.Name)
				assert.Equal(t, c.Name, queue[snap.Find(c.Name)].Name)
				if ahead, waits := Exclusive(snap, i); waits {
					assert.Equal(t, i-1, ahead)
				} else {
					assert.Zero(t, i)
				}
				if ahead, waits := Readers(snap, i); waits {
					assert.Equal(t, Write, snap.Kind(ahead))
					assert.Less(t, ahead, i)
				}
			}
			assert.Negative(t, snap.Find("x-lock-"))
			snap.Free()
		}
	})
}

func TestOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		names        []string
		owner        string // Other
		first        string
		aheadOf      []bool // of each of ours
		notOwnFolder bool
	}{
		"none":                {[]string{"a-latch-0000000001", "x", "config"}, "", "", []bool{false}, false},
		"before all":          {[]string{"a-latch-0000000003", "b-lock-0000000001"}, "b-lock-0000000001", "b-lock-0000000001", []bool{true}, false},
		"between":             {[]string{"a-latch-0000000001", "b__READ__0000000002", "a-latch-0000000003"}, "", "b__READ__0000000002", []bool{false, true}, false},
		"behind":              {[]string{"a-latch-0000000001", "b__lock__0000000002"}, "", "b__lock__0000000002", []bool{false}, false},
		"alone":               {[]string{"b__rlock__0000000002", "c__WRIT__0000000001"}, "c__WRIT__0000000001", "c__WRIT__0000000001", nil, false},
		"a semaphore":         {[]string{"a-latch-0000000001", "locks", "leases"}, "leases", "leases", []bool{true}, false},
		"below a semaphore":   {[]string{"a-latch-0000000001", "locks", "leases"}, "", "", []bool{false}, true},
		"a folder named like": {[]string{"a-latch-0000000001", "locks"}, "", "", []bool{false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			snap, err := Parse(wire.NamesOf(tc.names), []Kind{Latch}, !tc.notOwnFolder)
			require.NoError(t, err)
			assert.Equal(t, tc.owner, snap.Other())
			assert.Equal(t, tc.first, snap.FirstOther())
			require.Equal(t, len(tc.aheadOf), snap.Len())
			for i, want := range tc.aheadOf {
				assert.Equal(t, want, snap.OtherAhead(i), i)
			}
		})
	}
}

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

func TestFirst(t *testing.T) {
	for _, tc := range []struct {
		names []string
		first string
		err   error
	}{
		{nil, "", nil},
		{[]string{"x", "lock-0000000001", "_c_x-latch-000000001"}, "", nil},
		{[]string{"b-latch-0000000012", "c-latch-0000000003", "a-latch-0000000004"}, "c-latch-0000000003", nil},
		{[]string{"a-latch-0000000004", "a-latch--2147483648"}, "", ErrSequenceExhausted},
	} {
		first, err := First(tc.names, Latch)
		require.ErrorIs(t, err, tc.err)
		assert.Equal(t, tc.first, first)
	}
}

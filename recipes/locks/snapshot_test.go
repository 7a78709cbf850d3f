package locks

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// lineOf is the queue that a list of these names shows.
func lineOf(names []string, marks ...string) (*snapshot, error) {
	return readSnapshot(wire.NamesOf(names), marks, true)
}

// FuzzReadSnapshot reads any children as a queue. What is in it has a name that a
// server gives, in the order of its numbers, and everybody sees one order.
func FuzzReadSnapshot(f *testing.F) {
	f.Add("")
	f.Add("_c_0-lock-0000000001\n_c_1-lock-0000000000\nx")
	f.Add("lock-0000000007\nlock-0000000007")
	f.Add("lock--2147483648\nlock-2147483647")
	f.Add("lock-2147418112\n_c_x-lock-00000000000")
	f.Add("a__WRIT__0000000003\na__READ__0000000003\nb__READ__0000000004")
	f.Add("lease-0000000001\nlease-x\nlock-0000000001")
	marks := [][]string{{lockName}, {readName, writeName}, {leaseName}}
	f.Fuzz(func(t *testing.T, text string) {
		children := strings.Split(text, "\n")
		for _, marks := range marks {
			snap, err := lineOf(children, marks...)
			if err != nil {
				require.ErrorIs(t, err, ErrSequenceExhausted)
				assert.Nil(t, snap)
				continue
			}
			if f := snap.other.name; f != "" {
				assert.Contains(t, children, f)
				assert.Negative(t, snap.find(f))
			}
			queue := snap.span(0, snap.len())
			slices.Reverse(children)
			again, err := lineOf(children, marks...)
			require.NoError(t, err)
			assert.Equal(t, queue, again.span(0, again.len()), "whatever the order of the list")
			again.free()
			last := int32(math.MinInt32)
			for i, c := range queue {
				assert.Contains(t, children, c.name)
				assert.Contains(t, marks, c.kind)
				assert.GreaterOrEqual(t, snap.seq(i), max(0, last))
				assert.Less(t, snap.seq(i), int32(seqLimit))
				last = snap.seq(i)
				require.True(t, strings.HasSuffix(c.name[:len(c.name)-10], c.kind), "%q", c.name)
				assert.Equal(t, c.name, queue[snap.find(c.name)].name)
				if ahead, waits := aheadExclusive(snap, i); waits {
					assert.Equal(t, i-1, ahead)
				} else {
					assert.Zero(t, i)
				}
				if ahead, waits := aheadRead(snap, i); waits {
					assert.Equal(t, writeName, snap.kind(ahead))
					assert.Less(t, ahead, i)
				}
			}
			assert.Negative(t, snap.find("x-lock-"))
			snap.free()
		}
	})
}

package recipes

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzContenders reads any children as a queue. What is in it has a name that a
// server gives, in the order of its numbers, and everybody sees one order.
func FuzzContenders(f *testing.F) {
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
			queue, err := contenders(children, marks...)
			if err != nil {
				require.ErrorIs(t, err, ErrSequenceExhausted)
				assert.Nil(t, queue)
				continue
			}
			slices.Reverse(children)
			again, err := contenders(children, marks...)
			require.NoError(t, err)
			assert.Equal(t, queue, again, "whatever the order of the list")
			last := int32(math.MinInt32)
			for i, c := range queue {
				assert.Contains(t, children, c.name)
				assert.Contains(t, marks, c.mark)
				assert.GreaterOrEqual(t, c.seq, max(0, last))
				assert.Less(t, c.seq, int32(seqLimit))
				last = c.seq
				require.True(t, strings.HasSuffix(c.name[:len(c.name)-10], c.mark), "%q", c.name)
				if ahead, waits := aheadExclusive(queue, i); waits {
					assert.Equal(t, queue[i-1], ahead)
				} else {
					assert.Zero(t, i)
				}
				if ahead, waits := aheadRead(queue, i); waits {
					assert.Equal(t, writeName, ahead.mark)
					assert.Less(t, position(queue, ahead.name), i)
				}
			}
		}
	})
}

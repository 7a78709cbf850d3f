//go:build unix

package realzk

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPortBlocksDoNotOverlap(t *testing.T) {
	taken := make(map[int]bool)
	for range 20 {
		block, err := findPorts(3)
		require.NoError(t, err)
		defer func() { assert.NoError(t, block.close()) }()
		require.Len(t, block.members, 3)
		for _, m := range block.members {
			for _, port := range []int{m.client, m.quorum, m.election, m.secure} {
				assert.False(t, taken[port], "port %d given twice", port)
				taken[port] = true
				ln, err := listen(port)
				require.NoError(t, err, "the ports themselves are free")
				require.NoError(t, ln.Close())
			}
		}
	}
}

func TestBlockWithAPortInUse(t *testing.T) {
	block, err := findPorts(1)
	require.NoError(t, err)
	start := block.members[0].client - 1
	_, err = claimBlock(start, 1)
	require.Error(t, err, "claimed already")
	require.NoError(t, block.close())

	used, err := listen(start + 3)
	require.NoError(t, err)
	_, err = claimBlock(start, 1)
	require.Error(t, err)
	require.NoError(t, used.Close())

	block, err = claimBlock(start, 1)
	require.NoError(t, err, "a refused block is given back")
	require.NoError(t, block.close())
}

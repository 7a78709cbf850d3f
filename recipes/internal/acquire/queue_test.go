package acquire

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

func TestPartsOfALock(t *testing.T) {
	whole, part := Queue{Lock: "/l", Path: "/l"}, Queue{Lock: "/s", Path: "/s/" + znode.Turns}
	assert.False(t, whole.isPart())
	assert.Equal(t, "/l", whole.Holders())
	assert.True(t, part.isPart())
	assert.Equal(t, "/s/"+znode.Leases, part.Holders())
}

// A path that a lock of another kind uses is refused, by the name of its node.
func TestCheck(t *testing.T) {
	q := &Queue{Lock: "/l", Path: "/l", Kinds: []znode.Kind{znode.Read, znode.Write}}
	for name, tc := range map[string]struct {
		children []string
		other    string
	}{
		"nobody":              {nil, ""},
		"our kinds":           {[]string{"1__READ__0000000001", "2__WRIT__0000000002"}, ""},
		"what is no lock":     {[]string{"config", "1-latch-000000001"}, ""},
		"a latch":             {[]string{"config", "1-latch-0000000001"}, "1-latch-0000000001"},
		"a mutex before us":   {[]string{node("0"), "1__READ__0000000001"}, node("0")},
		"a mutex behind us":   {[]string{"1__READ__0000000001", node("2")}, ""}, // that one is told
		"a semaphore's lease": {[]string{"_c_1-lease-0000000001"}, "_c_1-lease-0000000001"},
	} {
		snap, err := q.Parse(wire.NamesOf(tc.children))
		require.NoError(t, err)
		err = q.Check(snap)
		if tc.other == "" {
			assert.NoError(t, err, name)
			continue
		}
		assert.ErrorIs(t, err, ErrInvalidLock, name)
		assert.ErrorContains(t, err, "which has the node "+tc.other, name)
	}
}

package tree

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

func TestSessionTakesItsNodesWithIt(t *testing.T) {
	r := newReplica()
	r.must(t, "/keep")
	for _, p := range []string{"/keep/c", "/b", "/keep/a"} {
		r.do(wire.OpCreate, create(p, wire.FlagEphemeral))
	}
	r.as(Caller{Session: 8}, wire.OpCreate, create("/other", wire.FlagEphemeral))
	assert.Equal(t, []int64{7, 8}, r.Sessions())
	assert.Equal(t, []string{"/b", "/keep/a", "/keep/c"}, r.Ephemerals(7))

	out := r.do(wire.OpCloseSession, nil)
	assert.Equal(t, []Event{
		{wire.EventNodeDeleted, "/b", openACL, openACL},
		{wire.EventNodeDeleted, "/keep/a", openACL, openACL},
		{wire.EventNodeDeleted, "/keep/c", openACL, openACL},
	}, out.Events)
	assert.Equal(t, []int64{8}, r.Sessions())
	assert.Empty(t, r.Ephemerals(7))
	stat, _ := r.Exists("/keep")
	assert.Equal(t, r.zxid, stat.Pzxid)
	assert.Equal(t, wire.OpCreateSession, r.do(wire.OpCreateSession, nil).Result.Op)
}

func TestOwners(t *testing.T) {
	owner, ok := ownerTTL(1500)
	require.True(t, ok)
	ttl, ok := TTL(owner)
	assert.True(t, ok)
	assert.Equal(t, 1500*time.Millisecond, ttl)
	_, ok = TTL(OwnerContainer)
	assert.False(t, ok)
	assert.False(t, isSession(0))
	assert.False(t, isSession(OwnerContainer))
	assert.False(t, isSession(owner))
	assert.True(t, isSession(1<<56|3))
}

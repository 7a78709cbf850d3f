package acquire

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// A server may give a node nothing but the name that was asked for and a number.
func TestContender_Made(t *testing.T) {
	const prefix = "_c_uuid-"
	for name, tc := range map[string]struct {
		path string
		is   bool
	}{
		"as asked":           {"/l/" + node("7"), true},
		"below another node": {"/k/" + node("7"), false},
		"at the root":        {"/" + node("7"), false},
		"below ours":         {"/l/x/" + node("7"), false},
		"another prefix":     {"/l/_c_else-lock-0000000007", false},
		"another kind":       {"/l/_c_uuid-lease-0000000007", false},
		"no path":            {node("7"), false},
		"nothing":            {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			k := &contender{queue: &Queue{Path: "/l", Kind: znode.Lock}, prefix: prefix, phase: creating, request: new(transport.Call)}
			err := k.made(tc.path, 9)
			if !tc.is {
				require.ErrorIs(t, err, session.ErrOutcomeUnknown)
				assert.ErrorContains(t, err, "/l/_c_uuid-lock-")
				assert.True(t, k.unknown(), "it is looked for")
				assert.NotNil(t, k.request)
				return
			}
			require.NoError(t, err)
			assert.False(t, k.unknown())
			assert.Equal(t, queued, k.phase)
			assert.Equal(t, []any{tc.path, int64(9), prefix, node("7")}, []any{k.path, k.czxid, k.prefix, k.name()})
			assert.Nil(t, k.request)
		})
	}
}

// What a list says about a request whose reply was lost.
func TestContender_Find(t *testing.T) {
	const stranger = "_c_else-lock-0000000003"
	former := "_c_old-lock-0000000002"
	for name, tc := range map[string]struct {
		before   phase
		children []string
		phase    phase
		path     string
		late     bool // the request may still be applied
	}{
		"made":                       {creating, []string{stranger, node("4")}, queued, "/l/" + node("4"), false},
		"not made":                   {creating, []string{stranger}, absent, "", true},
		"nobody is there":            {creating, nil, absent, "", true},
		"replaced":                   {replacing, []string{stranger, node("4")}, queued, "/l/" + node("4"), false},
		"not replaced":               {replacing, []string{former, stranger}, queued, "/l/" + former, true},
		"neither of the two":         {replacing, []string{stranger}, absent, "", true},
		"a former node is no longer": {creating, []string{former}, absent, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			k := &contender{queue: &Queue{Path: "/l", Kind: znode.Lock}, prefix: "_c_uuid-", phase: tc.before, czxid: 5, request: new(transport.Call)}
			if tc.before == replacing {
				k.path = "/l/" + former
			}
			k.find(wire.NamesOf(tc.children))
			assert.Equal(t, tc.phase, k.phase)
			assert.Equal(t, tc.path, k.path)
			assert.Equal(t, tc.late, k.mayStillAppear)
			assert.False(t, k.unknown())
			assert.Nil(t, k.request)
			if tc.path == "/l/"+former {
				assert.Equal(t, int64(5), k.czxid, "the node is the same")
			} else {
				assert.Zero(t, k.czxid, "no reply has shown it")
			}
		})
	}
}

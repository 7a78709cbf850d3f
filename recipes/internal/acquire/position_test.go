package acquire

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

func node(n string) string { return "_c_uuid-lock-000000000" + n }

// What a contender remembers of the list that showed it behind others.
func TestPosition(t *testing.T) {
	q := &Queue{Lock: "/l", Path: "/l", Kinds: []znode.Kind{znode.Lock}}
	for name, tc := range map[string]struct {
		at, ahead         int
		grants            bool // by an event
		only, front, next string
		inTheWay          string
	}{
		"second":             {1, 0, false, node("0"), "", "", "/l/" + node("0")},
		"third":              {2, 1, false, "", node("0"), "", "/l/" + node("0")},
		"second, of a mutex": {1, 0, true, node("0"), "", "", "/l/" + node("0")},
		"third, of a mutex":  {2, 1, true, "", node("0"), node("0"), "/l/" + node("0")},
		"fourth, of a mutex": {3, 2, true, "", node("0"), node("1"), "/l/" + node("0")},
	} {
		t.Run(name, func(t *testing.T) {
			snap, err := q.Parse(wire.NamesOf([]string{node("0"), node("1"), node("2"), node("3")}))
			require.NoError(t, err)
			q.EventGrants = tc.grants
			p := Position{sessionID: 7}
			p.set(&contender{queue: q, snapshot: snap}, tc.at, tc.ahead)
			assert.Equal(t, tc.at, p.Place)
			assert.Equal(t, node(string(rune('0'+tc.ahead))), p.Predecessor)
			assert.Equal(t, tc.only, p.Only())
			assert.Equal(t, tc.front, p.Head)
			assert.Equal(t, tc.next, p.next)
			assert.Zero(t, p.sessionID, "that was of another list")
			assert.Equal(t, &Obstacle{Lock: "/l", Node: tc.inTheWay, Ahead: tc.at}, p.obstacle(q))
		})
	}
	var none Position
	assert.Empty(t, none.obstacle(q).Node, "nobody was seen")
}

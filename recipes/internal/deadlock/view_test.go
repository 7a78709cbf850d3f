package deadlock

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMatch(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b Node
		want ownerMatch
	}{
		"one tag":                       {of("a", 1, "x"), of("b", 1, "x"), alike},
		"one tag, over two clients":     {of("a", 1, "x"), of("b", 2, "x"), alike},
		"another session":               {of("a", 1, "x"), of("b", 2, "y"), unlike},
		"another session, without tags": {of("a", 1, ""), of("b", 2, ""), unlike},
		"no tags":                       {of("a", 1, ""), of("b", 1, ""), perhaps},
		"one without a tag":             {of("a", 1, "x"), of("b", 1, ""), unlike},
		"another tag":                   {of("a", 1, "x"), of("b", 1, "y"), unlike},
	} {
		assert.Equal(t, tc.want, tc.a.match(&tc.b), name)
		assert.Equal(t, tc.want, tc.b.match(&tc.a), "%s, the other way round", name)
	}
}

func TestInTheWay(t *testing.T) {
	assert.True(t, (&Queue{First: true}).inTheWay())
	assert.False(t, (&Queue{}).inTheWay(), "others are ahead of us")
	assert.False(t, (&Queue{First: true, Lease: true}).inTheWay(), "nobody waits for a lease")
}

func TestDefers(t *testing.T) {
	q := &Queue{OwnTag: "Mm"}
	lock, older, younger := of("a", 1, "x"), of("a", 1, "Ma"), of("a", 1, "Mz")
	assert.True(t, q.defers(&lock), "to every owner that does not yield")
	assert.NotEqual(t, q.defers(&older), q.defers(&younger), "to one of the two")
	equal := of("a", 1, "Mm")
	assert.False(t, q.defers(&equal), "not to itself")
}

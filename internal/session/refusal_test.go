package session

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// A refused access says which right on which node is missing.
func TestRefusal(t *testing.T) {
	for _, tc := range []struct {
		op   wire.Op
		path string
		want string
	}{
		{wire.OpCreate2, "/a/b", "CREATE on /a is needed"},
		{wire.OpCreateContainer, "/a", "CREATE on / is needed"},
		{wire.OpDelete, "/a/b/c", "DELETE on /a/b is needed"},
		{wire.OpSetData, "/a/b", "WRITE on /a/b is needed"},
		{wire.OpSetACL, "/a/b", "ADMIN on /a/b is needed"},
		{wire.OpGetACL, "/a/b", "READ or ADMIN on /a/b is needed"},
		{wire.OpGetChildren, "/a/b", "READ on /a/b is needed"},
		{wire.OpExists, "/a/b", "READ on /a/b is needed"},
		{wire.OpCheck, "/a/b", "READ on /a/b is needed"},
	} {
		s := &Session{transport: new(transport.Transport)}
		err := s.Refusal(tc.op, tc.path, wire.CodeNoAuth)
		assert.ErrorIs(t, err, zk.ErrNoAuth)
		assert.ErrorContains(t, err, tc.want+" (credentials given: none)")
		s.cfg.Transport.SASL = &transport.SASL{User: func() string { return "eve" }}
		s.cfg.Transport.Auth = []transport.Auth{
			{Scheme: "digest", Data: func() []byte { return []byte("bob:secret:x") }},
			{Scheme: "digest", Data: func() []byte { return []byte("secret") }},
			{Scheme: "other", Data: func() []byte { return []byte("secret:y") }},
		}
		assert.ErrorContains(t, s.Refusal(tc.op, tc.path, wire.CodeNoAuth), tc.want+" (credentials given: sasl:eve, digest:bob, digest, other)")
	}
}

func TestRefusalOfAnythingElse(t *testing.T) {
	s := &Session{transport: new(transport.Transport)}
	assert.NoError(t, s.Refusal(wire.OpDelete, "/a", wire.CodeOK))
	assert.Equal(t, zk.ErrNoNode, s.Refusal(wire.OpDelete, "/a", wire.CodeNoNode))
	assert.Equal(t, zk.ErrNoAuth, s.Refusal(wire.OpMulti, "", wire.CodeNoAuth), "whose it is cannot be told")
	assert.Equal(t, zk.ErrNoAuth, s.Refusal(wire.OpSync, "/a", wire.CodeNoAuth), "it takes no right")
}

func TestRefusalOfAnAccessList(t *testing.T) {
	s := &Session{transport: new(transport.Transport)}
	for _, op := range []wire.Op{wire.OpCreate, wire.OpSetACL, wire.OpMulti} {
		err := s.Refusal(op, "/a", wire.CodeInvalidACL)
		assert.ErrorIs(t, err, zk.ErrInvalidACL)
		assert.EqualError(t, err, "zk: invalid ACL specified: an entry of AuthACL needs an identity that the servers have taken, "+
			"and any other one a scheme that they know and an identity of its form (credentials given: none)")
	}
}

func TestBelow(t *testing.T) {
	assert.Equal(t, "/a/b", Join("/a", "b"))
	assert.Equal(t, "/b", Join("/", "b"))
	assert.Equal(t, "/a/", Join("/a", ""))
}

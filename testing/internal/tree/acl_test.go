package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

func TestACLMasks(t *testing.T) {
	for entry, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.2": false, "127.0.0.0/8": true, "127.0.0.0/31": true, "127.0.0.2/31": false, "0.0.0.0/0": true,
		"127.0.0.1/32": true, "127.0.0.1/33": false, "127.0.0.1/-1": false, "127.0.0.1/x": false, "127.0.0": false, "x": false, "::1": false,
	} {
		assert.Equal(t, want, ipMatches("127.0.0.1", entry), entry)
	}
	assert.False(t, ipMatches("::1", "0.0.0.0/0"))
	assert.False(t, matches(ID{"other", "x"}, "x"))
	assert.True(t, Allowed(nil, wire.PermAll, nil), "an empty list allows everything")
}

func TestReadsNeedRights(t *testing.T) {
	r := newReplica()
	secret := create("/s", 0)
	secret.ACL = []wire.ACL{{Perms: wire.PermRead, Scheme: "digest", ID: bob.IDs[1].ID}, {Perms: wire.PermAdmin, Scheme: "ip", ID: "10.0.0.1"}}
	r.do(wire.OpCreate, secret)
	nobody := Caller{Session: 8}
	_, _, code := r.Get(nobody, "/s")
	assert.Equal(t, wire.CodeNoAuth, code)
	_, _, code = r.Children(nobody, "/s")
	assert.Equal(t, wire.CodeNoAuth, code)
	_, code = r.CountBelow(nobody, "/s")
	assert.Equal(t, wire.CodeNoAuth, code)
	_, _, code = r.ACL(nobody, "/s")
	assert.Equal(t, wire.CodeNoAuth, code)
	acl, _, code := r.ACL(bob, "/s")
	require.Zero(t, code)
	assert.Equal(t, "bob:x", acl[0].ID, "hidden from who may not change the list")
	acl, _, _ = r.ACL(Caller{IDs: []ID{SuperID}}, "/s")
	assert.Equal(t, bob.IDs[1].ID, acl[0].ID)
	n, code := r.CountBelow(bob, "/")
	require.Zero(t, code)
	assert.Equal(t, int32(r.Len()-1), n)
}

package framework

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Access lists are those of go-zookeeper.
func TestACLs(t *testing.T) {
	assert.Equal(t, zk.WorldACL(zk.PermAll), []ACL{WorldACL(PermAll)})
	assert.Equal(t, zk.AuthACL(zk.PermRead|zk.PermWrite), []ACL{AuthACL(PermRead | PermWrite)})
	assert.Equal(t, zk.DigestACL(zk.PermCreate|zk.PermDelete|zk.PermAdmin, "bob", "secret"),
		[]ACL{DigestACL(PermCreate|PermDelete|PermAdmin, Digest("bob", "secret"))})
	assert.Equal(t, "super:gG7s8t3oDEtIqF6DM9LlI/R+9Ss=", Digest("super", "super"))
	assert.Equal(t, ACL{Perms: 1, Scheme: "sasl", ID: "bob"}, SASLACL(PermRead, "bob"))
	assert.Equal(t, ACL{Perms: 1, Scheme: "x509", ID: "CN=a,C=DE"}, X509ACL(PermRead, "CN=a,C=DE"))
	assert.Equal(t, Auth{Scheme: "digest", Data: []byte("bob:secret")}, DigestAuth("bob", "secret"))
}

func TestWrongACLs(t *testing.T) {
	for _, right := range []ACL{
		WorldACL(PermAll), AuthACL(PermRead), SASLACL(PermRead, "alice/host@REALM"), X509ACL(PermRead, "CN=a"),
		DigestACL(PermRead, Digest("bob", "")),
	} {
		require.NoError(t, checkACL([]ACL{right}))
	}
	for _, addr := range []string{"10.1.2.3", "10.1.2.3/8", "::1", "fe80::/10"} {
		require.NoError(t, checkACL([]ACL{IPACL(PermRead, addr)}), addr)
	}
	require.NoError(t, checkACL([]ACL{{Perms: 1, Scheme: "of our own", ID: ""}}), "the server may know it")
	require.NoError(t, checkACL(nil), "the server says so")
	for want, acl := range map[string]ACL{
		"gives no right":                      WorldACL(0),
		"there are no rights 0x61":            WorldACL(0x61),
		"the scheme is missing":               {Perms: 1},
		`its only identity is "anyone"`:       {Perms: 1, Scheme: "world"},
		"it has no colon":                     DigestACL(1, "hunter2"),
		"it is not user:hash":                 DigestACL(1, "bob:hunter2"),
		"not user:hash, which Digest makes":   DigestACL(1, "bob:x"), // as GetACL shows it to others
		`"10.1.2" is neither an address`:      IPACL(1, "10.1.2"),
		`"10.1.2.3/33" is neither`:            IPACL(1, "10.1.2.3/33"),
		`scheme "sasl": the identity is empt`: SASLACL(1, ""),
		`scheme "x509": the identity is empt`: X509ACL(1, ""),
		"do not name the superuser":           {Perms: 1, Scheme: "super"},
	} {
		err := checkACL([]ACL{WorldACL(1), acl})
		require.ErrorIs(t, err, ErrInvalidACL, want)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "entry 1, ")
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

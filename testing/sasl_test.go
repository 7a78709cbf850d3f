package zktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/digestmd5"
	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// prove goes through the exchange and returns the code of the last answer, and its token.
func (c *client) prove(change func(*digestmd5.Proof)) (wire.Code, []byte) {
	c.t.Helper()
	var challenge, last wire.SASLResponse
	c.must(wire.OpSASL, &wire.SASLRequest{Token: []byte{}}, &challenge)
	said, err := digestmd5.Parse(string(challenge.Token))
	require.NoError(c.t, err)
	p := digestmd5.Proof{
		User: "bob", Password: "secret", Realm: said["realm"], Nonce: said["nonce"], CNonce: "c", Count: "00000001",
		URI: "zookeeper/zk-sasl-md5", UTF8: true,
	}
	change(&p)
	response := "charset=utf-8,username=" + digestmd5.Quote(p.User) + ",realm=" + digestmd5.Quote(p.Realm) + ",nonce=" + digestmd5.Quote(p.Nonce) +
		",cnonce=" + digestmd5.Quote(p.CNonce) + ",nc=" + p.Count + ",digest-uri=" + digestmd5.Quote(p.URI) + ",response=" + p.Client()
	if p.AuthzID != "" {
		response += ",authzid=" + digestmd5.Quote(p.AuthzID)
	}
	code, err := c.call(wire.OpSASL, &wire.SASLRequest{Token: []byte(response)}, &last)
	require.NoError(c.t, err)
	return code, last.Token
}

func TestSASL(t *testing.T) {
	users := zktest.SASLUsers(map[string]string{"bob": "secret"})
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, append(opts, users)...)
		mine := []wire.ACL{{Perms: wire.PermAll, Scheme: "sasl", ID: "bob"}}
		for name, change := range map[string]func(*digestmd5.Proof){
			"user": func(*digestmd5.Proof) {}, "himself": func(p *digestmd5.Proof) { p.AuthzID = "bob" },
		} {
			bob := begin(t, srv, 10*time.Second)
			code, token := bob.prove(change)
			require.Equal(t, wire.CodeOK, code)
			assert.Regexp(t, "^rspauth=[0-9a-f]{32}$", string(token))
			var who wire.WhoAmIResponse
			bob.must(wire.OpWhoAmI, &wire.Empty{}, &who)
			assert.Contains(t, who.Clients, wire.ClientInfo{Scheme: "sasl", User: "bob"})
			bob.must(wire.OpCreate, &wire.CreateRequest{Path: "/" + name, ACL: mine}, nil)
			bob.must(wire.OpGetData, &wire.PathWatchRequest{Path: "/" + name}, nil)
			code, err := bob.call(wire.OpSASL, &wire.SASLRequest{Token: []byte{}}, nil)
			require.NoError(t, err)
			assert.Equal(t, wire.CodeAuthFailed, code, "once only")
		}
		nobody := begin(t, srv, 10*time.Second)
		code, err := nobody.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/user"}, nil)
		require.NoError(t, err)
		assert.Equal(t, wire.CodeNoAuth, code)

		for name, change := range map[string]func(*digestmd5.Proof){
			"password": func(p *digestmd5.Proof) { p.Password = "x" }, "unknown": func(p *digestmd5.Proof) { p.User, p.Password = "eve", "" },
			"realm": func(p *digestmd5.Proof) { p.Realm = "x" }, "nonce": func(p *digestmd5.Proof) { p.Nonce = "x" },
			"count": func(p *digestmd5.Proof) { p.Count = "00000002" }, "cnonce": func(p *digestmd5.Proof) { p.CNonce = "" },
			"uri": func(p *digestmd5.Proof) { p.URI = "zookeeper/other" }, "another": func(p *digestmd5.Proof) { p.AuthzID = "eve" },
		} {
			c := begin(t, srv, 10*time.Second)
			code, _ := c.prove(change)
			assert.Equal(t, wire.CodeAuthFailed, code, name)
			_, err := c.read()
			require.Error(t, err, "the connection ends")
		}
		first := begin(t, srv, 10*time.Second)
		code, err = first.call(wire.OpSASL, &wire.SASLRequest{Token: []byte("x")}, nil)
		require.NoError(t, err)
		assert.Equal(t, wire.CodeAuthFailed, code, "no answer to a challenge that was not asked for")
	})
}

func TestRequireSASL(t *testing.T) {
	_, err := zktest.New(zktest.RequireSASL())
	require.ErrorContains(t, err, "RequireSASL needs SASLUsers")
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, append(opts, zktest.SASLUsers(map[string]string{"bob": "secret"}), zktest.RequireSASL())...)
		for _, op := range []wire.Op{wire.OpExists, wire.OpCloseSession, wire.OpCreate} {
			c := begin(t, srv, 10*time.Second)
			c.write(&wire.RequestHeader{Xid: wire.XidAuth, Op: wire.OpAuth}, &wire.AuthRequest{Scheme: "digest", Auth: []byte("a:b")})
			code, err := c.receive(wire.XidAuth, nil)
			require.NoError(t, err)
			require.Equal(t, wire.CodeOK, code)
			code, err = c.call(op, &wire.PathWatchRequest{Path: "/"}, nil)
			require.NoError(t, err)
			assert.Equal(t, wire.CodeSessionClosedNeedsSASL, code)
			_, err = c.read()
			require.Error(t, err)
		}
		c := begin(t, srv, 10*time.Second)
		code, _ := c.prove(func(p *digestmd5.Proof) { p.Password = "x" })
		assert.Equal(t, wire.CodeSessionClosedNeedsSASL, code)
		c = begin(t, srv, 10*time.Second)
		code, _ = c.prove(func(*digestmd5.Proof) {})
		require.Equal(t, wire.CodeOK, code)
		assert.False(t, c.exists("/a"))
	})
}

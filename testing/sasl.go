package zktest

import (
	"crypto/rand"
	"strings"

	"github.com/paddock-zk/paddock/internal/digestmd5"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// saslService is what ZooKeeper calls itself in DIGEST-MD5, as realm and as host.
const saslService = "zk-sasl-md5"

// saslExchange is the server's side of DIGEST-MD5 on one connection.
//
// Source: Java's com.sun.security.sasl.digest.DigestMD5Server; ZooKeeper SaslServerCallbackHandler.
type saslExchange struct {
	nonce string // of the challenge that was sent
	over  bool
}

// step returns what to answer, and who the client is once that is proven. It is not ok
// if the client is refused.
func (x *saslExchange) step(users map[string]string, token []byte) (answer []byte, user string, ok bool) {
	switch {
	case x.over:
		return nil, "", false
	case x.nonce == "" && len(token) == 0:
		x.nonce = rand.Text()
		return []byte("realm=" + digestmd5.Quote(saslService) + ",nonce=" + digestmd5.Quote(x.nonce) + ",charset=utf-8,algorithm=md5-sess"), "", true
	}
	x.over = true
	said, err := digestmd5.Parse(string(token))
	password, known := users[said["username"]]
	p := digestmd5.Proof{
		User: said["username"], Realm: saslService, Password: password, Nonce: x.nonce, CNonce: said["cnonce"],
		Count: said["nc"], URI: said["digest-uri"], AuthzID: said["authzid"], UTF8: strings.EqualFold(said["charset"], "utf-8"),
	}
	switch {
	case err != nil, !known, x.nonce == "", said["nonce"] != x.nonce, said["realm"] != saslService, said["nc"] != "00000001",
		said["cnonce"] == "", said["qop"] != "" && said["qop"] != "auth", said["digest-uri"] != "zookeeper/"+saslService,
		said["response"] != p.Client(), p.AuthzID != "" && p.AuthzID != p.User:
		return nil, "", false
	}
	return []byte("rspauth=" + p.Server()), p.User, true
}

// saslLocked takes a step of the exchange. A server that has no users answers with no
// token, which ends the exchange for clients.
//
// Source: ZooKeeper ZooKeeperServer.processSasl.
func (c *conn) saslLocked(xid int32, req wire.Record) error {
	said, ok := req.(*wire.SASLRequest)
	if !ok || said.Token == nil {
		return wire.ErrMalformed
	}
	var answer []byte
	if users := c.m.e.cfg.saslUsers; users != nil {
		token, user, ok := c.sasl.step(users, said.Token)
		if !ok {
			code := wire.CodeAuthFailed
			if c.m.e.cfg.requireSASL {
				code = wire.CodeSessionClosedNeedsSASL
			}
			c.replyAtLocked(xid, 0, code, &wire.SASLResponse{})
			return errOver
		}
		if answer = token; user != "" {
			c.addIDLocked(tree.ID{Scheme: "sasl", ID: user})
		}
	}
	c.replyAtLocked(xid, 0, wire.CodeOK, &wire.SASLResponse{Token: answer})
	return nil
}

// needsSASLLocked is whether a request is refused for want of a proof.
//
// Source: ZooKeeper AuthenticationHelper.enforceAuthentication.
func (c *conn) needsSASLLocked(op wire.Op) bool {
	if !c.m.e.cfg.requireSASL || op == wire.OpAuth || op == wire.OpSASL {
		return false
	}
	for _, id := range c.ids {
		if id.Scheme == "sasl" {
			return false
		}
	}
	return true
}

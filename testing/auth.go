package zktest

import (
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

func (c *conn) getACLLocked(req *wire.PathRequest) (wire.Record, wire.Code) {
	acl, stat, code := c.m.data.ACL(c.callerLocked(), req.Path)
	return &wire.GetACLResponse{ACL: acl, Stat: stat}, code
}

func (c *conn) whoAmILocked(*wire.Empty) (wire.Record, wire.Code) {
	res := &wire.WhoAmIResponse{}
	for _, id := range tree.HashOrder(c.ids) {
		user := id.ID
		if id.Scheme == "digest" {
			user, _, _ = strings.Cut(id.ID, ":")
		}
		res.Clients = append(res.Clients, wire.ClientInfo{Scheme: id.Scheme, User: user})
	}
	return res, wire.CodeOK
}

// authLocked adds an identity. A wrong one ends the connection.
//
// Source: ZooKeeper ZooKeeperServer.processPacket, DigestAuthenticationProvider, IPAuthenticationProvider.
func (c *conn) authLocked(xid int32, req wire.Record) error {
	auth, ok := req.(*wire.AuthRequest)
	if !ok {
		return wire.ErrMalformed
	}
	switch auth.Scheme {
	case "ip":
		c.addIDLocked(tree.ID{Scheme: "ip", ID: host(c.raw.RemoteAddr())})
	case "digest":
		digest := tree.Digest(string(auth.Auth))
		if digest == c.m.e.cfg.super {
			c.addIDLocked(tree.SuperID)
		}
		c.addIDLocked(tree.ID{Scheme: "digest", ID: digest})
	default:
		c.replyAtLocked(xid, 0, wire.CodeAuthFailed, wire.Empty{})
		return errOver
	}
	c.replyAtLocked(xid, 0, wire.CodeOK, wire.Empty{})
	return nil
}

func (c *conn) addIDLocked(id tree.ID) {
	if !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
	}
}

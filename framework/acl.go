package framework

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/wire"
)

// ACL is one entry of an access list, as in go-zookeeper: rights for one identity. Make
// it with one of the functions below. An entry that no server would take, or that nobody
// could ever meet, is refused with ErrInvalidACL before anything is sent. That does not
// include lists of Config.ACL for nodes that Create does not make, such as those of locks.
type ACL = zk.ACL

// The rights of an ACL, to be or-ed.
const (
	PermRead   int32 = wire.PermRead   // the data and the names of the children
	PermWrite  int32 = wire.PermWrite  // setting the data
	PermCreate int32 = wire.PermCreate // children
	PermDelete int32 = wire.PermDelete // children
	PermAdmin  int32 = wire.PermAdmin  // setting the access list
	PermAll    int32 = wire.PermAll
)

// WorldACL gives rights to everybody.
func WorldACL(perms int32) ACL { return ACL{Perms: perms, Scheme: "world", ID: "anyone"} }

// AuthACL gives rights to each identity that the session has proven: by Config.Auth,
// Config.SASL or its certificate. The servers replace it by those identities. They refuse
// it with ErrInvalidACL if the session has none.
func AuthACL(perms int32) ACL { return ACL{Perms: perms, Scheme: "auth"} }

// DigestACL gives rights to sessions with a user and a password, as in DigestAuth. The
// digest is that of Digest, so a program that only sets access lists needs no password.
func DigestACL(perms int32, digest string) ACL {
	return ACL{Perms: perms, Scheme: "digest", ID: digest}
}

// IPACL gives rights to clients by their address: "10.1.2.3", or all those of a network:
// "10.1.0.0/16". Servers know IPv6 from ZooKeeper 3.9.6 on.
func IPACL(perms int32, addr string) ACL { return ACL{Perms: perms, Scheme: "ip", ID: addr} }

// SASLACL gives rights to a user of SASL: "bob", or a principal of Kerberos:
// "alice@EXAMPLE.ORG", with a host where it has one. Servers must be configured for SASL.
func SASLACL(perms int32, user string) ACL { return ACL{Perms: perms, Scheme: "sasl", ID: user} }

// X509ACL gives rights to clients by the subject of their certificate, as Java prints it:
// "CN=orders,O=Example\, Inc.,C=DE". Servers must speak TLS, and take another spelling for
// somebody else. Stats().Certificate of a connected client has its own.
func X509ACL(perms int32, subject string) ACL {
	return ACL{Perms: perms, Scheme: "x509", ID: subject}
}

// Digest is what access lists have of a user of the scheme digest: "user:" and
// a hash of user and password. Servers know their superuser, whom no access list stops, by
// the same: -Dzookeeper.DigestAuthenticationProvider.superDigest=super:...
//
// Source: ZooKeeper DigestAuthenticationProvider.generateDigest, with SHA-1, its default.
func Digest(user, password string) string {
	sum := sha1.Sum([]byte(user + ":" + password))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// DigestAuth is the credential of a user of the scheme digest, or with the user "super" of
// the superuser. Servers refuse no password: a wrong one makes another identity.
func DigestAuth(user, password string) Auth {
	return Auth{Scheme: "digest", Data: []byte(user + ":" + password)}
}

// checkACL says which entry of an access list is wrong. Whether a list may be empty, and
// what is meant by other schemes, is for the server to say.
//
// Source: ZooKeeper's AuthenticationProviders, isValid. Differs: a right that does not exist,
// a hash that is none.
func checkACL(acl []ACL) error {
	for i, a := range acl {
		if wrong := aclFault(a); wrong != "" {
			return fmt.Errorf("%w: entry %d, scheme %q: %s", ErrInvalidACL, i, a.Scheme, wrong)
		}
	}
	return nil
}

// aclFault does not quote what may be a password.
func aclFault(a ACL) string {
	switch {
	case a.Perms == 0:
		return "it gives no right"
	case a.Perms&^PermAll != 0:
		return fmt.Sprintf("there are no rights %#x", a.Perms)
	}
	switch a.Scheme {
	case "":
		return "the scheme is missing"
	case "world":
		if a.ID != "anyone" {
			return fmt.Sprintf("its only identity is %q", "anyone")
		}
	case "digest":
		return digestFault(a.ID)
	case "ip":
		if _, err := netip.ParsePrefix(a.ID); err == nil {
			return ""
		}
		if _, err := netip.ParseAddr(a.ID); err != nil {
			return fmt.Sprintf("%q is neither an address nor one with a number of bits, as in 10.1.0.0/16", a.ID)
		}
	case "sasl", "x509":
		if a.ID == "" {
			return "the identity is empty"
		}
	case "super":
		return "access lists do not name the superuser, whom none stops"
	}
	return ""
}

func digestFault(id string) string {
	user, hash, ok := strings.Cut(id, ":")
	if !ok {
		return "it has no colon: write the result of Digest, user:hash"
	}
	// Servers may have chosen a hash that is longer than SHA-1.
	if sum, err := base64.StdEncoding.DecodeString(hash); user == "" || err != nil || len(sum) < sha1.Size {
		return "it is not user:hash, which Digest makes of user and password"
	}
	return ""
}

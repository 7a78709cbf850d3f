package tree

import (
	"cmp"
	"crypto/sha1"
	"encoding/base64"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/paddock-zk/paddock/internal/wire"
)

// ID is one identity of a caller.
type ID struct{ Scheme, ID string }

// SuperID may do everything.
var SuperID = ID{Scheme: "super"}

var (
	openACL = []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
	readACL = []wire.ACL{{Perms: wire.PermRead, Scheme: "world", ID: "anyone"}}
)

// HashOrder returns ids in the order in which ZooKeeper keeps those of a
// connection: that of a hash table of Java.
//
// Source: ZooKeeper ServerCnxn.authInfo, Id.hashCode; java.util.concurrent.ConcurrentHashMap.
func HashOrder(ids []ID) []ID {
	slots := uint32(16)
	for 4*uint32(len(ids)) >= 3*slots {
		slots *= 2
	}
	slot := func(id ID) uint32 {
		h := 37*(37*17+javaHash(id.Scheme)) + javaHash(id.ID)
		return (h ^ h>>16) & (slots - 1)
	}
	ordered := slices.Clone(ids)
	slices.SortStableFunc(ordered, func(a, b ID) int { return cmp.Compare(slot(a), slot(b)) })
	return ordered
}

// javaHash is String.hashCode.
func javaHash(s string) (h uint32) {
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(unit)
	}
	return h
}

// Digest returns the identity that the scheme digest makes of "user:password".
//
// Source: ZooKeeper DigestAuthenticationProvider.generateDigest.
func Digest(credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// Allowed reports whether one of ids has one of the rights in perm. An empty
// list allows everything.
func Allowed(acl []wire.ACL, perm int32, ids []ID) bool {
	if len(acl) == 0 || slices.Contains(ids, SuperID) {
		return true
	}
	for _, a := range acl {
		if a.Perms&perm == 0 {
			continue
		}
		if a.Scheme == "world" && a.ID == "anyone" {
			return true
		}
		for _, id := range ids {
			if id.Scheme == a.Scheme && matches(id, a.ID) {
				return true
			}
		}
	}
	return false
}

// matches reports whether a caller's identity is one that an entry of the same
// scheme names.
func matches(id ID, entry string) bool {
	switch id.Scheme {
	case "ip":
		return ipMatches(id.ID, entry)
	case "digest", "sasl", "x509":
		return id.ID == entry
	}
	return false
}

// fixACL returns the list that a node gets: without repetitions, and with the
// caller's identities in place of the scheme auth.
//
// Source: ZooKeeper PrepRequestProcessor.fixupACL.
func (t *Tree) fixACL(acl []wire.ACL, ids []ID) ([]wire.ACL, wire.Code) {
	var fixed []wire.ACL
	for i, a := range acl {
		if slices.Contains(acl[:i], a) {
			continue
		}
		switch {
		case a.Scheme == "world" && a.ID == "anyone":
			fixed = append(fixed, a)
		case a.Scheme == "auth":
			before := len(fixed)
			for _, id := range HashOrder(ids) {
				switch id.Scheme {
				case "digest", "sasl", "x509": // those that are proven
					fixed = append(fixed, wire.ACL{Perms: a.Perms, Scheme: id.Scheme, ID: id.ID})
				}
			}
			if len(fixed) == before {
				return nil, wire.CodeInvalidACL
			}
		case a.Scheme == "digest" && validDigest(a.ID), a.Scheme == "ip" && validIP(a.ID, t.Release),
			a.Scheme == "sasl" && t.SASL && a.ID != "", a.Scheme == "x509" && t.X509 && strings.Contains(a.ID, "="):
			fixed = append(fixed, a)
		default:
			return nil, wire.CodeInvalidACL
		}
	}
	if len(fixed) == 0 {
		return nil, wire.CodeInvalidACL
	}
	return fixed, wire.CodeOK
}

// validDigest reports whether id is two parts with a colon between, as Java's
// String.split counts them: empty parts at the end do not count.
func validDigest(id string) bool {
	return len(strings.Split(strings.TrimRight(id, ":"), ":")) == 2
}

// validIP reports whether id is an address, or one with a number of bits behind
// a slash. IPv6 came with ZooKeeper 3.9.6.
func validIP(id string, release Release) bool {
	addr, bits, masked := strings.Cut(id, "/")
	ip := ipBytes(addr)
	if ip == nil || len(ip) != net.IPv4len && release < Release396 {
		return false
	}
	return !masked || prefix(bits, ip) >= 0
}

// prefix reads a number of bits, -1 if the address has not so many.
func prefix(bits string, ip []byte) int {
	n, err := strconv.ParseInt(bits, 10, 32)
	if err != nil || n < 0 || n > int64(8*len(ip)) {
		return -1
	}
	return int(n)
}

// ipMatches reports whether an address is within an entry of the scheme ip.
func ipMatches(addr, entry string) bool {
	within, bits, masked := strings.Cut(entry, "/")
	a, b := ipBytes(addr), ipBytes(within)
	if a == nil || len(a) != len(b) {
		return false
	}
	n := 8 * len(b)
	if masked {
		n = prefix(bits, b)
	}
	mask := net.CIDRMask(n, 8*len(b)) // nil for -1
	if mask == nil {
		return false
	}
	return net.IP(a).Mask(mask).Equal(net.IP(b).Mask(mask))
}

// ipBytes returns an address's 4 or 16 bytes, nil for what is none.
func ipBytes(s string) []byte {
	if strings.Contains(s, ":") {
		addr, err := netip.ParseAddr(s)
		if err != nil || addr.Zone() != "" || strings.Contains(s, ".") {
			return nil
		}
		return addr.AsSlice()
	}
	parts := strings.Split(s, ".")
	if len(parts) != net.IPv4len {
		return nil
	}
	ip := make([]byte, 0, net.IPv4len)
	for _, p := range parts {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil || n < 0 || n > 255 {
			return nil
		}
		ip = append(ip, byte(n))
	}
	return ip
}

// aclSet replaces a node's access list.
type aclSet struct {
	path    string
	acl     []wire.ACL
	version int32
}

func (p *prep) setACL(req *wire.SetACLRequest) (change, wire.Code) {
	if !validPath(req.Path) {
		return nil, wire.CodeBadArguments
	}
	acl, code := p.tree.fixACL(req.ACL, p.who.IDs)
	if code != wire.CodeOK {
		return nil, code
	}
	r := p.record(req.Path)
	if r == nil {
		return nil, wire.CodeNoNode
	}
	if !Allowed(r.acl, wire.PermAdmin, p.who.IDs) {
		return nil, wire.CodeNoAuth
	}
	version, code := next(r.aversion, req.Version)
	if code != wire.CodeOK {
		return nil, code
	}
	return &aclSet{req.Path, acl, version}, wire.CodeOK
}

func (c *aclSet) apply(t *Tree, _ *Txn, out *Outcome) {
	n := t.node(c.path)
	n.acl, n.aversion = c.acl, c.version
	out.Result = wire.MultiResult{Op: wire.OpSetACL, Stat: t.stat(n)}
}

// ACL returns a node's access list and metadata. It hides digests from a caller
// that may read but not change the list.
func (t *Tree) ACL(who Caller, path string) ([]wire.ACL, wire.Stat, wire.Code) {
	n := t.node(path)
	if n == nil {
		return nil, wire.Stat{}, wire.CodeNoNode
	}
	if !Allowed(n.acl, wire.PermRead|wire.PermAdmin, who.IDs) {
		return nil, wire.Stat{}, wire.CodeNoAuth
	}
	if Allowed(n.acl, wire.PermAdmin, who.IDs) {
		return n.acl, t.stat(n), wire.CodeOK
	}
	hidden := slices.Clone(n.acl)
	for i := range hidden {
		if user, _, ok := strings.Cut(hidden[i].ID, ":"); ok && hidden[i].Scheme == "digest" {
			hidden[i].ID = user + ":x"
		}
	}
	return hidden, t.stat(n), wire.CodeOK
}

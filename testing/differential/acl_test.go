package differential

import (
	"fmt"

	"github.com/paddock-zk/paddock/internal/wire"
)

func auth(scheme, data string) *wire.AuthRequest {
	return &wire.AuthRequest{Scheme: scheme, Auth: []byte(data)}
}

func acl(perms int32, scheme, id string) wire.ACL {
	return wire.ACL{Perms: perms, Scheme: scheme, ID: id}
}

func setACL(path string, version int32, acls ...wire.ACL) *wire.SetACLRequest {
	return &wire.SetACLRequest{Path: path, ACL: acls, Version: version}
}

// bobDigest belongs to "bob:secret".
const bobDigest = "bob:fyVmFCwVbTJYrznoSu1koqYEYF0="

func init() {
	add("acl", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		n := r.at("/n")
		a.do(wire.OpWhoAmI, wire.Empty{})
		a.do(wire.OpAuth, auth("digest", "bob:secret"))
		a.do(wire.OpAuth, auth("digest", "bob:secret"))
		a.do(wire.OpWhoAmI, wire.Empty{})
		req := create(n, 0)
		req.ACL = []wire.ACL{acl(31, "auth", "")}
		a.do(wire.OpCreate, req)
		a.do(wire.OpGetACL, path(n))
		for _, c := range []*conn{a, b} {
			c.do(wire.OpGetACL, path(n))
			c.do(wire.OpExists, get(n))
			c.do(wire.OpGetData, get(n))
			c.do(wire.OpGetChildren, get(n))
			c.do(wire.OpGetChildren2, get(n))
			c.do(wire.OpGetAllChildrenNumber, path(n))
			c.do(wire.OpSetData, set(n, "x", 9))
			c.do(wire.OpSetACL, setACL(n, 9, open...))
			c.do(wire.OpCreate, create(r.at("/n/c"), 0))
			c.do(wire.OpDelete, del(r.at("/n/none"), -1))
			c.do(wire.OpMulti, multi(op(wire.OpCheck, del(n, -1)), op(wire.OpSetData, set(n, "y", -1))))
			c.do(wire.OpMultiRead, multi(op(wire.OpGetData, get(n)), op(wire.OpGetChildren, get(n))))
			c.do(wire.OpGetData, watch(n))
			c.do(wire.OpSetWatches, &wire.SetWatchesRequest{Data: []string{n}})
		}
		b.do(wire.OpDelete, del(r.at("/n/c"), -1))
		a.do(wire.OpDelete, del(r.at("/n/c"), -1))
		b.do(wire.OpDelete, del(n, -1)) // the right to delete is the parent's to give
	})
	add("acl-set", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		n := r.at("/n")
		a.do(wire.OpCreate, create(n, 0))
		a.do(wire.OpSetACL, setACL(n, 0, acl(31, "digest", bobDigest), acl(1, "world", "anyone")))
		a.do(wire.OpGetACL, path(n))
		b.do(wire.OpAuth, auth("digest", "bob:secret"))
		b.do(wire.OpGetACL, path(n))
		b.do(wire.OpSetACL, setACL(n, 0, open...))
		b.do(wire.OpSetACL, setACL(n, 1))
		b.do(wire.OpSetACL, setACL(n, 1, acl(31, "auth", "ignored"), acl(31, "ip", "127.0.0.1")))
		b.do(wire.OpGetACL, path(n))
		a.do(wire.OpGetACL, path(n))
		b.do(wire.OpSetACL, setACL(n, -1, acl(31, "ip", "127.0.0.0/8")))
		a.do(wire.OpSetACL, setACL(n, -1, acl(31, "ip", "10.0.0.0/8"), acl(16, "ip", "126.0.0.0/7")))
		a.do(wire.OpGetData, get(n))
		a.do(wire.OpSetACL, setACL(n, -1, acl(31, "ip", "0.0.0.0/0")))
		a.do(wire.OpGetData, get(n))
		a.do(wire.OpSetACL, setACL(n, -1, acl(31, "ip", "127.0.0.1/32")))
		a.do(wire.OpGetData, get(n))
		a.do(wire.OpSetACL, setACL(n, -1, acl(2, "world", "anyone")))
		a.do(wire.OpSetACL, setACL(n, -1, open...))
		a.do(wire.OpGetACL, path(n))
		a.do(wire.OpSetACL, setACL(r.at("/none"), -1, open...))
		a.do(wire.OpSetACL, setACL(r.at("/none"), -1))
		a.do(wire.OpGetACL, path(r.at("/none")))
		a.do(wire.OpExists, get(n))
	})
	add("acl-exists", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		a.do(wire.OpAuth, auth("digest", "bob:secret"))
		for i, perms := range []int32{0, 1, 2, 4, 8, 16, 30} {
			n := r.at(fmt.Sprint("/n", i))
			b.do(wire.OpExists, watch(n))
			req := create(n, 0)
			req.ACL = []wire.ACL{acl(31, "auth", ""), acl(perms, "world", "anyone")}
			a.do(wire.OpCreate, req)
			b.do(wire.OpExists, get(n))
			b.do(wire.OpExists, watch(n))
			b.do(wire.OpRemoveWatches, watches(n, wire.WatchAny))
			b.do(wire.OpMulti, multi(op(wire.OpCheck, del(n, 9))))
			b.do(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: r.base + 1e6, Data: []string{n}, Exist: []string{n}, Child: []string{n}})
			a.do(wire.OpSetData, set(n, "x", -1))
			a.do(wire.OpDelete, del(n, -1))
		}
	})
	add("acl-ip", func(r *run) {
		a := r.connect("a")
		for i, id := range []string{
			"::", "::1", "::1/128", "::1/129", "::1/0", "::1/-1", "::1/", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::8::9", "1:2:3:4::5:6:7:8",
			"::ffff:127.0.0.1", "fe80::1%eth0", "FE80::ABCD", "12345::", "g::", ":::", ":", "[::1]", "127.0.0.1/32", "127.0.0.1/", "127.0.0.1.2", "", "/", "127.0.0.01",
		} {
			req := create(r.at(fmt.Sprint("/n", i)), 0)
			req.ACL = []wire.ACL{acl(31, "ip", id)}
			a.do(wire.OpCreate, req)
			a.do(wire.OpGetData, get(req.Path))
		}
	})
	add("acl-super", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		n := r.at("/n")
		req := create(n, 0)
		req.ACL = []wire.ACL{acl(31, "digest", bobDigest)}
		a.do(wire.OpCreate, req)
		a.do(wire.OpGetData, get(n))
		a.do(wire.OpGetACL, path(n))
		c := r.connect("c")
		c.do(wire.OpAuth, auth("digest", "super:wrong"))
		c.do(wire.OpGetData, get(n))
		b.do(wire.OpAuth, auth("digest", "super:secret"))
		b.do(wire.OpWhoAmI, wire.Empty{})
		b.do(wire.OpGetData, get(n))
		b.do(wire.OpGetACL, path(n))
		b.do(wire.OpSetData, set("/zookeeper/config", "x", 99))
		b.do(wire.OpSetACL, setACL(n, -1, acl(31, "auth", "")))
		b.do(wire.OpGetACL, path(n))
	})
	add("auth", func(r *run) {
		for _, scheme := range []string{"ip", "world", "auth", "super", "sasl", "x509", "nonsense", ""} {
			c := r.connect("c-" + scheme)
			c.do(wire.OpAuth, auth(scheme, "x:y"))
			c.do(wire.OpWhoAmI, wire.Empty{})
		}
		for _, data := range []string{"", "bob", "bob:", ":secret", "bob:a:b", ":", "bob:\xff"} {
			c := r.connect("d-" + data)
			c.do(wire.OpAuth, auth("digest", data))
			c.do(wire.OpWhoAmI, wire.Empty{})
		}
	})
}

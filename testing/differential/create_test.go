package differential

import (
	"strings"

	"github.com/paddock-zk/paddock/internal/wire"
)

func create(path string, flags wire.Flags) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, Data: []byte("d"), ACL: open, Flags: flags}
}

func createTTL(path string, flags wire.Flags, ttl int64) *wire.CreateTTLRequest {
	return &wire.CreateTTLRequest{CreateRequest: *create(path, flags), TTL: ttl}
}

func get(path string) *wire.PathWatchRequest { return &wire.PathWatchRequest{Path: path} }
func watch(path string) *wire.PathWatchRequest {
	return &wire.PathWatchRequest{Path: path, Watch: true}
}
func del(path string, version int32) *wire.PathVersionRequest {
	return &wire.PathVersionRequest{Path: path, Version: version}
}

func init() {
	add("create", func(r *run) {
		a := r.connect("a")
		for _, op := range []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer} {
			for flags := wire.Flags(-1); flags <= 7; flags++ {
				path := r.at("/" + op.String() + strings.Repeat("x", int(flags)+1))
				a.do(op, create(path, flags))
				a.do(wire.OpExists, get(path))
			}
		}
		a.do(wire.OpGetChildren2, get(r.root))
		a.do(wire.OpGetEphemerals, &wire.PathRequest{Path: "/"})
	})
	add("create-ttl", func(r *run) {
		a := r.connect("a")
		for flags := wire.Flags(-1); flags <= 7; flags++ {
			for _, ttl := range []int64{0, 1, 100000, 1<<40 - 1, 1 << 40, -5} {
				if flags < 5 && ttl < 0 {
					continue // a real server does not survive it
				}
				a.do(wire.OpCreateTTL, createTTL(r.at("/t"), flags, ttl))
				a.do(wire.OpExists, get(r.at("/t")))
				a.do(wire.OpDelete, del(r.at("/t"), -1))
			}
		}
		a.do(wire.OpGetChildren2, get(r.root))
		a.do(wire.OpCreateTTL, createTTL(r.at("/p"), wire.FlagPersistentTTL, 100000))
		a.do(wire.OpCreate, create(r.at("/p/c"), 0))
		a.do(wire.OpExists, get(r.at("/p")))
	})
	add("create-sequence", func(r *run) {
		a := r.connect("a")
		a.do(wire.OpCreate, create(r.at("/q"), 0))
		for range 3 {
			a.do(wire.OpCreate, create(r.at("/q/s-"), wire.FlagSequence))
		}
		a.do(wire.OpDelete, del(r.at("/q/s-0000000001"), -1))
		a.do(wire.OpCreate, create(r.at("/q/plain"), 0))
		a.do(wire.OpCreate, create(r.at("/q/plain"), 0))
		a.do(wire.OpCreate2, create(r.at("/q/"), wire.FlagSequence))
		a.do(wire.OpCreate2, create(r.at("/q/e-"), wire.FlagEphemeralSequence))
		a.do(wire.OpCreate, create(r.at("/q/e-0000000006"), 0))
		a.do(wire.OpCreate, create(r.at("/q/e-"), wire.FlagSequence))
		a.do(wire.OpCreate, create(r.at("/q/e-0000000008"), 0))
		a.do(wire.OpCreate, create(r.at("/q/e-"), wire.FlagSequence))
		a.do(wire.OpGetChildren2, get(r.at("/q")))
	})
	add("create-refused", func(r *run) {
		a := r.connect("a")
		a.do(wire.OpCreate, create(r.at("/e"), wire.FlagEphemeral))
		a.do(wire.OpCreate, create(r.at("/e/c"), 0))
		a.do(wire.OpCreate, create(r.at("/e/c-"), wire.FlagSequence))
		a.do(wire.OpCreate, create(r.at("/no/c"), 0))
		a.do(wire.OpCreate, create("/", 0))
		a.do(wire.OpCreate, create("/zookeeper", 0))
		for _, acl := range [][]wire.ACL{
			nil, {}, {{Perms: 31, Scheme: "world", ID: "nobody"}}, {{Perms: 31, Scheme: "auth"}},
			{{Perms: 31, Scheme: "digest", ID: "x"}}, {{Perms: 31, Scheme: "digest", ID: "x:y:z"}}, {{Perms: 31, Scheme: "digest", ID: ":"}},
			{{Perms: 31, Scheme: "digest", ID: "a:"}}, {{Perms: 31, Scheme: "digest", ID: ":b"}}, {{Perms: 31, Scheme: "digest", ID: ""}},
			{{Perms: 31, Scheme: "ip", ID: "1.2.3"}}, {{Perms: 31, Scheme: "ip", ID: "1.2.3.4/33"}}, {{Perms: 31, Scheme: "ip", ID: "1.2.3.256"}},
			{{Perms: 31, Scheme: "ip", ID: "1.2.3.4/x"}}, {{Perms: 31, Scheme: "ip", ID: "::1"}}, {{Perms: 31, Scheme: "ip", ID: "1.2.3.4/8"}},
			{{Perms: 31, Scheme: "super", ID: ""}}, {{Perms: 31, Scheme: "nonsense", ID: "x"}}, {{Perms: 31, Scheme: "", ID: ""}},
			{{Perms: 31, Scheme: "x509", ID: "CN=x"}}, {{Perms: 31, Scheme: "sasl", ID: "x"}},
			{{Perms: 0, Scheme: "world", ID: "anyone"}}, {{Perms: 99, Scheme: "world", ID: "anyone"}},
			{{Perms: 31, Scheme: "world", ID: "anyone"}, {Perms: 31, Scheme: "world", ID: "anyone"}, {Perms: 1, Scheme: "world", ID: "anyone"}},
		} {
			req := create(r.at("/acl-"), wire.FlagSequence)
			req.ACL = acl
			a.do(wire.OpCreate, req)
			req = create(r.at("/no/acl"), 0)
			req.ACL = acl
			a.do(wire.OpCreate, req)
		}
	})
	add("create-paths", func(r *run) {
		a := r.connect("a")
		for _, p := range []string{
			"", "x", "x/y", "//", "//x", "/", "/./a", "/a/.", "/a/..", "/../a", "/...", "/.a", "/a/", "/a//b", "/a\x00b", "/\x01", "/\x1f", "/ ", "/\x7f", "/\u0080",
			"/\u009f", "/\u00a0", "/\ud7ff", "/\ue000", "/\uf8ff", "/\uf900", "/\uffef", "/\ufff0", "/\uffff", "/\U0001F600", "/\xff", "/é", "/%2f", "/\\", "/a\nb", "/~",
		} {
			if strings.HasPrefix(p, "/") {
				p = r.root + p
			}
			a.do(wire.OpCreate, create(p, 0))
			a.do(wire.OpCreate, create(p, wire.FlagSequence))
			a.do(wire.OpSetData, &wire.SetDataRequest{Path: p, Version: 99})
			a.do(wire.OpSetACL, &wire.SetACLRequest{Path: p, ACL: open, Version: 99})
			a.do(wire.OpDelete, del(p, 99))
			if p == "" {
				continue // the root, where scripts meet
			}
			a.do(wire.OpExists, get(p))
			a.do(wire.OpGetData, get(p))
			a.do(wire.OpGetChildren, get(p))
			a.do(wire.OpGetChildren2, get(p))
			a.do(wire.OpGetACL, &wire.PathRequest{Path: p})
			a.do(wire.OpGetAllChildrenNumber, &wire.PathRequest{Path: p + "-"})
			a.do(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpCheck, Request: del(p, 99)}}})
		}
	})
}

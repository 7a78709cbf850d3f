package differential

import (
	"fmt"

	"github.com/paddock-zk/paddock/internal/wire"
)

func set(path, data string, version int32) *wire.SetDataRequest {
	return &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version}
}

func path(p string) *wire.PathRequest { return &wire.PathRequest{Path: p} }

func init() {
	add("data", func(r *run) {
		a := r.connect("a")
		p := r.at("/n")
		a.do(wire.OpCreate, &wire.CreateRequest{Path: p, Data: nil, ACL: open})
		a.do(wire.OpGetData, get(p))
		a.do(wire.OpSetData, set(p, "one", 0))
		a.do(wire.OpSetData, set(p, "two", 0))
		a.do(wire.OpSetData, set(p, "two", 2))
		a.do(wire.OpSetData, set(p, "", -1))
		a.do(wire.OpGetData, get(p))
		a.do(wire.OpSetData, &wire.SetDataRequest{Path: p, Version: -1})
		a.do(wire.OpGetData, get(p))
		a.do(wire.OpSetData, set(p, "x", -2))
		a.do(wire.OpSetData, set(r.at("/none"), "x", -1))
		a.do(wire.OpSetData, set(r.at("/none"), "x", 5))
		a.do(wire.OpExists, get(r.at("/none")))
		a.do(wire.OpGetData, get(r.at("/none")))
		a.do(wire.OpSync, path(p))
		a.do(wire.OpSync, path(r.at("/none")))
		a.do(wire.OpSync, path("no path"))
		a.do(wire.OpSync, path("/\U0001F600é\uffff"))
	})
	add("delete", func(r *run) {
		a := r.connect("a")
		a.do(wire.OpCreate, create(r.at("/p"), 0))
		a.do(wire.OpCreate, create(r.at("/p/c"), 0))
		a.do(wire.OpDelete, del(r.at("/p"), -1))
		a.do(wire.OpDelete, del(r.at("/p"), 7))
		a.do(wire.OpSetData, set(r.at("/p/c"), "x", -1))
		a.do(wire.OpDelete, del(r.at("/p/c"), 0))
		a.do(wire.OpDelete, del(r.at("/p/c"), 1))
		a.do(wire.OpDelete, del(r.at("/p/c"), 1))
		a.do(wire.OpExists, get(r.at("/p")))
		a.do(wire.OpDelete, del(r.at("/none/c"), -1))
		a.do(wire.OpDelete, del(r.at("/p"), -2))
		a.do(wire.OpDelete, del(r.at("/p"), -1))
		for _, p := range []string{"", "x", "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/zookeeper/none", "//", r.root + "/"} {
			a.do(wire.OpDelete, del(p, -1))
		}
	})
	// Only a server asks itself for it.
	add("delete-container", func(r *run) {
		b := r.connect("b")
		b.do(wire.OpCreateContainer, create(r.at("/k"), wire.FlagContainer))
		b.do(wire.OpCreate, create(r.at("/plain"), 0))
		for i, p := range []string{"/k", "/plain", "/none"} {
			r.conns = r.conns[:1]
			a := r.connect(fmt.Sprint("a", i))
			a.do(wire.OpDeleteContainer, path(r.at(p)))
			b.do(wire.OpExists, get(r.at(p)))
		}
	})
	add("children", func(r *run) {
		a := r.connect("a")
		for _, p := range []string{"/p", "/p/a", "/p/b", "/p/a/x", "/pp", "/p/a/y", "/p/a/y/z"} {
			a.do(wire.OpCreate, create(r.at(p), 0))
		}
		for _, p := range []string{"/p", "/p/a", "/p/b", "/none"} {
			a.do(wire.OpGetChildren, get(r.at(p)))
			a.do(wire.OpGetChildren2, get(r.at(p)))
			a.do(wire.OpGetAllChildrenNumber, path(r.at(p)))
		}
		a.do(wire.OpDelete, del(r.at("/p/b"), -1))
		a.do(wire.OpGetChildren2, get(r.at("/p")))
		a.do(wire.OpCreate, create(r.at("/p/b"), 0))
		a.do(wire.OpGetChildren2, get(r.at("/p")))
	})
	add("system", func(r *run) {
		a := r.connect("a")
		for _, p := range []string{"/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
			a.do(wire.OpGetData, get(p))
			a.do(wire.OpGetChildren2, get(p))
			a.do(wire.OpGetACL, path(p))
			a.do(wire.OpGetAllChildrenNumber, path(p))
		}
		a.do(wire.OpSetData, set("/zookeeper/config", "x", -1))
		a.do(wire.OpCreate, create("/zookeeper/config/x", 0))
		a.do(wire.OpSetACL, &wire.SetACLRequest{Path: "/zookeeper/config", ACL: open, Version: -1})
		a.do(wire.OpReconfig, &wire.ReconfigRequest{Joining: "x", ConfigID: -1})
	})
	add("ephemerals", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		a.do(wire.OpCreate, create(r.at("/p"), 0))
		for _, p := range []string{"/p/a", "/p/b", "/q"} {
			a.do(wire.OpCreate, create(r.at(p), wire.FlagEphemeral))
		}
		b.do(wire.OpCreate, create(r.at("/p/c"), wire.FlagEphemeral))
		for _, prefix := range []string{"", "/", " ", r.root, r.at("/p"), r.at("/p/"), r.at("/p/a"), r.at("/none"), "x"} {
			a.do(wire.OpGetEphemerals, path(prefix))
		}
		b.do(wire.OpGetEphemerals, path("/"))
		b.do(wire.OpGetChildren2, get(r.at("/p")))
		a.close()
		r.note("a has closed its session")
		b.do(wire.OpGetChildren2, get(r.at("/p")))
		b.do(wire.OpExists, get(r.at("/q")))
	})
}

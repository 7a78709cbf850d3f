package differential

import "github.com/paddock-zk/paddock/internal/wire"

func multi(ops ...wire.MultiOp) *wire.MultiRequest { return &wire.MultiRequest{Ops: ops} }

func op(o wire.Op, req wire.Record) wire.MultiOp { return wire.MultiOp{Op: o, Request: req} }

func init() {
	add("multi", func(r *run) {
		a := r.connect("a")
		n := r.at("/n")
		a.do(wire.OpMulti, multi())
		a.do(wire.OpMulti, multi(
			op(wire.OpCreate, create(n, 0)),
			op(wire.OpCreate2, create(r.at("/n/c"), wire.FlagEphemeralSequence)),
			op(wire.OpSetData, set(n, "two", 0)),
			op(wire.OpSetData, set(n, "three", 1)),
			op(wire.OpCheck, del(n, 2)),
			op(wire.OpCreateContainer, create(r.at("/k"), wire.FlagContainer)),
			op(wire.OpCreateTTL, createTTL(r.at("/t"), wire.FlagPersistentTTL, 50000)),
			op(wire.OpDelete, del(r.at("/k"), 0)),
		))
		a.do(wire.OpExists, get(n))
		a.do(wire.OpGetChildren2, get(n))
		a.do(wire.OpGetChildren2, get(r.root))
		a.do(wire.OpMulti, multi(
			op(wire.OpCreate, create(r.at("/n/x"), 0)),
			op(wire.OpSetData, set(n, "never", 0)),
			op(wire.OpDelete, del(r.at("/none"), 0)),
			op(wire.OpCheck, del(n, -1)),
		))
		a.do(wire.OpExists, get(n))
		a.do(wire.OpMulti, multi(op(wire.OpCheck, del(n, 7))))
		a.do(wire.OpMulti, multi(op(wire.OpCheck, del(n, 2)), op(wire.OpCheck, del(n, -1))))
		a.do(wire.OpExists, get(n))
		a.do(wire.OpMulti, multi(
			op(wire.OpCreate, create(r.at("/q"), 0)),
			op(wire.OpCreate, create(r.at("/q/s-"), wire.FlagSequence)),
			op(wire.OpCreate, create(r.at("/q/s-"), wire.FlagSequence)),
			op(wire.OpDelete, del(r.at("/q/s-0000000000"), -1)),
			op(wire.OpCreate, create(r.at("/q/s-"), wire.FlagSequence)),
		))
		a.do(wire.OpGetChildren2, get(r.at("/q")))
		a.do(wire.OpMulti, multi(op(wire.OpCreate, create(r.at("/q/s-"), wire.FlagSequence)), op(wire.OpCheck, del(r.at("/no"), 0))))
		a.do(wire.OpCreate, create(r.at("/q/s-"), wire.FlagSequence))
		a.do(wire.OpMulti, multi(
			op(wire.OpDelete, del(r.at("/q"), -1)),
			op(wire.OpCreate, create(r.at("/y"), 0)),
		))
		a.do(wire.OpMulti, multi(
			op(wire.OpCreate, create(r.at("/z"), 0)),
			op(wire.OpDelete, del(r.at("/z"), 0)),
			op(wire.OpCreate, create(r.at("/z"), wire.FlagEphemeral)),
			op(wire.OpCreate, create(r.at("/z/c"), 0)),
		))
		a.do(wire.OpMulti, multi(
			op(wire.OpCreate, create(r.at("/z"), 0)),
			op(wire.OpDelete, del(r.at("/z"), 0)),
			op(wire.OpCreate, create(r.at("/z"), wire.FlagEphemeral)),
			op(wire.OpSetData, set(r.at("/z"), "x", 0)),
			op(wire.OpDelete, del(r.at("/z"), 0)),
			op(wire.OpDelete, del(r.at("/z"), 0)),
		))
		a.do(wire.OpMulti, multi(
			op(wire.OpCreate, create(r.at("/z"), 0)),
			op(wire.OpDelete, del(r.at("/z"), 0)),
			op(wire.OpCreate, create(r.at("/z"), wire.FlagEphemeral)),
			op(wire.OpSetData, set(r.at("/z"), "x", 0)),
		))
		a.do(wire.OpGetData, get(r.at("/z")))
		a.do(wire.OpMulti, multi(op(wire.OpCreate, create(r.at("/c1"), wire.FlagContainer))))
		a.do(wire.OpExists, get(r.at("/c1")))
		a.do(wire.OpMulti, multi(op(wire.OpCreate, create("bad", 0)), op(wire.OpCreate, create(r.at("/ok"), 0))))
	})
	add("multi-modes", func(r *run) {
		a := r.connect("a")
		for _, o := range []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer} {
			for flags := wire.Flags(-1); flags <= 7; flags++ {
				a.do(wire.OpMulti, multi(op(o, create(r.at("/n"), flags)), op(wire.OpCheck, del(r.root, -1))))
				a.do(wire.OpExists, get(r.at("/n")))
				a.do(wire.OpDelete, del(r.at("/n"), -1))
			}
		}
		for flags := wire.Flags(-1); flags <= 7; flags++ {
			for _, ttl := range []int64{-1, 0, 1, 100000, 1<<40 - 1, 1 << 40} {
				if ttl < 0 && flags < 5 {
					continue // a real server does not survive it
				}
				a.do(wire.OpMulti, multi(op(wire.OpCheck, del(r.root, -1)), op(wire.OpCreateTTL, createTTL(r.at("/n"), flags, ttl))))
				a.do(wire.OpDelete, del(r.at("/n"), -1))
			}
		}
		a.do(wire.OpGetChildren2, get(r.root))
	})
	add("multi-reads-inside", func(r *run) {
		a := r.connect("a")
		a.do(wire.OpMulti, multi(op(wire.OpGetData, get(r.root))))
		a.do(wire.OpMulti, multi(op(wire.OpGetChildren, get(r.root)), op(wire.OpGetData, get(r.at("/none")))))
		a.do(wire.OpMulti, multi(op(wire.OpGetData, get(r.root)), op(wire.OpCreate, create(r.at("/x"), 0))))
		a.do(wire.OpMulti, multi(op(wire.OpCreate, create(r.at("/y"), 0)), op(wire.OpGetChildren, get(r.root))))
		a.do(wire.OpGetChildren, get(r.root))
	})
	add("multiread", func(r *run) {
		a := r.connect("a")
		a.do(wire.OpCreate, create(r.at("/n"), 0))
		a.do(wire.OpMultiRead, multi())
		a.do(wire.OpMultiRead, multi(
			op(wire.OpGetData, get(r.at("/n"))),
			op(wire.OpGetChildren, get(r.root)),
			op(wire.OpGetData, get(r.at("/none"))),
			op(wire.OpGetChildren, get(r.at("/none"))),
			op(wire.OpGetData, get(r.at("/n"))),
		))
		a.do(wire.OpMultiRead, multi(op(wire.OpGetData, watch(r.at("/n"))), op(wire.OpGetChildren, watch(r.at("/n")))))
		a.do(wire.OpSetData, set(r.at("/n"), "x", -1))
		a.do(wire.OpCreate, create(r.at("/n/c"), 0))
		a.do(wire.OpMultiRead, multi(op(wire.OpGetData, get(r.at("/n"))), op(wire.OpCreate, create(r.at("/x"), 0))))
	})
}

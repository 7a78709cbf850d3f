package differential

import (
	"encoding/binary"
	"fmt"

	"github.com/paddock-zk/paddock/internal/wire"
)

// raws is a string as it is sent.
func raws(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

func init() {
	add("session", func(r *run) {
		for i, timeout := range []int32{-1, 0, 1, 3999, 4000, 4001, 39999, 40000, 40001, 1<<31 - 1} {
			c := r.dial(fmt.Sprintf("t%d", i))
			c.hello(wire.ConnectRequest{Timeout: timeout, Password: make([]byte, 16), HasReadOnly: true})
		}
		old := r.dial("old")
		old.hello(wire.ConnectRequest{Timeout: 5000, Password: make([]byte, 16)})
		nopass := r.dial("nopass")
		nopass.hello(wire.ConnectRequest{Timeout: 5000, HasReadOnly: true})
		ro := r.dial("ro")
		ro.hello(wire.ConnectRequest{Timeout: 5000, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: true})
		version := r.dial("version")
		version.hello(wire.ConnectRequest{ProtocolVersion: 7, Timeout: 5000, Password: make([]byte, 16), HasReadOnly: true})
	})
	add("session-renew", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		a.do(wire.OpCreate, create(r.at("/e"), wire.FlagEphemeral))
		a.do(wire.OpAuth, auth("digest", "bob:secret"))
		a.drop()
		a2 := a.again("a2")
		a2.do(wire.OpExists, get(r.at("/e")))
		a2.do(wire.OpWhoAmI, wire.Empty{}) // identities belong to the connection
		r.note("another timeout")
		a3 := r.dial("a3")
		a3.hello(wire.ConnectRequest{Timeout: 7000, SessionID: a.session, Password: a.password, HasReadOnly: true})
		a2.do(wire.OpExists, get(r.root))
		a3.do(wire.OpExists, get(r.at("/e")))
		r.note("wrong password")
		wrong := r.dial("wrong")
		wrong.hello(wire.ConnectRequest{Timeout: 5000, SessionID: a.session, Password: make([]byte, 16), HasReadOnly: true})
		short := r.dial("short")
		short.hello(wire.ConnectRequest{Timeout: 5000, SessionID: a.session, Password: []byte{1}, HasReadOnly: true})
		none := r.dial("none")
		none.hello(wire.ConnectRequest{Timeout: 5000, SessionID: a.session, HasReadOnly: true})
		r.note("what became of the connection")
		a3.do(wire.OpExists, get(r.at("/e")))
		a4 := a.again("a4")
		a4.do(wire.OpExists, get(r.at("/e")))
		b.do(wire.OpExists, get(r.at("/e")))
		r.note("unknown session")
		unknown := r.dial("unknown")
		unknown.hello(wire.ConnectRequest{Timeout: 5000, SessionID: 12345, Password: a.password, HasReadOnly: true})
		r.note("closed session")
		a4.last(wire.OpCloseSession)
		b.do(wire.OpExists, get(r.at("/e")))
		a.again("a5")
		r.note("the client has seen more than the server")
		ahead := r.dial("ahead")
		ahead.hello(wire.ConnectRequest{Timeout: 5000, LastZxidSeen: r.base + 10000, Password: make([]byte, 16), HasReadOnly: true})
		even := r.dial("even")
		even.hello(wire.ConnectRequest{Timeout: 5000, LastZxidSeen: b.zxid, Password: make([]byte, 16), HasReadOnly: true})
	})
	add("session-expiry", func(r *run) {
		a := r.dial("a")
		a.hello(wire.ConnectRequest{Timeout: 4000, Password: make([]byte, 16), HasReadOnly: true})
		b := r.connect("b")
		a.do(wire.OpCreate, create(r.at("/e"), wire.FlagEphemeral))
		b.do(wire.OpExists, watch(r.at("/e")))
		b.do(wire.OpGetChildren, watch(r.root))
		a.lapse()
		b.do(wire.OpExists, get(r.at("/e")))
		a.again("a2")
	})
	add("session-close", func(r *run) {
		a, b := r.connect("a"), r.connect("b")
		a.do(wire.OpCreate, create(r.at("/e"), wire.FlagEphemeral))
		a.do(wire.OpExists, watch(r.at("/e")))
		b.do(wire.OpExists, watch(r.at("/e")))
		a.last(wire.OpCloseSession)
		b.do(wire.OpExists, get(r.at("/e")))
	})
	add("frames", func(r *run) {
		b := r.connect("b")
		long := make([]byte, 1<<20)
		for _, f := range []struct {
			what string
			b    []byte
		}{
			{"no header", []byte{0, 0, 0, 0}},
			{"half a header", []byte{0, 0, 0, 4, 0, 0, 0, 1}},
			{"negative length", []byte{0xff, 0xff, 0xff, 0xff}},
			{"the largest length", []byte{0x7f, 0xff, 0xff, 0xff}},
			{"one byte too long", append([]byte{0, 0x10, 0, 0}, long...)},
		} {
			c := r.connect("c")
			c.send(f.what, f.b)
			r.conns = r.conns[:1]
			c = r.dial("d")
			c.send(f.what+" first", f.b)
			r.conns = r.conns[:1]
		}
		b.do(wire.OpExists, get(r.root))
	})
	add("frames-unknown", func(r *run) {
		b := r.connect("b")
		for _, o := range []wire.Op{0, 10, 20, 23, 99, 107, 108, 999, -1, -12, -1000, -2147483648} {
			c := r.connect(fmt.Sprintf("c%d", o))
			if o == wire.OpDeleteContainer || o == wire.OpWhoAmI {
				c.doRaw(o, "nothing", nil)
				continue
			}
			c.last(o)
		}
		b.do(wire.OpExists, get(r.root))
	})
	add("frames-body", func(r *run) {
		c := r.connect("c")
		for _, o := range []wire.Op{
			wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete, wire.OpSetData, wire.OpSetACL,
			wire.OpMulti, wire.OpMultiRead, wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2, wire.OpGetACL,
			wire.OpGetAllChildrenNumber, wire.OpGetEphemerals, wire.OpSync, wire.OpAddWatch, wire.OpCheckWatches, wire.OpRemoveWatches,
			wire.OpSetWatches, wire.OpSetWatches2,
		} {
			c.doRaw(o, "nothing", nil)
			c.doRaw(o, "half a length", []byte{0, 0})
			c.doRaw(o, "negative length", []byte{0xff, 0xff, 0xff, 0xf0})
			c.doRaw(o, "too long", []byte{0x7f, 0xff, 0xff, 0xff})
		}
		var e wire.Encoder
		get(r.root).Encode(&e)
		c.doRaw(wire.OpExists, "more than enough", append(e.B, 1, 2, 3))
		e.B = nil
		create("no path", 0).Encode(&e)
		for n := range e.B {
			if n%5 == 0 {
				c.doRaw(wire.OpCreate, fmt.Sprintf("all but %d bytes", n), e.B[:len(e.B)-n])
			}
		}
		c.doRaw(wire.OpPing, "body", []byte{1, 2, 3})
	})
	add("frames-auth", func(r *run) {
		for i, b := range [][]byte{nil, {0, 0}, {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf0}} {
			c := r.connect(fmt.Sprintf("c%d", i))
			c.doRaw(wire.OpAuth, "nonsense", b)
		}
	})
	// An answer may be the end of the connection, so each has one of its own.
	add("check-alone", func(r *run) {
		a := r.connect("a")
		req := create(r.at("/secret"), 0)
		req.ACL = []wire.ACL{acl(31, "digest", bobDigest)}
		a.do(wire.OpCreate, req)
		for i, check := range []*wire.PathVersionRequest{del(r.root, -1), del(r.root, 0), del(r.root, 99), del(r.at("/none"), -1), del(r.at("/secret"), -1), del("no path", -1)} {
			r.conns = r.conns[:1]
			c := r.connect(fmt.Sprint("c", i))
			c.do(wire.OpCheck, check)
			a.do(wire.OpExists, get(r.root))
		}
		for i, body := range [][]byte{nil, {0, 0}, {0xff, 0xff, 0xff, 0xf0}, {0x7f, 0xff, 0xff, 0xff}} {
			r.conns = r.conns[:1]
			c := r.connect(fmt.Sprint("d", i))
			c.doRaw(wire.OpCheck, fmt.Sprintf("%d bytes", len(body)), body)
			a.do(wire.OpExists, get(r.root))
		}
	})
	add("frames-counts", func(r *run) {
		a := r.connect("a")
		count := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
		none, one := count(0), append(count(1), raws(r.at("/none"))...)
		for _, n := range []int32{-1, -9, -2147483648} {
			for list := range 5 {
				body := make([]byte, 8) // the zxid
				for i := range 5 {
					switch {
					case i == list:
						body = append(body, count(n)...)
					case i < 3:
						body = append(body, one...)
					default:
						body = append(body, none...)
					}
				}
				if list < 3 {
					a.doRaw(wire.OpSetWatches, fmt.Sprintf("list %d of %d", list, n), body[:len(body)-8])
				}
				a.doRaw(wire.OpSetWatches2, fmt.Sprintf("list %d of %d", list, n), body)
				a.do(wire.OpRemoveWatches, watches(r.at("/none"), wire.WatchAny))
			}
			acls := append(append(raws(r.at("/n")), count(n)...), none...)
			a.doRaw(wire.OpSetACL, fmt.Sprintf("%d entries", n), acls)
			a.doRaw(wire.OpCreate, fmt.Sprintf("%d entries", n), append(append(raws(r.at("/n")), append(count(-1), count(n)...)...), none...))
		}
		a.do(wire.OpExists, get(r.at("/n")))
	})
}

//go:build realzk

package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/paddock-zk/paddock/internal/wire"
)

var (
	seeds = flag.Uint64("seeds", 20, "how many random scripts to run")
	steps = flag.Int("steps", 500, "how many steps each random script has")
)

// randomScript has clients that write, read, watch, leave and come back, all
// drawn from a seed.
func randomScript(seed uint64, steps int, version string) func(*run) {
	return func(r *run) {
		r.timeout = 40000 // a busy machine may stand still for a while
		g := &generator{run: r, likeTo: version, Rand: rand.New(rand.NewPCG(seed, 0))}
		for i := range 3 {
			g.clients = append(g.clients, r.connect(fmt.Sprintf("c%d", i)))
		}
		for i := range steps {
			at := g.IntN(len(g.clients))
			switch c := g.clients[at]; g.IntN(60) {
			case 0:
				c.last(wire.OpCloseSession)
				g.clients[at] = r.connect(fmt.Sprintf("n%d", i))
			case 1:
				g.clients[at] = c.again(fmt.Sprintf("n%d", i))
				if _, err := c.read(); err == nil {
					r.t.Error("the older connection is still open")
				}
				c.closed()
			case 2:
				c.do(wire.OpAuth, auth("digest", pick(g, "bob:secret", "bob:secret", "super:secret", "eve")))
			case 3:
				c.drop()
				g.clients[at] = c.again(fmt.Sprintf("n%d", i))
				g.clients[at].do(wire.OpSetWatches2, g.watches(c.zxid))
			case 4, 5:
				g.cut(c)
			default:
				c.do(g.request())
			}
		}
	}
}

// generator draws requests.
type generator struct {
	*run
	*rand.Rand
	likeTo  string // the version of zktest
	clients []*conn
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) path() string {
	p := g.root
	for range 1 + g.IntN(3) {
		p += "/" + pick(g, "a", "b")
	}
	return pick(g, p, p, p, p, p, p, p, g.root, p+"/", "x"+p)
}

func (g *generator) version() int32 { return pick[int32](g, -1, -1, -1, 0, 1, 2, -2) }

func (g *generator) acl() []wire.ACL {
	return pick(g, open, open, open, open, open, []wire.ACL{acl(g.Int32N(32), "digest", bobDigest)},
		[]wire.ACL{acl(31, "auth", "")}, []wire.ACL{acl(g.Int32N(32), "ip", "127.0.0.1"), acl(1, "world", "anyone")}, nil)
}

// create draws a create. A time to live is long, for a real server sweeps.
func (g *generator) create() (wire.Op, wire.Record) {
	p := g.path()
	if p == g.root {
		p += "/" // or sequence numbers would depend on what else the root has
	}
	req := &wire.CreateRequest{
		Path: p, Data: pick(g, nil, []byte("data"), []byte{}), ACL: g.acl(), Flags: wire.Flags(pick(g, 0, 0, 0, 1, 1, 2, 3, 3, 4)),
	}
	switch g.IntN(8) {
	case 0, 1:
		return wire.OpCreate2, req
	case 2:
		return wire.OpCreateContainer, req
	case 3:
		req.Flags += 3
		return wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: *req, TTL: 1e7}
	}
	return wire.OpCreate, req
}

func (g *generator) write() (wire.Op, wire.Record) {
	switch g.IntN(6) {
	case 0, 1:
		return wire.OpDelete, del(g.path(), g.version())
	case 2:
		return wire.OpSetData, set(g.path(), pick(g, "", "x", "longer"), g.version())
	}
	return g.create()
}

func (g *generator) watches(since int64) *wire.SetWatches2Request {
	return &wire.SetWatches2Request{
		SetWatchesRequest: wire.SetWatchesRequest{
			RelativeZxid: since, Data: []string{g.path()}, Exist: []string{g.path()}, Child: []string{g.path()},
		},
		Persistent: []string{g.path()}, PersistentRecursive: []string{g.path()},
	}
}

// cut sends a request that ends too early.
func (g *generator) cut(c *conn) {
	op, req := g.request()
	switch op {
	case wire.OpAuth, wire.OpDeleteContainer, wire.OpWhoAmI, wire.OpCheckWatches: // pinned differences, or nothing to cut
		return
	}
	var e wire.Encoder
	req.Encode(&e)
	n := min(1+g.IntN(9), len(e.B)) // paths have another length on another server
	c.doRaw(op, fmt.Sprintf("%s, all but %d bytes", g.text(req), n), e.B[:len(e.B)-n])
}

func (g *generator) request() (wire.Op, wire.Record) {
	switch g.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		return g.write()
	case 6, 7:
		m := multi()
		for range g.IntN(5) {
			o, req := g.write()
			if g.IntN(5) == 0 {
				o, req = wire.OpCheck, del(g.path(), g.version())
			}
			m.Ops = append(m.Ops, op(o, req))
		}
		return wire.OpMulti, m
	case 8:
		return wire.OpSetACL, setACL(g.path(), g.version(), g.acl()...)
	case 9:
		return wire.OpGetACL, path(g.path())
	case 10:
		return wire.OpAddWatch, addWatch(g.path(), pick[int32](g, 0, 1))
	case 11:
		return pick(g, wire.OpCheckWatches, wire.OpRemoveWatches), watches(strings.TrimPrefix(g.path(), "x"), pick[int32](g, 1, 2, 3, 4, 5))
	case 12:
		return wire.OpSetWatches2, g.watches(g.base + g.Int64N(200))
	case 13:
		return pick(g, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpSync), path(g.path())
	case 15:
		n := g.IntN(4)
		switch {
		case n == 0:
			return wire.OpWhoAmI, wire.Empty{}
		case n == 1:
			return wire.OpReconfig, &wire.ReconfigRequest{Joining: g.path(), ConfigID: g.Int64N(3) - 1}
		case g.likeTo != "3.8.0": // where the others end the connection
			return wire.OpSync, path(g.path())
		case n == 2:
			return wire.OpCheck, del(g.path(), g.version())
		}
		return wire.OpDeleteContainer, path(g.path())
	case 14:
		return wire.OpMultiRead, multi(op(wire.OpGetData, get(g.path())), op(wire.OpGetChildren, get(g.path())))
	}
	return pick(g, wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2), &wire.PathWatchRequest{Path: g.path(), Watch: g.IntN(2) == 0}
}

func TestRealSpeaksLikeZktestAtRandom(t *testing.T) {
	e := realServer(t, variant{})
	version, exact := nearest(t, e)
	requests, differ := 0, 0
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			script := randomScript(seed, *steps, version)
			onReal := transcript(t, e.Addr(0), fmt.Sprintf("/differential-%x", rand.Uint64()), nil, script)
			requests += strings.Count(onReal, "> ")
			ours := onZktest(t, version, variant{}, script)
			if exact {
				compare(t, onReal, ours)
			} else if onReal != ours {
				differ++
			}
		})
	}
	t.Logf("%d requests by %d seeds, on both; %d seeds differ from zktest's %s", requests, *seeds, differ, version)
}

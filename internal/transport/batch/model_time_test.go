package batch

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// everyPair has TestBatchModel try each pair of moments with each pair of events.
var everyPair = flag.Bool("pairs", false, "try all pairs of events of a batch, and not every 29th")

// What may be true of a request of a batch, whatever happens to it:
//
//   - It ends, once, and its list too.
//   - A reply without an error: it was applied once. A refusal, a call that was taken back,
//     a LostError of a request that was not sent: never. Any other: once at most.
//   - What a barrier behind Cancel does not show is not applied later either.
//   - Its node may be deleted meanwhile by who has it, with a request of its own. That one
//     ends truly, too, and only one of two that delete a node is told that it did.
//   - Afterwards the connection counts no write as under way.
//
// The test takes the request through all moments of its life, and has something happen at
// each of them, and at each pair.

// life is a way that a request takes.
type life struct {
	unknown bool // whether the parents exist
	missing bool // the request's parent does not
	deletes bool // it deletes a node
	refused int  // place of the neighbor that is refused, 0 for none: the request stands between 1 and 3
	undone  int  // how often it was undone before
	most    int  // bytes of a reply, 0 for the usual
}

var lives = map[string]life{
	"applied":                     {},
	"applied, parents unknown":    {unknown: true},
	"applied, parent missing":     {unknown: true, missing: true},
	"lists too long":              {most: 400},
	"undone before it is judged":  {refused: 1},
	"undone after it was judged":  {refused: 3},
	"undone for the fifth time":   {refused: 3, undone: mostUndone - 1},
	"a deletion":                  {deletes: true},
	"a deletion, undone before":   {deletes: true, refused: 1},
	"a deletion, undone after":    {deletes: true, refused: 3},
	"a deletion, alone after all": {deletes: true, refused: 1, undone: mostUndone - 1},
}

// happenings are what can happen at a moment. Faults are for moments at the server.
var happenings = map[string]func(*batchRun) zktest.Fault{
	"gives up": func(b *batchRun) zktest.Fault { b.giveUp(); return zktest.Fault{} },
	"killed":   func(b *batchRun) zktest.Fault { b.conn.Kill(errors.New("test")); return zktest.Fault{} },
	"cut":      func(b *batchRun) zktest.Fault { return b.ifAlive(b.srv.Disconnect) },
	"expired":  func(b *batchRun) zktest.Fault { return b.ifAlive(b.srv.ExpireSession) },
	"closed":   func(b *batchRun) zktest.Fault { b.closing(); return zktest.Fault{} },
	"released": func(b *batchRun) zktest.Fault { b.release(); return zktest.Fault{} },
	"shrinks":  func(b *batchRun) zktest.Fault { b.shrink(); return zktest.Fault{} },
	"parent removed": func(b *batchRun) zktest.Fault {
		b.operator(wire.OpDelete, &wire.PathVersionRequest{Path: b.request.parent, Version: -1})
		return zktest.Fault{}
	},
	"at the server: cut before": func(*batchRun) zktest.Fault { return zktest.CutBefore() },
	"at the server: cut after":  func(*batchRun) zktest.Fault { return zktest.CutAfter() },
	"at the server: no reply":   func(*batchRun) zktest.Fault { return zktest.DropReply() },
	"at the server: refused":    func(*batchRun) zktest.Fault { return zktest.Fail(int32(wire.CodeNoAuth)) },
	"at the server: throttled":  func(*batchRun) zktest.Fault { return zktest.Fail(int32(wire.CodeThrottledOp)) },
}

// batchRun is one life of a request.
type batchRun struct {
	t       testing.TB
	srv     *zktest.Server
	link    *transport.Transport
	conn    *transport.Conn
	batches *Batches
	admin   *transport.Conn
	request *joint
	size    int               // of the request
	node    string            // that it makes or deletes
	above   *joint            // deletes the node as well
	plan    map[string]string // moment to happening

	mu    sync.Mutex // guards seen: moments come from several goroutines
	seen  []string   // moments
	asked bool

	gaveUp, unsent bool
	closed         chan struct{}
	barrier        chan int // how often it was applied then
}

const below = "/model/r" // the request's parent

// at is a moment of the request's life.
func (b *batchRun) at(moment string) (f zktest.Fault) {
	b.mu.Lock()
	for i, base := 2, moment; slices.Contains(b.seen, moment); i++ { // the first, the second, ...
		moment = fmt.Sprint(base, " ", i)
	}
	b.seen = append(b.seen, moment)
	b.mu.Unlock()
	if what := b.plan[moment]; what != "" {
		f = happenings[what](b)
	}
	return f
}

// giveUp is what a caller does whose context ends. Then somebody else looks what is there.
func (b *batchRun) giveUp() {
	if b.gaveUp {
		return
	}
	b.gaveUp = true
	b.unsent = b.conn.Cancel(b.request.write)
	if b.request.list != nil {
		b.conn.Cancel(b.request.list)
	}
	check := wire.MultiOp{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/model", Version: -1}}
	barrier := transport.NewCall(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{check}})
	barrier.OnReply = func(call *transport.Call) {
		if call.Err() == nil {
			b.barrier <- b.applied(call.Zxid())
		}
	}
	_ = b.conn.Send(barrier) // on another connection nothing of this one comes later
}

// release is what the owner of the node does that has it, or will have it.
func (b *batchRun) release() {
	if b.above != nil {
		return
	}
	j := &joint{write: transport.NewCall(wire.OpDelete, &wire.PathVersionRequest{Path: b.node, Version: -1}), parent: b.request.parent}
	if err := b.batches.join(j); err == nil {
		b.above = j
	}
}

// small is a connection whose servers take only small transactions.
type small struct {
	*transport.Conn
	most int
}

func (s small) Limit(_ wire.Op, most int) int { return min(most, s.most) }

// shrink has the client learn that servers take no transaction of the size of two requests.
func (b *batchRun) shrink() {
	b.batches.mu.Lock()
	defer b.batches.mu.Unlock()
	b.batches.conn = small{b.conn, multiSize + b.size*3/2}
}

func (b *batchRun) closing() {
	if b.closed == nil {
		b.closed = make(chan struct{})
		go func() {
			defer close(b.closed)
			_ = b.link.Close(time.Second)
		}()
	}
}

// ifAlive does something to the session, unless that is over.
func (b *batchRun) ifAlive(do func(session int64) error) zktest.Fault {
	for _, s := range b.srv.Sessions() {
		if s.ID == b.conn.SessionID() {
			if err := do(s.ID); !errors.Is(err, zktest.ErrNoSession) { // it may end at this moment
				assert.NoError(b.t, err)
			}
		}
	}
	return zktest.Fault{}
}

// operator has another client do something.
func (b *batchRun) operator(op wire.Op, req wire.Record) {
	call := transport.NewCall(op, req)
	require.NoError(b.t, b.admin.Send(call))
	<-call.Done()
}

// applied is how often the request was, up to a transaction, or another that does the same.
func (b *batchRun) applied(upto int64) int {
	kind := zktest.Deleted
	if b.request.creates() {
		kind = zktest.Created
	}
	return b.changes(kind, upto)
}

func (b *batchRun) changes(kind zktest.ChangeKind, upto int64) (n int) {
	for _, txn := range b.srv.Transactions() {
		for _, change := range txn.Changes {
			if change.Kind == kind && txn.Zxid <= upto && txn.Session == b.conn.SessionID() && strings.HasPrefix(change.Path, below+"/n") {
				n++
			}
		}
	}
	return n
}

// rule says at which moment a request has come to the server.
func (b *batchRun) rule(r zktest.Request) zktest.Fault {
	about := false
	for _, p := range r.Paths {
		about = about || p == below || strings.HasPrefix(p, below+"/")
	}
	switch {
	case !about:
		return zktest.Fault{}
	case r.Op == "exists" && !b.asked:
		b.asked = true
		return b.at("asked")
	case r.Op == "multiRead":
		return b.at("listed together")
	}
	return b.at("at the server: " + r.Op)
}

// run lives a life and returns its moments.
func (way life) run(t *testing.T, plan map[string]string) (moments []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// It is of no test: a verb that comes too late for a session is no failure.
		srv, err := zktest.New(zktest.InMemory(), zktest.Latency(time.Millisecond), zktest.TransactionLog(), zktest.SweepInterval(0))
		require.NoError(t, err)
		t.Cleanup(func() { _ = srv.Close() })
		b := &batchRun{t: t, srv: srv, plan: plan, asked: !way.unknown, barrier: make(chan int, 1)}
		adminLink, admin := opened(t, srv, 1<<20)
		defer func() { assert.NoError(t, adminLink.Close(time.Minute)) }()
		b.admin = admin
		if way.most == 0 {
			way.most = 1 << 20
		}
		b.link, b.conn = opened(t, srv, way.most)
		defer b.closing()
		b.batches = b.conn.Source().(*Batches)
		all := b.joints(way)
		b.size = b.request.size()
		srv.On(zktest.Match{Session: b.conn.SessionID()}, zktest.Choose(b.rule))
		b.send(all)

		// All of it ends, and truly.
		limit := time.After(2 * time.Minute)
		for i, j := range all {
			for _, call := range j.calls() {
				select {
				case <-call.Done():
				case <-limit:
					require.FailNow(t, "never ends", "request %d, plan %v, moments %v", i, plan, b.seen)
				}
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait() // for the race detector: what the server's goroutines have noted comes before
		if b.above != nil {
			select {
			case <-b.above.write.Done():
			default:
				require.FailNow(t, "a release never ends", "plan %v, moments %v", plan, b.seen)
			}
		}
		b.judge(plan)
		moments = b.seen
	})
	return moments
}

// ups is told of connections.
type ups chan *transport.Conn

func (u ups) Up(c *transport.Conn)                            { u <- c }
func (u ups) Acked(*transport.Conn, transport.Ack)            {}
func (u ups) Event(*transport.Conn, wire.WatcherEvent, int64) {}
func (u ups) Down(*transport.Conn, error)                     {}
func (u ups) Failed(string, error)                            {}
func (u ups) Expired(int64)                                   {}

// opened is a transport with its first connection.
func opened(t *testing.T, srv *zktest.Server, mostReply int) (*transport.Transport, *transport.Conn) {
	t.Helper()
	up := make(ups, 100)
	link := transport.New(transport.Config{
		Holding: func() time.Duration { return 0 },
		Servers: []string{srv.ConnectString()}, SessionTimeout: 9 * time.Second, ConnectTimeout: 3 * time.Second,
		Dial: srv.DialContext, MaxReply: mostReply, MaxRequest: 1 << 20, Logger: zap.NewNop(), Source: new(Counts).Source,
	}, up)
	require.NoError(t, link.Open())
	return link, <-up
}

// joints are the request and its neighbors.
func (b *batchRun) joints(way life) (all []*joint) {
	container := func(path string) *wire.CreateRequest {
		return &wire.CreateRequest{Path: path, ACL: []wire.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}}
	}
	b.operator(wire.OpCreate, container("/model"))
	for i := range 4 {
		parent := fmt.Sprint("/model/", i)
		if i == 2 {
			parent = below
		}
		name, flags, others := parent+"/n", wire.Flags(0), 0
		if i != way.refused || way.refused == 0 {
			flags = wire.FlagSequence
		}
		if i != 2 || !way.missing {
			b.operator(wire.OpCreate, container(parent))
			others = 8 * (way.most % 3)
			for k := range others { // names that make a list long
				b.operator(wire.OpCreate, container(fmt.Sprint(parent, "/other", k)))
			}
		}
		var j *joint
		if way.deletes {
			j = deletionIn(parent)
			if flags != 0 {
				b.operator(wire.OpCreate, container(name))
			}
		} else {
			j = creationIn(parent, 0)
			req := container(name)
			req.Flags = flags
			j.write = transport.NewCall(wire.OpCreate2, req)
			j.make = wire.MultiOp{Op: wire.OpCreate, Request: container(parent)}
			if flags == 0 {
				b.operator(wire.OpCreate, container(name)) // so it is refused
			}
		}
		if i == 2 {
			b.request, b.node = j, name
			if !way.deletes {
				b.node = fmt.Sprintf("%s%010d", name, others)
			}
			j.undone = way.undone
		}
		j.write.OnReply = func(*transport.Call) { b.at(fmt.Sprint("reply ", i)) }
		if !way.unknown {
			b.batches.knowParents(j)
		}
		all = append(all, j)
	}
	return all
}

// send has the requests leave together: two others are on their way before.
func (b *batchRun) send(all []*joint) {
	b.srv.Stall(b.conn.SessionID(), zktest.FromClient)
	for range nearFlights {
		require.NoError(b.t, b.batches.join(deletionIn("/no")))
		synctest.Wait()
	}
	for _, j := range all {
		require.NoError(b.t, b.batches.join(j))
	}
	b.at("queued")
	b.srv.Unstall(b.conn.SessionID())
}

// What a call says of its request.
const (
	notDone = iota
	done
	mayBeDone
)

func result(call *transport.Call) int {
	var lost *transport.LostError
	switch {
	case errors.As(call.Err(), &lost) && !lost.Sent, call.Err() == nil && call.Code() != wire.CodeOK:
		return notDone
	case call.Err() == nil:
		return done
	}
	return mayBeDone
}

// judge compares what the request was told with what was done.
func (b *batchRun) judge(plan map[string]string) {
	applied, call := b.applied(math.MaxInt64), b.request.write
	told := fmt.Sprintf("plan %v, moments %v, cancelled %v, error %v, code %v", plan, b.seen, b.unsent, call.Err(), call.Code())
	if b.above != nil {
		b.judgeDeletions(told)
	}
	if b.above == nil || b.request.creates() { // else it does not matter which of the two has deleted the node
		switch was := result(call); {
		case b.unsent, was == notDone:
			assert.Zero(b.t, applied, told)
		case was == done:
			assert.Equal(b.t, 1, applied, told)
			b.judgeZxid(told)
		default:
			assert.LessOrEqual(b.t, applied, 1, told)
		}
		select {
		case then := <-b.barrier:
			assert.Equal(b.t, then, applied, "sent after it was given up: %s", told)
		default:
		}
	}
	b.batches.mu.Lock()
	defer b.batches.mu.Unlock()
	if b.batches.over == nil {
		assert.Zero(b.t, b.batches.flights, told)
	}
	assert.Empty(b.t, b.batches.waiting, told)
	assert.Empty(b.t, b.batches.asking, told)
}

// judgeZxid compares the zxid that the reply shows with that of the transaction.
func (b *batchRun) judgeZxid(told string) {
	call := b.request.write
	assert.Equal(b.t, 1, b.applied(call.Zxid())-b.applied(call.Zxid()-1), told)
	if b.request.creates() {
		var made wire.Create2Response
		assert.NoError(b.t, call.Decode(&made), told)
		assert.Equal(b.t, call.Zxid(), made.Stat.Czxid, "a lock's fencing token: %s", told)
	}
}

// judgeDeletions compares what those were told who deleted the node with what was done.
func (b *batchRun) judgeDeletions(told string) {
	calls := []*transport.Call{b.above.write}
	if !b.request.creates() {
		calls = append(calls, b.request.write)
	}
	var of [mayBeDone + 1]int
	for _, call := range calls {
		of[result(call)]++
	}
	deleted := b.changes(zktest.Deleted, math.MaxInt64)
	assert.LessOrEqual(b.t, deleted, 1, told)
	assert.GreaterOrEqual(b.t, deleted, of[done], told)
	assert.LessOrEqual(b.t, deleted, of[done]+of[mayBeDone], told)
}

// fits is whether something can happen at a moment.
func fits(moment, happening string) bool {
	atServer := !strings.HasPrefix(moment, "reply") && moment != "queued"
	return atServer || !strings.HasPrefix(happening, "at the server")
}

func TestBatchModel(t *testing.T) {
	runs := 0
	for name, way := range lives {
		t.Run(name, func(t *testing.T) {
			none := way.run(t, nil)
			require.False(t, t.Failed())
			require.NotEmpty(t, none)
			t.Log(none)
			for i, moment := range none {
				for _, what := range slices.Sorted(maps.Keys(happenings)) {
					if !fits(moment, what) {
						continue
					}
					seen := way.run(t, map[string]string{moment: what})
					runs++
					require.False(t, t.Failed())
					for _, later := range seen[min(i+1, len(seen)):] {
						for _, then := range slices.Sorted(maps.Keys(happenings)) {
							if runs++; !fits(later, then) || !*everyPair && runs%29 != 0 {
								continue
							}
							way.run(t, map[string]string{moment: what, later: then})
							require.False(t, t.Failed())
						}
					}
				}
			}
		})
	}
	t.Logf("%d runs", runs)
}

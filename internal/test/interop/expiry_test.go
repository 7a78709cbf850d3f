//go:build interop

package interop

import (
	"cmp"
	"flag"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

var terms = flag.Int("terms", 25, "how many terms each language has while sessions expire")

// Candidates of both languages lead in turn while one session after another is ended under
// them. Each leader writes its id to a node. The server's log says whose turn it was at
// each write: what we write comes from the leader, always, and the terms come in the
// order of the nodes.
func TestElectionWhileSessionsExpire(t *testing.T) {
	for _, kind := range elections {
		t.Run(kind, func(t *testing.T) {
			srv := zktest.Start(t, zktest.Tick(tick), zktest.TransactionLog())
			admin := ourClient(t, srv.ConnectString())
			_, err := admin.Create(t.Context(), "/written", nil, framework.Persistent)
			require.NoError(t, err)
			e := &expiring{kind: kind, srv: srv, led: map[string]*atomic.Int64{"go": new(atomic.Int64), "java": new(atomic.Int64)}}
			var wg sync.WaitGroup
			for _, language := range languages {
				for _, p := range shared.peers[language] {
					c := p.client(t, srv.ConnectString())
					wg.Go(func() { e.stand(p, c) })
				}
			}
			e.expire(admin.SessionID())
			wg.Wait()
			l := judge(srv.Transactions(), map[string]string{"latch": "latch-", "selector": "lock-"}[kind])
			t.Logf("%s: %d terms, %d of ours and %d of Curator's; %d sessions expired; late writes: ours %d, Curator's %d",
				kind, l.terms["go"]+l.terms["java"], l.terms["go"], l.terms["java"], e.expired, l.late["go"], l.late["java"])
			assert.Zero(t, l.late["go"], "a write that did not come from the leader")
			assert.Zero(t, l.disorder, "a term came before one of an older node")
			assert.NotZero(t, e.expired)
		})
	}
}

// expiring is an election in which sessions expire.
type expiring struct {
	kind    string
	srv     *zktest.Server
	led     map[string]*atomic.Int64 // by language
	expired int
}

func (e *expiring) over() bool {
	return min(e.led["go"].Load(), e.led["java"].Load()) >= int64(*terms)
}

// stand has a peer stand again and again. What fails, fails for the end of a session.
func (e *expiring) stand(p *peer, client string) {
	for !e.over() {
		id := shared.name(p.language + "-")
		if _, err := p.begin("stand", id, client, e.kind, "/e").wait(patience); err != nil {
			continue
		}
		// A LeaderSelector whose session ends while it waits does not come back.
		if _, err := p.begin("led", id).wait(5 * time.Second); err == nil {
			if _, err := p.begin("write", id, client, "/written").wait(patience); err == nil {
				e.led[p.language].Add(1)
			}
		}
		_, _ = p.begin("leave", id).wait(patience)
	}
}

// expire ends one session after another.
func (e *expiring) expire(but int64) {
	for again := time.NewTicker(300 * time.Millisecond); !e.over(); <-again.C {
		all := slices.DeleteFunc(e.srv.Sessions(), func(s zktest.Session) bool { return s.ID == but })
		if len(all) > 0 && e.srv.ExpireSession(all[rand.IntN(len(all))].ID) == nil {
			e.expired++
		}
	}
}

// ledger is what the server's log says of an election.
type ledger struct {
	terms, late map[string]int // by language
	disorder    int            // terms of nodes older than that of a term before
}

// judge replays the log: who has the first node is the leader.
func judge(log []zktest.Transaction, mark string) ledger {
	l := ledger{terms: make(map[string]int), late: make(map[string]int)}
	nodes := make(map[string]string) // ids, by the number in the node's name
	last := ""
	for _, tx := range log {
		for _, c := range tx.Changes {
			_, number, ours := strings.Cut(path.Base(c.Path), mark)
			switch {
			case c.Path == "/written" && c.Kind == zktest.DataSet && len(c.Data) > 0:
				id := string(c.Data)
				language, _, _ := strings.Cut(id, "-")
				if len(nodes) == 0 {
					l.late[language]++
					continue
				}
				first := slices.MinFunc(slices.Collect(maps.Keys(nodes)), cmp.Compare[string])
				if nodes[first] != id {
					l.late[language]++
					continue
				}
				l.terms[language]++
				if first < last {
					l.disorder++
				}
				last = first
			case c.Path == "/e" && c.Kind == zktest.Deleted: // a container, while no node was in it
				last = ""
			case path.Dir(c.Path) != "/e" || !ours:
			case c.Kind == zktest.Created:
				nodes[number] = string(c.Data)
			case c.Kind == zktest.Deleted:
				delete(nodes, number)
			}
		}
	}
	return l
}

// The checker finds a write that does not come from the leader, and terms out of order.
func TestJudgeOfElections(t *testing.T) {
	node := func(kind zktest.ChangeKind, path, data string) zktest.Transaction {
		return zktest.Transaction{Changes: []zktest.Change{{Kind: kind, Path: path, Data: []byte(data)}}}
	}
	first, second := "/e/_c_1-latch-0000000000", "/e/_c_2-latch-0000000001"
	log := []zktest.Transaction{
		node(zktest.Created, first, "go-1"), node(zktest.Created, second, "java-1"),
		node(zktest.DataSet, "/written", "go-1"), node(zktest.DataSet, "/written", "java-1"),
		node(zktest.Deleted, first, ""), node(zktest.DataSet, "/written", "java-1"),
		node(zktest.DataSet, "/written", "go-1"),
	}
	assert.Equal(t, ledger{terms: map[string]int{"go": 1, "java": 1}, late: map[string]int{"go": 1, "java": 1}}, judge(log, "latch-"))
	log = append(log, node(zktest.Created, first, "go-2"), node(zktest.DataSet, "/written", "go-2"))
	assert.Equal(t, 1, judge(log, "latch-").disorder)
}

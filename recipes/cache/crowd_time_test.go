package cache

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

var crowds = flag.Bool("crowds", false, "10,000 subscribers of a cache and 100,000 changes, 1,000 caches of a client, 1,000 clients with a cache")

// A tenth of many subscribers never reads. They hold up nobody, and what is kept for them is
// bounded: all of them together have the History and a number each.
func TestSubscribersThatNeverRead(t *testing.T) {
	subscribers, changes, history := 500, 5_000, 1_000
	if *crowds {
		subscribers, changes, history = 10_000, 100_000, 16_384
	}
	bubble(t, func(t *testing.T, _ *zktest.Server, client, other *framework.Client) {
		const batch = 100
		many(t, other, batch)
		c := started(t, client, "/app", text, History(history))
		ready(t, c)
		var readers sync.WaitGroup
		stuck := make(chan struct{})
		told := make([]int, subscribers)
		for i := range subscribers {
			follow := c.Steps
			if i%3 == 0 {
				follow = c.Latest
			}
			readers.Go(func() {
				for step, err := range follow(t.Context()) {
					if err != nil {
						return
					}
					if i%10 == 0 {
						<-stuck
					}
					told[i] += len(step.Changes)
				}
			})
		}
		most := 0
		for n := range changes / batch {
			tx := other.Transaction()
			for i := range batch {
				tx.Set(fmt.Sprintf("/app/%05d", i), fmt.Append(nil, n), framework.AnyVersion)
			}
			results, err := tx.Commit(t.Context())
			require.NoError(t, err)
			_, err = c.Await(t.Context(), results[0].Stat.Mzxid)
			require.NoError(t, err)
			synctest.Wait()
			c.mu.Lock()
			most = max(most, c.kept, len(c.steps)*batch)
			c.mu.Unlock()
		}
		info := client.Entries()[0].Numbers
		t.Logf("crowds: %d subscribers, %d changes: %d kept at most", subscribers, changes, most)
		assert.LessOrEqual(t, most, history)
		assert.Equal(t, int64(subscribers), info["readers"])
		assert.Equal(t, int64(subscribers/10), info["readers behind"])
		for i, n := range told {
			if i%10 != 0 {
				require.Equal(t, changes, n, "subscriber %d", i)
			}
		}
		close(stuck)
		synctest.Wait()
		assert.Zero(t, client.Entries()[0].Numbers["readers behind"])
		c.Close()
		readers.Wait()
	})
}

// A client may have many caches, also on one path and in each other. A change costs one read
// for each cache that it concerns.
func TestManyCachesOfOneClient(t *testing.T) {
	n := 300
	if *crowds {
		n = 1000
	}
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		var caches []*Cache[string]
		for i := range n {
			made(t, other, fmt.Sprintf("/r/%d/x", i))
			caches = append(caches, started(t, client, fmt.Sprintf("/r/%d", i), text))
		}
		around := started(t, client, "/r", text)
		twin := started(t, client, "/r/7", text, Depth(1))
		inside := started(t, client, "/r/7/x", text, Depth(0))
		caches = append(caches, around, twin, inside)
		for _, c := range caches {
			ready(t, c)
		}
		before := srv.Requests()["multiRead"]
		stat, err := other.Set(t.Context(), "/r/7/x", []byte("1"), framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(time.Second)
		t.Logf("crowds: a change that concerns 4 of %d caches of a client made %d requests for several reads", len(caches), srv.Requests()["multiRead"]-before)
		assert.Equal(t, 4, srv.Requests()["multiRead"]-before)
		for i, c := range []*Cache[string]{caches[7], around, twin, inside} {
			e, _ := c.Get("/r/7/x")
			assert.Equal(t, "1", e.Value, "%d", i)
			assert.GreaterOrEqual(t, c.Status().Zxid, stat.Mzxid)
		}

		srv.On(zktest.Match{Op: "connect", Session: client.SessionID(), Nth: 1}, zktest.Delay(time.Second))
		require.NoError(t, srv.Disconnect(client.SessionID()))
		_, err = other.Set(t.Context(), "/r/7/x", []byte("2"), framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		for _, c := range caches {
			require.True(t, c.Status().Current)
		}
		e, _ := around.Get("/r/7/x")
		assert.Equal(t, "2", e.Value)
		for _, c := range caches {
			c.Close()
		}
		time.Sleep(time.Second)
		kit.NothingLeft(t, srv)
	})
}

// Many clients with a cache of one tree: each reads a change once, and after the end of their
// server each reads the tree once, in a few requests.
func TestManyClients(t *testing.T) {
	clients := 100
	if *crowds {
		clients = 1000
	}
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.Latency(time.Millisecond))
		other := kit.Connect(t, &srv.Server)
		many(t, other, 500)
		var caches []*Cache[string]
		for range clients {
			c := started(t, kit.Connect(t, &srv.Server), "/app", text)
			ready(t, c)
			caches = append(caches, c)
		}
		before := srv.Requests()["multiRead"]
		const writes = 100
		for i := range writes {
			_, err := other.Set(t.Context(), fmt.Sprintf("/app/%05d", i), []byte("1"), framework.AnyVersion)
			require.NoError(t, err)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		t.Logf("crowds: %d writes made %d clients with a cache send %d requests for several reads", writes, clients, srv.Requests()["multiRead"]-before)
		assert.Equal(t, clients*writes, srv.Requests()["multiRead"]-before)
		before = srv.Requests()["multiRead"]
		require.NoError(t, srv.Member(srv.Leader()).Stop())
		time.Sleep(20 * time.Second)
		again := srv.Requests()["multiRead"] - before
		t.Logf("crowds: after the end of the leader %d clients with a cache of 501 nodes made %d requests for several reads", clients, again)
		assert.LessOrEqual(t, again, clients*10)
		for _, c := range caches {
			require.True(t, c.Status().Current)
			e, _ := c.Get("/app/00007")
			require.Equal(t, "1", e.Value)
		}
	})
}

package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/cache"
	zktest "github.com/paddock-zk/paddock/testing"
)

var histories = flag.Int("histories", 25, "random histories of a configuration, up to 1,500 and more")

// Whatever happens to the servers and to the service, each configuration that it applies was
// the one of some moment: the servers' log of transactions tells. What is no number leaves the
// last good one. In the end the service has the last configuration.
func TestRandomHistories(t *testing.T) {
	applied := 0
	for seed := range uint64(*histories) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.TransactionLog(), zktest.Seed(seed), zktest.Latency(time.Millisecond),
				zktest.LatencyBy(zktest.Uniform(0, 2*time.Millisecond)), zktest.ExpireEvery(10*time.Millisecond))
			all := history(t, srv, seed)
			applied += len(all)
			judge(t, srv, all)
		})
		require.False(t, t.Failed(), "seed %d", seed)
	}
	t.Logf("%d histories, %d configurations applied", *histories, applied)
}

// history lets writers change a configuration, breaks what a service needs to follow it, and
// returns what the service has applied.
func history(t *testing.T, srv *zktest.Server, seed uint64) (applied []*cache.Snapshot[int]) {
	t.Helper()
	client := kit.Connect(t, srv)
	service, err := follow(client, "/config")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var follower, writers sync.WaitGroup
	follower.Go(func() {
		_ = service.reload(ctx, func(now *cache.Snapshot[int]) { applied = append(applied, now) })
	})
	for i := range uint64(3) {
		other, r := kit.Connect(t, srv), rand.New(rand.NewPCG(seed, i)) //nolint:gosec // a test
		writers.Go(func() {
			for range 60 {
				change(ctx, other, r)
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
		})
	}
	writing := make(chan struct{})
	go func() {
		writers.Wait()
		close(writing)
	}()
	for r, calm := rand.New(rand.NewPCG(seed, 9)), false; !calm; { //nolint:gosec // a test
		select {
		case <-writing:
			calm = true
		case <-time.After(time.Duration(r.IntN(200)) * time.Millisecond):
			disturb(srv, client.SessionID(), r)
		}
	}
	time.Sleep(time.Minute)
	last, err := service.Fresh(ctx)
	require.NoError(t, err)
	assert.True(t, service.Status().Current, "seed %d: %v", seed, service)
	stop()
	follower.Wait()
	service.Close()
	return append(applied, last)
}

// change changes the configuration. Two settings always change together.
func change(ctx context.Context, client *framework.Client, r *rand.Rand) {
	path := []string{workers, timeout, "/config/a", "/config/b", "/config/c"}[r.IntN(5)]
	data := []byte(strconv.Itoa(r.IntN(1000)))
	switch r.IntN(8) {
	case 0, 1, 2:
		tx := client.Transaction()
		tx.Set("/config/low", data, framework.AnyVersion)
		tx.Set("/config/high", data, framework.AnyVersion)
		if _, err := tx.Commit(ctx); err == nil {
			return
		}
		_ = client.EnsurePath(ctx, "/config")
		tx = client.Transaction()
		tx.Create("/config/low", data, framework.Persistent)
		tx.Create("/config/high", data, framework.Persistent)
		_, _ = tx.Commit(ctx)
	case 3:
		_ = client.Delete(ctx, path, framework.AnyVersion)
	case 4:
		data = []byte("many")
		fallthrough
	case 5:
		_, _ = client.Set(ctx, path, data, framework.AnyVersion)
	default:
		_, _ = client.Create(ctx, path, data, framework.Persistent, framework.Parents())
	}
}

// disturb cuts the connection of a session, ends the session, or stops the server for a while.
func disturb(srv *zktest.Server, session int64, r *rand.Rand) {
	if !slices.ContainsFunc(srv.Sessions(), func(s zktest.Session) bool { return s.ID == session && s.Remote != "" }) {
		return // it is disturbed already
	}
	switch r.IntN(8) {
	case 0, 1:
		_ = srv.Disconnect(session)
	case 2:
		_ = srv.ExpireSession(session)
	case 3:
		_ = srv.Restart()
	case 4:
		srv.Freeze()
		time.Sleep(time.Duration(r.IntN(15)) * time.Second)
		srv.Thaw()
	case 5:
		srv.Stall(session, zktest.ToClient)
		time.Sleep(time.Second)
		srv.Unstall(session)
	}
}

// judge compares configurations with the servers' log. What is no number has to be marked, and
// its value is none, or one that the same node has had.
func judge(t *testing.T, srv *zktest.Server, applied []*cache.Snapshot[int]) {
	t.Helper()
	log, data, had := srv.Transactions(), map[string]string{}, map[string]map[int]bool{}
	for _, now := range applied {
		for ; len(log) > 0 && log[0].Zxid <= now.Zxid(); log = log[1:] {
			for _, c := range log[0].Changes {
				if c.Kind != zktest.DataSet { // a new node, or none
					had[c.Path] = map[int]bool{0: true}
				}
				if data[c.Path] = string(c.Data); c.Kind == zktest.Deleted {
					delete(data, c.Path)
				}
				if n, err := strconv.Atoi(string(c.Data)); err == nil {
					had[c.Path][n] = true
				}
			}
		}
		settings := 0
		for e := range now.All() {
			text, there := data[e.Path]
			require.True(t, there, "%s at %#x", e.Path, now.Zxid())
			if settings++; e.Path == "/config" {
				continue
			}
			if e.Err != nil {
				assert.Equal(t, "many", text, "%s at %#x", e.Path, now.Zxid())
				assert.True(t, had[e.Path][e.Value], "%s at %#x was never %d", e.Path, now.Zxid(), e.Value)
			} else {
				assert.Equal(t, text, strconv.Itoa(e.Value), "%s at %#x", e.Path, now.Zxid())
			}
		}
		for path := range data {
			if strings.HasPrefix(path, "/config") {
				settings--
			}
		}
		assert.Zero(t, settings, "at %#x", now.Zxid())
		low, _ := now.Get("/config/low")
		high, _ := now.Get("/config/high")
		assert.Equal(t, low.Value, high.Value, "at %#x", now.Zxid())
	}
	require.NotEmpty(t, applied)
}

package zktest_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Servers open, work and close while verbs of every kind hit them.
func TestStress(t *testing.T) {
	both(t, func(t *testing.T, opts ...zktest.Option) {
		var servers sync.WaitGroup
		for range 8 {
			servers.Go(func() { batter(t, opts...) })
		}
		servers.Wait()
	})
}

func batter(t *testing.T, opts ...zktest.Option) {
	srv, err := zktest.New(opts...)
	if !assert.NoError(t, err) {
		return
	}
	srv.On(zktest.Match{Op: "create"}, zktest.Random(1, zktest.CutBefore(), zktest.CutAfter(), zktest.Fail(-1), zktest.Call(func(zktest.Request) { runtime.Gosched() })))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	visited := make(chan struct{})
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				visit(ctx, srv, fmt.Sprintf("/%d-%d", i, n))
				select {
				case visited <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	verbs := []func(){
		func() { srv.Freeze() },
		func() { srv.Thaw() },
		func() { srv.Refuse() },
		func() { srv.Accept() },
		func() { srv.DisconnectAll() },
		func() { srv.SweepContainers() },
		func() {
			for _, s := range srv.Sessions() {
				_ = srv.ExpireSession(s.ID)
				_ = srv.Disconnect(s.ID)
			}
		},
		func() { srv.Watches(); srv.Ephemerals(0); srv.Requests() },
		func() { _ = srv.Stop() },
		func() { _ = srv.Restart() },
		func() { srv.On(zktest.Match{Op: "exists"}, zktest.Delay(time.Microsecond)).Remove() },
	}
	for range 3 {
		for i, verb := range verbs {
			wg.Go(verb)
			if i%2 == 0 { // the others come in pairs
				<-visited
			}
		}
	}
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(func() { assert.NoError(t, srv.Close()) })
	}
	closing.Wait()
	cancel()
	wg.Wait()
}

// visit opens a session, does a little, and leaves; anything may fail.
func visit(ctx context.Context, srv *zktest.Server, path string) {
	nc, err := srv.DialContext(ctx, "tcp", srv.ConnectString())
	if err != nil {
		return
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	b := wire.AppendFrame(nil, &wire.ConnectRequest{Timeout: 4000, Password: make([]byte, 16), HasReadOnly: true})
	for xid, op := range []wire.Op{wire.OpCreate, wire.OpExists, wire.OpGetChildren, wire.OpPing} {
		h := &wire.RequestHeader{Xid: int32(xid), Op: op}
		if op == wire.OpCreate {
			b = wire.AppendFrame(b, h, &wire.CreateRequest{Path: path, ACL: open, Flags: wire.FlagEphemeral})
		} else {
			b = wire.AppendFrame(b, h, &wire.PathWatchRequest{Path: "/", Watch: true})
		}
	}
	if _, err := nc.Write(b); err != nil {
		return
	}
	_ = nc.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	buf := make([]byte, 512)
	for {
		if _, err := nc.Read(buf); err != nil {
			return
		}
	}
}

func TestIdleServerCostsLittle(t *testing.T) {
	const n = 200
	for name, opt := range map[string]zktest.Option{"tcp": zktest.Tick(time.Second), "memory": zktest.InMemory()} {
		before, goroutines := heap(), runtime.NumGoroutine()
		servers := make([]*zktest.Server, n)
		for i := range servers {
			srv, err := zktest.New(opt)
			require.NoError(t, err)
			servers[i] = srv
		}
		per := (heap() - before) / n
		t.Logf("%s: %d bytes and %.2f goroutines for each idle server", name, per, float64(runtime.NumGoroutine()-goroutines)/n)
		assert.Less(t, per, int64(64<<10))
		assert.LessOrEqual(t, runtime.NumGoroutine()-goroutines, n)
		for _, srv := range servers {
			require.NoError(t, srv.Close())
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

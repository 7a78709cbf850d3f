package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// testServer is the server at ZK_CONNECT_STRING, or else one in this process.
func testServer(tb testing.TB) server {
	tb.Helper()
	if addr := os.Getenv("ZK_CONNECT_STRING"); addr != "" {
		return server{name: "ZooKeeper", addr: addr}
	}
	srv, err := zktest.New()
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, srv.Close()) })
	return server{name: "in process", addr: srv.ConnectString()}
}

// What it reports of allocations has the server's among them.
func BenchmarkUncontended(b *testing.B) {
	s := testServer(b)
	for i, cand := range []candidate{raw, zkLock, mutex, readSide, writeSide, semaphore, semaphoreMutex, multiLock(3)} {
		b.Run(cand.name, func(b *testing.B) {
			c, err := cand.open(b.Context(), s)
			require.NoError(b, err)
			defer func() { require.NoError(b, c.close()) }()
			cyc, err := c.cycle("/bench-" + string(rune('a'+i)))
			require.NoError(b, err)
			require.NoError(b, cyc(b.Context(), nil)) // makes the parents
			b.ReportAllocs()
			for b.Loop() {
				if err := cyc(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// An operation is a hand-off: all want the lock all the time. What it reports of
// allocations is that of one round, with the server's if it is in this process.
func BenchmarkHandOff(b *testing.B) {
	s := testServer(b)
	for i, bm := range []struct {
		name   string
		cand   candidate
		n      int
		shared bool // all in one session
	}{
		{"zk.Lock, 8 clients", zkLock, 8, false},
		{"mutex, 2 clients", mutex, 2, false},
		{"mutex, 8 clients", mutex, 8, false},
		{"mutex, 8 goroutines", mutex, 8, true},
		{"semaphore mutex, 8 clients", semaphoreMutex, 8, false},
		{"MultiLock of 3, 4 clients", multiLock(3), 4, false},
	} {
		b.Run(bm.name, func(b *testing.B) {
			var cycles []cycle
			var c *client
			for range bm.n {
				if c == nil || !bm.shared {
					opened, err := bm.cand.open(b.Context(), s)
					require.NoError(b, err)
					defer func() { require.NoError(b, opened.close()) }()
					c = opened
				}
				cyc, err := c.cycle(fmt.Sprintf("/bench-hand-off-%d", i))
				require.NoError(b, err)
				cycles = append(cycles, cyc)
			}
			require.NoError(b, cycles[0](b.Context(), nil)) // makes the parents
			b.ReportAllocs()
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for _, cyc := range cycles {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if err := cyc(b.Context(), nil); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
		})
	}
}

func BenchmarkReentry(b *testing.B) {
	s := testServer(b)
	c, err := framework.Connect(b.Context(), framework.Config{ConnectString: s.addr})
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
	m := locks.NewInterProcessMutex(c, "/l")
	outer, err := m.Acquire(b.Context())
	require.NoError(b, err)
	ctx := outer.Context()
	b.ReportAllocs()
	for b.Loop() {
		h, err := m.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Release(); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, outer.Release())
}

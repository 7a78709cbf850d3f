package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes"
	zktest "github.com/paddock-zk/paddock/testing"
)

func testServer(tb testing.TB) server {
	tb.Helper()
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

func BenchmarkReentry(b *testing.B) {
	s := testServer(b)
	c, err := framework.Connect(b.Context(), framework.Config{ConnectString: s.addr})
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
	m := recipes.NewInterProcessMutex(c, "/l")
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

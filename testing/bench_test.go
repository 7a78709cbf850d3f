package zktest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

var kinds = map[string][]zktest.Option{"tcp": nil, "memory": {zktest.InMemory()}}

// From nothing to the first node that a client has made, both included.
func BenchmarkStartToFirstCreate(b *testing.B) {
	for name, opts := range kinds {
		for client, create := range map[string]func(srv *zktest.Server) (done func()){
			"raw": func(srv *zktest.Server) func() {
				c := begin(b, srv, 10*time.Second)
				c.create("/a", 0)
				return func() { c.nc.Close() }
			},
			"gozk": func(srv *zktest.Server) func() {
				conn := connect(b, srv, 10*time.Second)
				_, err := conn.Create("/a", nil, 0, worldACL)
				require.NoError(b, err)
				return conn.Close
			},
		} {
			b.Run(client+"/"+name, func(b *testing.B) {
				var times []time.Duration
				for b.Loop() {
					begun := time.Now()
					srv, err := zktest.New(opts...)
					require.NoError(b, err)
					done := create(srv)
					times = append(times, time.Since(begun))
					b.StopTimer()
					done()
					require.NoError(b, srv.Close())
					b.StartTimer()
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "ns/median")
			})
		}
	}
}

// A thousand servers at once, each with a client that has made a node.
func BenchmarkThousandServers(b *testing.B) {
	for name, opts := range kinds {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				servers := make([]*zktest.Server, 1000)
				clients := make([]*client, len(servers))
				for i := range servers {
					srv, err := zktest.New(opts...)
					require.NoError(b, err)
					servers[i], clients[i] = srv, begin(b, srv, 10*time.Second)
					clients[i].create("/a", 0)
				}
				b.StopTimer()
				b.ReportMetric(float64(heap()-before)/float64(len(servers)), "B/server")
				for i, srv := range servers {
					clients[i].nc.Close()
					require.NoError(b, srv.Close())
				}
				b.StartTimer()
			}
		})
	}
}

// Ten thousand sessions on one server, opened and expired together. Over TCP
// they are 8,000, since each takes two of a process's descriptors here.
func BenchmarkManySessions(b *testing.B) {
	for name, opts := range kinds {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				srv, clients := manySessions(b, opts)
				b.ReportMetric(float64(heap()-before)/float64(len(clients)), "B/session")
				begun := time.Now()
				srv.Advance(time.Minute)
				b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "ms/expiry-of-all")
				require.Empty(b, srv.Sessions())
				finish(b, srv, clients)
			}
		})
	}
}

// One change that as many clients watch, until all have heard.
func BenchmarkFireWatches(b *testing.B) {
	for name, opts := range kinds {
		b.Run(name, func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				srv, clients := manySessions(b, opts)
				for _, c := range clients {
					c.must(wire.OpGetData, watch("/"), nil)
				}
				begun := time.Now()
				clients[0].send(wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1})
				for _, c := range clients {
					_, err := c.read()
					require.NoError(b, err)
				}
				took += time.Since(begun)
				finish(b, srv, clients)
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N)/1000, "ms/fired")
		})
	}
}

// manySessions opens sessions with an ephemeral node each.
func manySessions(tb testing.TB, opts []zktest.Option) (*zktest.Server, []*client) {
	tb.Helper()
	srv, err := zktest.New(opts...)
	require.NoError(tb, err)
	n := 10_000
	if len(opts) == 0 {
		n = 8_000
	}
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = begin(tb, srv, 10*time.Second)
		clients[i].create("/e", wire.FlagEphemeralSequence)
	}
	return srv, clients
}

func finish(tb testing.TB, srv *zktest.Server, clients []*client) {
	tb.Helper()
	for _, c := range clients {
		c.nc.Close()
	}
	require.NoError(tb, srv.Close())
}

// One session that creates and deletes, waiting for each reply; an operation
// is one of the two.
func BenchmarkCreateDelete(b *testing.B) {
	for name, opts := range kinds {
		b.Run("gozk/"+name, func(b *testing.B) {
			conn := connect(b, zktest.Start(b, opts...), 10*time.Second)
			for i := 0; b.Loop(); i++ {
				if i%2 == 0 {
					_, err := conn.Create("/a", nil, 0, worldACL)
					require.NoError(b, err)
				} else {
					require.NoError(b, conn.Delete("/a", -1))
				}
			}
		})
		b.Run("raw/"+name, func(b *testing.B) {
			c := begin(b, zktest.Start(b, opts...), 10*time.Second)
			for i := 0; b.Loop(); i++ {
				if i%2 == 0 {
					c.create("/a", 0)
				} else {
					c.must(wire.OpDelete, &wire.PathVersionRequest{Path: "/a", Version: -1}, nil)
				}
			}
		})
	}
}

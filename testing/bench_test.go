package zktest_test

import (
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
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				srv, err := zktest.New(opts...)
				require.NoError(b, err)
				conn := connect(b, srv, 10*time.Second)
				_, err = conn.Create("/a", nil, 0, worldACL)
				require.NoError(b, err)
				b.StopTimer()
				conn.Close()
				require.NoError(b, srv.Close())
				b.StartTimer()
			}
		})
	}
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

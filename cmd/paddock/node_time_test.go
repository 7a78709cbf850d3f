package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// What stands below a path is looked at many nodes at a time, and printed in order.
func TestManyNodesShareRoundTrips(t *testing.T) {
	const (
		many, below = 40, 10
		trip        = 10 * time.Millisecond
	)
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(trip/2))
		client := kit.Connect(t, srv)
		want, names := []string{"/l"}, []string(nil)
		for i := range many {
			names = append(names, fmt.Sprintf("%02d", i))
			want = append(want, "  "+names[i])
			for j := range below {
				path := fmt.Sprintf("/l/%s/%d", names[i], j)
				require.NoError(t, client.EnsurePath(t.Context(), path))
				line := fmt.Sprintf("    %d", j)
				if j == 0 {
					kit.Hold(t, locks.NewInterProcessMutex(client, path))
					line += "  mutex: 1 hold, 0 wait"
				}
				want = append(want, line)
			}
		}
		var out bytes.Buffer
		inv := &invocation{depth: anyDepth, sys: system{out: &out}}
		began := time.Now()
		require.NoError(t, inv.walk(t.Context(), client, "/l"))
		assert.Less(t, time.Since(began), 40*trip, "441 nodes, 40 locks")
		var lines []string
		for line := range strings.Lines(out.String()) {
			line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), ", for ")
			lines = append(lines, line)
		}
		assert.Equal(t, want, lines)

		out.Reset()
		began = time.Now()
		require.NoError(t, inv.listLong(t.Context(), client, "/l", names))
		assert.Less(t, time.Since(began), 4*trip)
		assert.Equal(t, many, strings.Count(out.String(), "\n"))
	})
}

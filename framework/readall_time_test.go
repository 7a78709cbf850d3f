package framework_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// withNodes makes /a with n nodes, whose data is their number, and asks for all of them, and
// for as many that are not there.
func withNodes(t *testing.T, c *framework.Client, n int) (reads []framework.Read) {
	t.Helper()
	require.NoError(t, c.EnsurePath(t.Context(), "/a"))
	for i := range n {
		_, err := c.Create(t.Context(), fmt.Sprintf("/a/%d", i), fmt.Append(nil, i), framework.Persistent)
		require.NoError(t, err)
		reads = append(reads, framework.Read{Path: fmt.Sprintf("/a/%d", i)}, framework.Read{Path: fmt.Sprintf("/a/x%d", i)})
	}
	return append(reads, framework.Read{Path: "/a", Children: true}, framework.Read{Path: "/a/0"})
}

func checkNodes(t *testing.T, n int, results []framework.ReadResult, err error) {
	t.Helper()
	require.NoError(t, err)
	require.Len(t, results, 2*n+2)
	for i := range n {
		there, absent := results[2*i], results[2*i+1]
		require.NoError(t, there.Err)
		assert.Equal(t, fmt.Sprintf("/a/%d", i), there.Path)
		assert.Equal(t, fmt.Sprint(i), string(there.Data))
		assert.NotZero(t, there.Stat.Czxid)
		assert.GreaterOrEqual(t, there.Zxid, there.Stat.Mzxid)
		require.ErrorIs(t, absent.Err, framework.ErrNoNode)
		var op *framework.OpError
		require.ErrorAs(t, absent.Err, &op)
		assert.Equal(t, absent.Path, op.Path)
	}
	assert.Len(t, results[2*n].Names, n)
	assert.Equal(t, "0", string(results[2*n+1].Data))
}

func TestReadAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		reads := withNodes(t, c, 1000)
		var most atomic.Int32
		asked := srv.On(zktest.Match{Op: "multiRead"}, zktest.Call(func(r zktest.Request) { most.Store(max(most.Load(), int32(len(r.Paths)))) }))
		results, err := c.ReadAll(t.Context(), reads...)
		checkNodes(t, 1000, results, err)
		assert.LessOrEqual(t, asked.Fired(), 40)
		assert.LessOrEqual(t, most.Load(), int32(128))

		results, err = c.ReadAll(t.Context())
		require.NoError(t, err)
		assert.Empty(t, results)
		_, err = c.ReadAll(t.Context(), framework.Read{Path: "a"})
		require.ErrorIs(t, err, framework.ErrInvalidPath)
	})
}

// What cuts a batch does not show, however often.
func TestReadAllWithFaults(t *testing.T) {
	for name, fault := range map[string]zktest.Fault{
		"throttled": zktest.Fail(-127), "lost before": zktest.CutBefore(), "lost after": zktest.CutAfter(),
		"cut within": zktest.CutReply(100),
	} {
		for _, nth := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d", name, nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
					c := kit.Connect(t, srv)
					reads := withNodes(t, c, 200)
					srv.On(zktest.Match{Op: "multiRead", Nth: nth}, fault)
					results, err := c.ReadAll(t.Context(), reads...)
					checkNodes(t, 200, results, err)
				})
			})
		}
	}
}

// Replies that are longer than the client takes are asked for in parts. After a long one
// batches are small.
func TestReadAllOfLargeNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		other := kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/a"))
		data := bytes.Repeat([]byte("x"), 50<<10)
		var reads []framework.Read
		for i := range 300 {
			path := fmt.Sprintf("/a/%d", i)
			_, err := c.Create(t.Context(), path, data, framework.Persistent)
			require.NoError(t, err)
			reads = append(reads, framework.Read{Path: path})
		}
		var sizes []int
		srv.On(zktest.Match{Op: "multiRead"}, zktest.Call(func(r zktest.Request) { sizes = append(sizes, len(r.Paths)) }))
		results, err := c.ReadAll(t.Context(), reads...)
		require.NoError(t, err)
		for _, r := range results {
			require.NoError(t, r.Err)
			require.Len(t, r.Data, len(data))
		}
		for i, size := range sizes {
			assert.True(t, i < 2 || size <= 8, "%v", sizes)
		}

		small := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 40 << 10 })
		results, err = small.ReadAll(t.Context(), reads[0], framework.Read{Path: "/a"}, reads[1])
		require.NoError(t, err)
		require.ErrorIs(t, results[0].Err, framework.ErrReplyTooLarge)
		require.NoError(t, results[1].Err)
		require.ErrorIs(t, results[2].Err, framework.ErrReplyTooLarge)
		require.NoError(t, other.Sync(t.Context(), "/"))
	})
}

func TestReadAllThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		none := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.ConnectString += "/none" })
		_, err := none.ReadAll(t.Context(), framework.Read{Path: "/a"})
		require.ErrorIs(t, err, framework.ErrNoNode)
		require.ErrorContains(t, err, "chroot /none")
		srv.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.ReadAll(ctx, framework.Read{Path: "/a"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		srv.Thaw()
	})
}

// The answer to reads stands among the events where it belongs: it shows what was told
// before it and nothing that is told after it.
func TestSubscriptionReads(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/a"))
		srv.On(zktest.Match{Op: "multiRead"}, zktest.Delay(time.Millisecond))
		sub, err := c.Subscribe(t.Context(), "/a")
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 300 {
				_, err := other.Set(t.Context(), "/a", nil, framework.AnyVersion)
				assert.NoError(t, err)
				if i%10 == 9 {
					time.Sleep(time.Millisecond) // as long as an answer takes
				}
			}
		}()
		require.NoError(t, sub.Read(framework.Read{Path: "/a"}))
		changes, answers := int32(0), 0
		for changes < 300 {
			ev, err := sub.Next(t.Context())
			require.NoError(t, err)
			switch ev.Type {
			case framework.NodeDataChanged:
				changes++
			case framework.Answered:
				answers++
				require.NoError(t, ev.Results[0].Err)
				require.Equal(t, changes, ev.Results[0].Stat.Version)
				require.Equal(t, ev.Zxid, ev.Results[0].Zxid)
				require.NoError(t, sub.Read(framework.Read{Path: "/a"}))
			}
		}
		<-done
		assert.Greater(t, answers, 20)
		require.ErrorIs(t, sub.Read(framework.Read{Path: "a"}), framework.ErrInvalidPath)
		require.NoError(t, srv.Disconnect(c.SessionID()))
		require.NoError(t, c.Sync(t.Context(), "/"))
		require.NoError(t, sub.Read(framework.Read{Path: "/a"}))
		list := told(t, sub)
		assert.Equal(t, []string{"Gap /a", "Established /a", "Answered /a"}, list[len(list)-3:])
	})
}

// Where the servers take their time for each batch, requests of the same client do not wait
// behind many of them. Where only the way is long, many are on their way.
func TestReadAllLeavesTheConnectionToOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		latency, work time.Duration
		others, later time.Duration // at most, and once it is known that there are others
		all           time.Duration
	}{
		"fast servers": {0, 200 * time.Microsecond, 1500 * time.Microsecond, 1500 * time.Microsecond, 40 * time.Millisecond},
		"slow servers": {0, time.Millisecond, 4 * time.Millisecond, 3 * time.Millisecond, 200 * time.Millisecond},
		"slower ones":  {0, 5 * time.Millisecond, 30 * time.Millisecond, 11 * time.Millisecond, time.Second},
		"a long way":   {20 * time.Millisecond, 0, 41 * time.Millisecond, 41 * time.Millisecond, 800 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(tc.latency))
				c := kit.Connect(t, srv)
				_, err := c.Create(t.Context(), "/a", []byte("a"), framework.Persistent)
				require.NoError(t, err)
				srv.On(zktest.Match{Op: "multiRead"}, zktest.Delay(tc.work))
				began := time.Now()
				done := make(chan error)
				go func() {
					_, err := c.ReadAll(t.Context(), slices.Repeat([]framework.Read{{Path: "/a"}}, 20_000)...)
					t.Logf("all took %v", time.Since(began))
					assert.LessOrEqual(t, time.Since(began), tc.all)
					done <- err
				}()
				var longest, later time.Duration
				for {
					asked := time.Now()
					_, _, err := c.Get(t.Context(), "/a")
					require.NoError(t, err)
					longest = max(longest, time.Since(asked))
					if asked.Sub(began) > 20*time.Millisecond {
						later = max(later, time.Since(asked))
					}
					select {
					case err := <-done:
						require.NoError(t, err)
						t.Logf("others waited for %v at most, and later for %v", longest, later)
						assert.LessOrEqual(t, longest, tc.others)
						assert.LessOrEqual(t, later, tc.later)
						return
					case <-time.After(100 * time.Microsecond):
					}
				}
			})
		})
	}
}

// Answers that are late by chance, as on a busy machine, do not keep batches from being on
// their way.
func TestReadAllBesideJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond), zktest.LatencyBy(zktest.Uniform(0, 4*time.Millisecond)), zktest.Seed(1))
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/a", []byte("a"), framework.Persistent)
		require.NoError(t, err)
		began := time.Now()
		_, err = c.ReadAll(t.Context(), slices.Repeat([]framework.Read{{Path: "/a"}}, 100_000)...)
		require.NoError(t, err)
		t.Logf("all took %v", time.Since(began))
		assert.LessOrEqual(t, time.Since(began), 400*time.Millisecond)
	})
}

package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// started is a cache that is closed with the test.
func started[T any](t *testing.T, client *framework.Client, path string, decode Decoder[T], opts ...Option) *Cache[T] {
	t.Helper()
	c, err := Start(client, path, decode, opts...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func ready[T any](t *testing.T, c *Cache[T]) *Snapshot[T] {
	t.Helper()
	s, err := c.Ready(t.Context())
	require.NoError(t, err)
	return s
}

// made makes nodes, whose data is their name.
func made(t *testing.T, c *framework.Client, paths ...string) {
	t.Helper()
	for _, path := range paths {
		_, err := c.Create(t.Context(), path, []byte(path), framework.Persistent, framework.Parents())
		require.NoError(t, err)
	}
}

func paths[T any](s *Snapshot[T]) (list []string) {
	for e := range s.All() {
		list = append(list, e.Path)
	}
	return list
}

// bubble runs a test in virtual time, with a server and two clients.
func bubble(t *testing.T, test func(t *testing.T, srv *zktest.Server, client, other *framework.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		test(t, srv, kit.Connect(t, srv), kit.Connect(t, srv))
	})
}

func TestViews(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app/a/x/1", "/app/b", "/apple")
		for depth, want := range map[int][]string{0: {"/app"}, 1: {"/app", "/app/a", "/app/b"}, 2: {"/app", "/app/a", "/app/a/x", "/app/b"}} {
			assert.Equal(t, want, paths(ready(t, started(t, client, "/app", Bytes, Depth(depth)))))
		}
		whole := started(t, client, "/", Bytes)
		assert.Equal(t, []string{"/", "/app", "/app/a", "/app/a/x", "/app/a/x/1", "/app/b", "/apple"}, paths(ready(t, whole)), "and not /zookeeper")
		inside := started(t, client.UsingNamespace("app"), "/a", Bytes)
		assert.Equal(t, []string{"/a", "/a/x", "/a/x/1"}, paths(ready(t, inside)))
		below := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.ConnectString += "/app" })
		assert.Equal(t, []string{"/", "/a", "/a/x", "/a/x/1", "/b"}, paths(ready(t, started(t, below, "/", Bytes))))
	})
}

// Nodes that are not selected are not read, nor what is below them.
func TestSelect(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app/a/secret/x", "/app/b", "/app/secret/y")
		var read []string
		srv.On(zktest.Match{Op: "multiRead"}, zktest.Call(func(r zktest.Request) { read = append(read, r.Paths...) }))
		c := started(t, client, "/app", text, Select(func(path string) bool { return !strings.HasSuffix(path, "/secret") }))
		assert.Equal(t, []string{"/app", "/app/a", "/app/b"}, paths(ready(t, c)))
		made(t, other, "/app/b/secret/z", "/app/b/c")
		_, err := other.Set(t.Context(), "/app/a/secret/x", nil, 0)
		require.NoError(t, err)
		s, err := c.Fresh(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"/app", "/app/a", "/app/b", "/app/b/c"}, paths(s))
		assert.NotContains(t, strings.Join(read, " "), "secret")
	})
}

// Steps tell what was made, changed, deleted, and made again.
func TestChanges(t *testing.T) {
	bubble(t, func(t *testing.T, _ *zktest.Server, client, other *framework.Client) {
		for _, depth := range []int{0, 1, all} {
			c := started(t, client, "/app", text, Depth(depth))
			assert.Zero(t, ready(t, c).Len())
			var told []string
			go func() {
				for step, err := range c.Steps(t.Context()) {
					if err != nil {
						return
					}
					for _, change := range step.Changes {
						switch {
						case change.Old == nil:
							told = append(told, "made "+change.New.Value)
						case change.New == nil:
							told = append(told, "deleted "+change.Old.Value)
						case change.Replaced():
							told = append(told, "made again "+change.New.Value)
						default:
							told = append(told, "changed from "+change.Old.Value+" to "+change.New.Value)
						}
					}
				}
			}()
			pause := func(err error) {
				require.NoError(t, err)
				time.Sleep(time.Second)
			}
			_, err := other.Create(t.Context(), "/app", []byte("1"), framework.Persistent)
			pause(err)
			_, err = other.Set(t.Context(), "/app", []byte("2"), 0)
			pause(err)
			tx := other.Transaction()
			tx.Delete("/app", framework.AnyVersion)
			tx.Create("/app", []byte("3"), framework.Persistent)
			_, err = tx.Commit(t.Context())
			pause(err)
			pause(other.Delete(t.Context(), "/app", 0))
			synctest.Wait()
			assert.Equal(t, []string{"made 1", "changed from 1 to 2", "made again 3", "deleted 3"}, told)
			c.Close()
		}
	})
}

// A decoder need not keep the data. Changes are told all the same.
func TestDataLeftOut(t *testing.T) {
	bubble(t, func(t *testing.T, _ *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app")
		c := started(t, client, "/app", func(string, []byte) (struct{}, error) { return struct{}{}, nil })
		ready(t, c)
		first := true
		for step, err := range c.Steps(t.Context()) {
			require.NoError(t, err)
			if first {
				first = false
				require.NotNil(t, step.Restart)
				_, err = other.Set(t.Context(), "/app", []byte("new"), 0)
				require.NoError(t, err)
				continue
			}
			require.Len(t, step.Changes, 1)
			assert.Equal(t, int32(1), step.Changes[0].New.Version)
			break
		}
	})
}

// A Compression is a decoder. What is not compressed is a hole.
func TestCompressedData(t *testing.T) {
	bubble(t, func(t *testing.T, _ *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app")
		_, err := other.Create(t.Context(), "/app/a", []byte("text"), framework.Persistent, framework.Compressed())
		require.NoError(t, err)
		c := started(t, client, "/app", framework.Gzip().Decompress)
		e, _ := ready(t, c).Get("/app/a")
		assert.Equal(t, "text", string(e.Value))
		e, _ = c.Get("/app")
		var undecodable *DecodeError
		require.ErrorAs(t, e.Err, &undecodable)
	})
}

// A cache can be started before there is a server, or a node.
func TestColdStart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		require.NoError(t, srv.Stop())
		time.Sleep(time.Minute)
		c := started(t, client, "/app", Bytes)
		time.Sleep(time.Minute)
		assert.Zero(t, c.Snapshot().Zxid())
		assert.Empty(t, paths(c.Snapshot()))
		status := c.Status()
		assert.False(t, status.Complete || status.Current)
		require.ErrorIs(t, status.Err, framework.ErrNotConnected)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Ready(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, framework.ErrNotConnected, "the reason")
		require.NoError(t, srv.Restart())
		assert.Zero(t, ready(t, c).Len(), "the node does not exist")
		synctest.Wait() // a snapshot is shown before the status
		assert.True(t, c.Status().Complete && c.Status().Current)
		made(t, other, "/app/a")
		s, err := c.Fresh(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"/app", "/app/a"}, paths(s))
	})
}

// Servers without persistent watches are told of. A client asks once, since servers end the
// connection at what they do not know.
func TestServersWithoutPersistentWatches(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app")
		lacks := srv.On(zktest.Match{Op: "addWatch"}, zktest.Fail(-6))
		c := started(t, client, "/app", text)
		time.Sleep(10 * time.Minute)
		status := c.Status()
		require.ErrorIs(t, status.Err, framework.ErrUnsupported)
		assert.False(t, status.Complete || status.Current)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Ready(ctx)
		require.ErrorIs(t, err, framework.ErrUnsupported, "the reason")
		assert.Equal(t, 1, lacks.Fired(), "learned once")
		lacks.Remove() // a server that is updated
		_, err = started(t, kit.Connect(t, srv), "/app", text).Ready(t.Context())
		require.NoError(t, err)
	})
}

// Whoever has written something can wait until the cache shows it.
func TestAwaitAndFresh(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app/a")
		c := started(t, client, "/app", text)
		ready(t, c)
		for i := range 20 {
			stat, err := other.Set(t.Context(), "/app/a", fmt.Append(nil, i), framework.AnyVersion)
			require.NoError(t, err)
			s, err := c.Await(t.Context(), stat.Mzxid)
			require.NoError(t, err)
			e, _ := s.Get("/app/a")
			assert.Equal(t, fmt.Sprint(i), e.Value)
		}
		stat, err := other.Set(t.Context(), "/", nil, framework.AnyVersion) // nothing that the cache hears of
		require.NoError(t, err)
		s, err := c.Await(t.Context(), stat.Mzxid)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, s.Zxid(), stat.Mzxid)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Await(ctx, s.Zxid()+100)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, fmt.Sprintf("cache /app: context deadline exceeded: transaction %#x has not come: the snapshot is at %#x", s.Zxid()+100, s.Zxid()))
		made(t, other, "/app/b")
		s, err = c.Fresh(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"/app", "/app/a", "/app/b"}, paths(s))

		srv.On(zktest.Match{Op: "multiRead"}, zktest.Delay(time.Hour))
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = started(t, client, "/other", text).Ready(soon)
		require.EqualError(t, err, "cache /other: context deadline exceeded: it is still loading")
	})
}

// No other event has to come for deletions to show.
func TestDeletionsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, _ *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app/a/b")
		c := started(t, client, "/app", Bytes)
		ready(t, c)
		require.NoError(t, other.Delete(t.Context(), "/app/a", framework.AnyVersion, framework.Recursive()))
		time.Sleep(100 * time.Millisecond)
		assert.Equal(t, []string{"/app"}, paths(c.Snapshot()))
		require.NoError(t, other.Delete(t.Context(), "/app", framework.AnyVersion))
		time.Sleep(100 * time.Millisecond)
		assert.Empty(t, paths(c.Snapshot()))
	})
}

// In an outage the values stay, and are known to be old. What the outage has changed shows
// afterwards, a node that was made again as replaced.
func TestOutage(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app/a", "/app/b", "/app/c")
		c := started(t, client, "/app", text)
		old := ready(t, c)
		before := srv.Requests()
		require.NoError(t, srv.Disconnect(client.SessionID()))
		time.Sleep(time.Second)
		assert.True(t, c.Status().Current)
		for op, n := range srv.Requests() {
			if op != "ping" {
				before[op] -= n
			}
		}
		maps.DeleteFunc(before, func(op string, n int) bool { return n == 0 || op == "ping" })
		assert.Equal(t, map[string]int{"addWatch": -1, "connect": -1}, before, "nothing has changed, so nothing is read")

		var changes []Change[string]
		go func() {
			for step, err := range c.Steps(t.Context()) {
				if err != nil {
					return
				}
				changes = append(changes, step.Changes...)
			}
		}()
		began := time.Now()
		srv.On(zktest.Match{Op: "connect", Session: client.SessionID(), Nth: 1}, zktest.Delay(time.Second))
		require.NoError(t, srv.Disconnect(client.SessionID()))
		time.Sleep(100 * time.Millisecond)
		status := c.Status()
		assert.False(t, status.Current)
		assert.True(t, status.Complete)
		require.ErrorIs(t, status.Err, framework.ErrNotConnected)
		assert.Less(t, status.Since.Sub(began), 100*time.Millisecond)
		e, ok := c.Get("/app/a")
		assert.True(t, ok)
		assert.Equal(t, "/app/a", e.Value)
		require.NoError(t, other.Delete(t.Context(), "/app/a", 0))
		made(t, other, "/app/a")
		require.NoError(t, other.Delete(t.Context(), "/app/b", 0))
		require.NoError(t, other.Delete(t.Context(), "/app/c", 0))
		made(t, other, "/app/c/d")
		time.Sleep(2 * time.Second)
		s, err := c.Fresh(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"/app", "/app/a", "/app/c", "/app/c/d"}, paths(s))
		assert.Equal(t, []string{"/app", "/app/a", "/app/b", "/app/c"}, paths(old), "old snapshots stay")
		time.Sleep(time.Second)
		require.Len(t, changes, 4)
		assert.True(t, changes[0].Replaced())
		assert.Equal(t, int32(0), changes[0].New.Version)
		assert.Nil(t, changes[1].New)
		assert.True(t, c.Status().Current)
		require.NoError(t, c.Status().Err)
	})
}

// What cannot be decoded keeps its last good value, unless it is another node.
func TestDecoder(t *testing.T) {
	bubble(t, func(t *testing.T, _ *zktest.Server, client, other *framework.Client) {
		decode := func(_ string, data []byte) (v map[string]int, err error) { return v, json.Unmarshal(data, &v) }
		_, err := other.Create(t.Context(), "/app", []byte(`{"a":1}`), framework.Persistent)
		require.NoError(t, err)
		c := started(t, client, "/app", decode)
		e, _ := ready(t, c).Get("/app")
		assert.Equal(t, map[string]int{"a": 1}, e.Value)
		for range 2 {
			_, err = other.Set(t.Context(), "/app", []byte(`{`), framework.AnyVersion)
			require.NoError(t, err)
			s, err := c.Fresh(t.Context())
			require.NoError(t, err)
			e, _ = s.Get("/app")
			assert.Equal(t, map[string]int{"a": 1}, e.Value)
			var undecodable *DecodeError
			require.ErrorAs(t, e.Err, &undecodable)
			var syntax *json.SyntaxError
			require.ErrorAs(t, e.Err, &syntax)
			assert.Equal(t, 1, c.Status().Holes)
		}
		require.NoError(t, other.Delete(t.Context(), "/app", framework.AnyVersion))
		_, err = other.Create(t.Context(), "/app", []byte(`[`), framework.Persistent)
		require.NoError(t, err)
		s, err := c.Fresh(t.Context())
		require.NoError(t, err)
		e, _ = s.Get("/app")
		assert.Nil(t, e.Value)
		require.Error(t, e.Err)
		_, err = other.Set(t.Context(), "/app", []byte(`{"a":2}`), framework.AnyVersion)
		require.NoError(t, err)
		s, err = c.Fresh(t.Context())
		require.NoError(t, err)
		e, _ = s.Get("/app")
		assert.Equal(t, map[string]int{"a": 2}, e.Value)
		require.NoError(t, e.Err)
		assert.Zero(t, c.Status().Holes)
	})
}

// A node that may not be read is a hole that says so, and is tried again.
func TestHoles(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, _ *framework.Client) {
		owner := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("u:p")}} })
		made(t, owner, "/app/a/b", "/app/c")
		mine := framework.ACL{Perms: 31, Scheme: "auth"}
		_, err := owner.SetACL(t.Context(), "/app/a", []framework.ACL{mine}, framework.AnyVersion)
		require.NoError(t, err)
		c := started(t, client, "/app", text)
		s := ready(t, c)
		e, ok := s.Get("/app/a")
		assert.True(t, ok)
		require.ErrorIs(t, e.Err, framework.ErrNoAuth)
		assert.Equal(t, []string{"/app", "/app/a", "/app/c"}, paths(s))
		assert.Equal(t, 1, c.Status().Holes)
		_, err = owner.SetACL(t.Context(), "/app/a", []framework.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(31 * time.Second)
		assert.Equal(t, []string{"/app", "/app/a", "/app/a/b", "/app/c"}, paths(c.Snapshot()))
		assert.Zero(t, c.Status().Holes)
	})
}

// A node that may be read again is read, with its children, whatever asks for it.
func TestHoleThatCloses(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, _ *framework.Client) {
		owner := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("u:p")}} })
		made(t, owner, "/app/a/b")
		_, err := owner.SetACL(t.Context(), "/app/a", []framework.ACL{{Perms: 31, Scheme: "auth"}}, framework.AnyVersion)
		require.NoError(t, err)
		c := started(t, client, "/app", text)
		assert.Equal(t, []string{"/app", "/app/a"}, paths(ready(t, c)))
		_, err = owner.SetACL(t.Context(), "/app/a", []framework.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, framework.AnyVersion)
		require.NoError(t, err)
		_, err = owner.Set(t.Context(), "/app/a", []byte("1"), framework.AnyVersion)
		require.NoError(t, err)
		s, err := c.Fresh(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"/app", "/app/a", "/app/a/b"}, paths(s))
		assert.Zero(t, c.Status().Holes)
	})
}

// A list that is too long is a hole. Readers are told of a hole once, however often it is tried
// again.
func TestListThatIsTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, _, other *framework.Client) {
		many(t, other, 6000)
		c := started(t, kit.Connect(t, srv, func(cfg *framework.Config) { cfg.MaxReply = 40 << 10 }), "/app", Bytes)
		e, _ := ready(t, c).Get("/app")
		require.ErrorIs(t, e.Err, framework.ErrReplyTooLarge)
		_, err := other.Set(t.Context(), "/app", []byte("1"), framework.AnyVersion)
		require.NoError(t, err)
		s, err := c.Fresh(t.Context())
		require.NoError(t, err)
		e, _ = s.Get("/app")
		require.ErrorIs(t, e.Err, framework.ErrReplyTooLarge, "the children are not known by the data")
		assert.Equal(t, "1", string(e.Value))
		steps := 0
		go func() {
			for range c.Steps(t.Context()) {
				steps++
			}
		}()
		before := srv.Requests()["multiRead"]
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, steps)
		assert.Greater(t, srv.Requests()["multiRead"], before+10, "it was tried again")
		assert.Equal(t, 1, c.Status().Holes)
		c.Close()
	})
}

// A node whose right to be read was taken away stays as it was, without a sign, and one that
// could not be read when it was made is missing. Reading all nodes now and then finds both, and
// disturbs nothing.
func TestRecheck(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, _ *framework.Client) {
		owner := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("u:p")}} })
		many(t, owner, 6000)
		c := started(t, client, "/app", Bytes, Recheck(time.Hour))
		plain := started(t, client, "/app", Bytes)
		ready(t, c)
		ready(t, plain)
		_, err := owner.SetACL(t.Context(), "/app/05000", []framework.ACL{{Perms: 31, Scheme: "auth"}}, framework.AnyVersion)
		require.NoError(t, err)
		for _, path := range []string{"/app/new", "/app/05999/new"} { // nobody hears of them
			_, err = owner.Create(t.Context(), path, nil, framework.Persistent, framework.ACLs(framework.ACL{Perms: 31, Scheme: "auth"}))
			require.NoError(t, err)
			_, err = owner.SetACL(t.Context(), path, []framework.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, framework.AnyVersion)
			require.NoError(t, err)
		}
		time.Sleep(59 * time.Minute)
		assert.Zero(t, c.Status().Holes)
		assert.Equal(t, 6001, c.Snapshot().Len())
		var changed []string
		go func() {
			for step, err := range c.Steps(t.Context()) {
				if err != nil {
					return
				}
				for _, change := range step.Changes {
					changed = append(changed, change.Path)
				}
			}
		}()
		before := srv.Requests()["multiRead"]
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		assert.LessOrEqual(t, srv.Requests()["multiRead"]-before, 6000/64)
		assert.ElementsMatch(t, []string{"/app/05999/new", "/app/05000", "/app/new"}, changed)
		e, _ := c.Get("/app/05000")
		require.ErrorIs(t, e.Err, framework.ErrNoAuth)
		assert.Equal(t, 1, c.Status().Holes)
		assert.True(t, c.Status().Current)
		assert.Zero(t, plain.Status().Holes)
		_, err = owner.SetACL(t.Context(), "/app/05000", []framework.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, framework.AnyVersion)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Zero(t, c.Status().Holes)
		c.Close()
	})
}

// A subtree that is too large is an error, and no matter of memory.
func TestLimits(t *testing.T) {
	for name, limit := range map[string]Option{"nodes": MaxNodes(5), "bytes": MaxBytes(60)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
				made(t, other, "/app/0")
				c := started(t, client, "/app", Bytes, limit)
				ready(t, c)
				for i := range 10 {
					made(t, other, fmt.Sprintf("/app/n%d", i))
				}
				time.Sleep(time.Second)
				require.ErrorIs(t, c.Status().Err, ErrLimit)
				assert.False(t, c.Status().Current)
				assert.LessOrEqual(t, c.Snapshot().Len(), 5)
				assert.Equal(t, 1, c.Status().Gaps)
				assert.Empty(t, srv.Watches())
				for i := range 10 {
					require.NoError(t, other.Delete(t.Context(), fmt.Sprintf("/app/n%d", i), 0))
				}
				time.Sleep(2 * time.Minute)
				assert.Equal(t, []string{"/app", "/app/0"}, paths(c.Snapshot()))
				assert.True(t, c.Status().Current)
			})
		})
	}
}

// Neither the names of too many children nor answers that a slow decoder keeps waiting take
// memory without limit.
func TestLimitsOfALoad(t *testing.T) {
	for name, tc := range map[string]struct {
		limit Option
		most  int // requests
	}{"nodes": {MaxNodes(1000), 2}, "bytes": {MaxBytes(1000), mostAsked/64 + 2}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
				many(t, other, 10_000)
				c := started(t, client, "/app", func(string, []byte) (int, error) {
					time.Sleep(10 * time.Millisecond)
					return 0, nil
				}, tc.limit)
				time.Sleep(30 * time.Second)
				require.ErrorIs(t, c.Status().Err, ErrLimit)
				assert.LessOrEqual(t, srv.Requests()["multiRead"], tc.most)
			})
		})
	}
}

// many makes n nodes of 100 bytes below /app.
func many(t *testing.T, client *framework.Client, n int) {
	t.Helper()
	require.NoError(t, client.EnsurePath(t.Context(), "/app"))
	for i := 0; i < n; i += 100 {
		tx := client.Transaction()
		for j := range 100 {
			tx.Create(fmt.Sprintf("/app/%05d", i+j), make([]byte, 100), framework.Persistent)
		}
		_, err := tx.Commit(t.Context())
		require.NoError(t, err)
	}
}

// A long list of children says nothing of how large the nodes are, so it makes no request
// smaller. After an outage it is not read again, since it has not changed.
func TestRequestsOfALoad(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		const n, batch = 4000, 128
		many(t, other, n)
		lists := 0
		srv.On(zktest.Match{Op: "multiRead"}, zktest.Call(func(r zktest.Request) {
			if len(r.Paths) == 1 && r.Paths[0] == "/app" {
				lists++
			}
		}))
		c := started(t, client, "/app", text)
		ready(t, c)
		assert.LessOrEqual(t, srv.Requests()["multiRead"], n/batch+9)
		assert.Equal(t, 2, lists, "its data and its list")
		require.NoError(t, srv.Disconnect(client.SessionID()))
		stat, err := other.Set(t.Context(), "/app/00007", []byte("1"), framework.AnyVersion)
		require.NoError(t, err)
		_, err = c.Await(t.Context(), stat.Mzxid)
		require.NoError(t, err)
		e, _ := c.Get("/app/00007")
		assert.Equal(t, "1", e.Value)
		assert.LessOrEqual(t, srv.Requests()["multiRead"], 2*(n/batch+9))
		assert.Equal(t, 2, lists)
	})
}

// A reader that is too slow begins anew. One of Latest reads what has happened meanwhile as one.
func TestSlowReaders(t *testing.T) {
	bubble(t, func(t *testing.T, _ *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app/a")
		c := started(t, client, "/app", text, History(5))
		ready(t, c)
		set := func(n int) {
			for i := range n {
				stat, err := other.Set(t.Context(), "/app/a", fmt.Append(nil, i), framework.AnyVersion)
				require.NoError(t, err)
				_, err = c.Await(t.Context(), stat.Mzxid)
				require.NoError(t, err)
			}
		}
		reads := 0
		for step, err := range c.Steps(t.Context()) {
			require.NoError(t, err)
			switch reads++; reads {
			case 1:
				require.NotNil(t, step.Restart)
				set(3)
			case 2, 3:
				require.Nil(t, step.Restart)
				assert.Len(t, step.Changes, 1)
			case 4:
				set(20)
			case 5:
				require.NotNil(t, step.Restart)
				e, _ := step.Restart.Get("/app/a")
				assert.Equal(t, "19", e.Value)
			}
			if reads == 5 {
				break
			}
		}
		reads = 0
		for step, err := range c.Latest(t.Context()) {
			require.NoError(t, err)
			if reads++; reads == 1 {
				require.NotNil(t, step.Restart)
				set(4)
				continue
			}
			require.Len(t, step.Changes, 1)
			assert.Equal(t, "19", step.Changes[0].Old.Value)
			assert.Equal(t, "3", step.Changes[0].New.Value)
			break
		}
	})
}

// Writes without end, half of them to one node, do not keep snapshots away.
func TestEndlessWrites(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		for i := range 50 {
			made(t, other, fmt.Sprintf("/app/%d", i))
		}
		c := started(t, client, "/app", text)
		ready(t, c)
		ctx, stop := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		for i := range 6 {
			writer := kit.Connect(t, srv)
			writers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					path := "/app/0"
					if n%2 == 0 {
						path = fmt.Sprintf("/app/%d", (7*i+13*n)%50)
					}
					_, _ = writer.Set(ctx, path, fmt.Append(nil, n), framework.AnyVersion)
					time.Sleep(time.Duration((i*n)%7) * 100 * time.Microsecond)
				}
			})
		}
		snapshots, longest, last := 0, time.Duration(0), time.Now()
		for began := time.Now(); time.Since(began) < 4*time.Second; {
			c.mu.Lock()
			changed := c.changed
			c.mu.Unlock()
			<-changed
			snapshots++
			longest, last = max(longest, time.Since(last)), time.Now()
		}
		stop()
		writers.Wait()
		t.Logf("%d snapshots, the longest time without one %v", snapshots, longest)
		assert.LessOrEqual(t, longest, 60*time.Millisecond)
		assert.Greater(t, snapshots, 1000)
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app/a")
		c := started(t, client, "/app", text)
		ready(t, c)
		errs := make(chan error, 3)
		go func() {
			for _, err := range c.Steps(t.Context()) {
				if err != nil {
					errs <- err
				}
			}
		}()
		go func() {
			_, err := c.Await(t.Context(), 1<<60)
			errs <- err
		}()
		time.Sleep(time.Second)
		c.Close()
		c.Close()
		require.ErrorIs(t, <-errs, framework.ErrClosed)
		require.ErrorIs(t, <-errs, framework.ErrClosed)
		e, _ := c.Get("/app/a")
		assert.Equal(t, "/app/a", e.Value, "the last snapshot stays")
		assert.False(t, c.Status().Current)
		require.ErrorIs(t, c.Status().Err, framework.ErrClosed)
		assert.ErrorContains(t, c.Status().Err, "cache is closed", "and the client is not")
		time.Sleep(time.Second)
		kit.NothingLeft(t, srv)

		third, err := framework.Connect(t.Context(), kit.Config(srv))
		require.NoError(t, err)
		c = started(t, third, "/app", text)
		ready(t, c)
		require.NoError(t, third.Close())
		_, err = c.Await(t.Context(), 1<<60)
		require.ErrorIs(t, err, framework.ErrClosed)
		require.ErrorContains(t, err, "client is closed")
		_, err = Start(third, "/app", text)
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

// The client's Close waits for a cache that is decoding.
func TestCloseOfTheClient(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, _, other *framework.Client) {
		made(t, other, "/app/a")
		client, err := framework.Connect(t.Context(), kit.Config(srv))
		require.NoError(t, err)
		c := started(t, client, "/app", func(string, []byte) (int, error) { time.Sleep(time.Minute); return 0, nil })
		time.Sleep(time.Second)
		began := time.Now()
		require.NoError(t, client.Close())
		assert.GreaterOrEqual(t, time.Since(began), 59*time.Second)
		_, err = c.Ready(t.Context())
		require.ErrorContains(t, err, "client is closed")
		c.Close()
	})
}

// No context is an error, as in calls of a client.
func TestNilContext(t *testing.T) {
	bubble(t, func(t *testing.T, _ *zktest.Server, client, _ *framework.Client) {
		c := started(t, client, "/app", text)
		ready(t, c)
		var none context.Context
		for _, wait := range []func() (*Snapshot[string], error){
			func() (*Snapshot[string], error) { return c.Ready(none) },
			func() (*Snapshot[string], error) { return c.Await(none, 1<<60) },
			func() (*Snapshot[string], error) { return c.Fresh(none) },
		} {
			_, err := wait()
			require.ErrorIs(t, err, framework.ErrNilContext)
		}
		for _, follow := range []func(context.Context) iter.Seq2[Step[string], error]{c.Steps, c.Latest} {
			for _, err := range follow(none) {
				require.ErrorIs(t, err, framework.ErrNilContext)
			}
		}
	})
}

// An ensemble whose data was lost, or restored, has lower zxids than the snapshot. The cache
// begins anew, and until then no answer is taken for fresh.
func TestRestoredServers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, _ *framework.Client) {
		made(t, client, "/app/a", "/app/b", "/app/c/d", "/other/1", "/other/2", "/other/3")
		c := started(t, client, "/app", text)
		ready(t, c)
		var seen []string // of a reader
		go func() {
			for step, err := range c.Steps(t.Context()) {
				if err == nil && step.Restart != nil {
					seen = append(seen, strings.Join(paths(step.Restart), " "))
				}
			}
		}()
		require.NoError(t, srv.Reset())
		time.Sleep(30 * time.Second) // the client begins a new session
		made(t, client, "/app/a", "/app/e")
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Fresh(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.False(t, c.Status().Current)
		s, err := c.Fresh(t.Context())
		require.NoError(t, err)
		want := []string{"/app", "/app/a", "/app/e"}
		assert.Equal(t, want, paths(s))
		assert.True(t, c.Status().Current)
		made(t, client, "/app/f")
		s, err = c.Fresh(t.Context())
		require.NoError(t, err)
		assert.Equal(t, append(want, "/app/f"), paths(s))
		synctest.Wait()
		assert.Equal(t, []string{"/app /app/a /app/b /app/c /app/c/d", "/app /app/a /app/e"}, seen)
	})
}

func TestStartRefuses(t *testing.T) {
	for _, start := range []func() (*Cache[string], error){
		func() (*Cache[string], error) { return Start(nil, "/a", text) },
		func() (*Cache[string], error) { return Start(new(framework.Client), "a", text) },
		func() (*Cache[string], error) { return Start[string](new(framework.Client), "/a", nil) },
		func() (*Cache[string], error) { return Start(new(framework.Client), "/a", text, nil) },
		func() (*Cache[string], error) { return Start(new(framework.Client), "/a", text, Depth(-1)) },
		func() (*Cache[string], error) { return Start(new(framework.Client), "/a", text, MaxNodes(0)) },
		func() (*Cache[string], error) { return Start(new(framework.Client), "/a", text, Recheck(0)) },
	} {
		c, err := start()
		assert.Nil(t, c)
		assert.True(t, errors.Is(err, framework.ErrInvalidArgument) || errors.Is(err, framework.ErrInvalidPath) || errors.Is(err, framework.ErrClosed), "%v", err)
	}
}

// A large subtree takes few requests. CuratorCache 5.4 loads 65,535 nodes at most.
func TestLoad(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		const n = 66_000
		many(t, other, n)
		c := started(t, client, "/app", Bytes)
		began := time.Now()
		assert.Equal(t, n+1, ready(t, c).Len())
		t.Logf("%d nodes took %d requests and %v with a round trip of 2 ms", n, srv.Requests()["multiRead"], time.Since(began))
		assert.LessOrEqual(t, srv.Requests()["multiRead"], n/100+10)
	})
}

// A client shows its caches, and logs why one is not current.
func TestEntriesOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		log, logs := observer.New(zapcore.InfoLevel)
		client := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Namespace, cfg.Logger = "ns", zap.New(log) })
		other := kit.Connect(t, srv)
		made(t, other, "/ns/app/a", "/ns/b")
		assert.Empty(t, client.Entries())
		c, b := started(t, client, "/app", text, MaxNodes(3)), started(t, client, "/b", text)
		ready(t, c)
		ready(t, b)
		stuck, read := make(chan struct{}), 0
		go func() {
			for range c.Steps(t.Context()) {
				read++
				<-stuck
			}
		}()
		go func() {
			for range c.Latest(t.Context()) {
			}
		}()
		require.NoError(t, srv.Disconnect(client.SessionID()))
		gap := time.Now()
		time.Sleep(time.Minute)
		stat, err := other.Set(t.Context(), "/ns/app/a", []byte("1"), framework.AnyVersion)
		require.NoError(t, err)
		s, err := c.Await(t.Context(), stat.Mzxid)
		require.NoError(t, err)
		synctest.Wait()
		list := client.Entries()
		require.Len(t, list, 2)
		assert.Equal(t, "/ns/b", list[1].Path)
		one := list[0]
		assert.Less(t, one.Since.Sub(gap), time.Second)
		one.Since = time.Time{}
		assert.Equal(t, monitor.Entry{
			Kind: "cache", State: "current", Path: "/ns/app", Note: fmt.Sprintf("zxid %#x, last gap %s", s.Zxid(), gap.UTC().Format(time.RFC3339)),
			Numbers: map[string]int64{
				"nodes": 2, "bytes": int64(len("/app") + len("/app/a") + len("1")), "holes": 0, "gaps": 1, "readers": 2, "readers behind": 1,
			},
		}, one)
		assert.Zero(t, logs.FilterMessageSnippet("cache").Len(), "the connection has lines of its own")
		made(t, other, "/ns/app/b", "/ns/app/c")
		time.Sleep(time.Second)
		one = client.Entries()[0]
		require.ErrorIs(t, one.Err, ErrLimit)
		assert.Equal(t, int64(2), one.Numbers["gaps"])
		assert.Equal(t, "old", one.State)
		time.Sleep(5 * time.Minute)
		require.Equal(t, 1, logs.FilterMessage("cache is old").Len(), "%v", logs.All())
		require.NoError(t, other.Delete(t.Context(), "/ns/app/c", 0))
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, logs.FilterMessage("cache is current").Len())
		close(stuck)
		synctest.Wait()
		assert.Zero(t, client.Entries()[0].Numbers["readers behind"])
		assert.Greater(t, read, 1)
		c.Close()
		assert.Equal(t, 1, logs.FilterMessage("cache is old").Len(), "to close a cache is no news")
		assert.Len(t, client.Entries(), 1)
		b.Close()
		assert.Empty(t, client.Entries())
	})
}

// Wrong arguments are refused with what is wrong.
func TestWrongArguments(t *testing.T) {
	srv := zktest.Start(t)
	client := kit.Connect(t, srv)
	for says, start := range map[string]func() (*Cache[[]byte], error){
		"no client":                  func() (*Cache[[]byte], error) { return Start(nil, "/v", Bytes) },
		"no decoder":                 func() (*Cache[[]byte], error) { return Start[[]byte](client, "/v", nil) },
		"option is nil":              func() (*Cache[[]byte], error) { return Start(client, "/v", Bytes, nil) },
		"a Depth that is negative":   func() (*Cache[[]byte], error) { return Start(client, "/v", Bytes, Depth(-1)) },
		"MaxNodes is not positive":   func() (*Cache[[]byte], error) { return Start(client, "/v", Bytes, MaxNodes(0)) },
		"MaxBytes is not positive":   func() (*Cache[[]byte], error) { return Start(client, "/v", Bytes, MaxBytes(0)) },
		"RetryHoles is not positive": func() (*Cache[[]byte], error) { return Start(client, "/v", Bytes, RetryHoles(0)) },
		"RetryHoles is 30ns":         func() (*Cache[[]byte], error) { return Start(client, "/v", Bytes, RetryHoles(30)) },
		"Recheck is 60ns":            func() (*Cache[[]byte], error) { return Start(client, "/v", Bytes, Recheck(60)) },
		"Recheck is not positive":    func() (*Cache[[]byte], error) { return Start(client, "/v", Bytes, Recheck(-1)) },
		"History is not positive":    func() (*Cache[[]byte], error) { return Start(client, "/v", Bytes, History(0)) },
	} {
		_, err := start()
		require.ErrorIs(t, err, framework.ErrInvalidArgument)
		require.ErrorContains(t, err, "cache /v: ")
		assert.ErrorContains(t, err, says)
	}
}

// A cache prints for people, in whatever state it is.
func TestCachePrints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		client := kit.Connect(t, srv)
		srv.Freeze()
		c, err := Start(client, "/v", Bytes)
		require.NoError(t, err)
		defer c.Close()
		assert.Equal(t, "cache /v: loads", c.String())
		srv.Thaw()
		stat, err := client.Set(t.Context(), "/", []byte("x"), framework.AnyVersion)
		require.NoError(t, err)
		_, err = c.Fresh(t.Context())
		require.NoError(t, err)
		synctest.Wait() // the snapshot is there a moment before the status says that it is current
		assert.Equal(t, fmt.Sprintf("cache /v: current at zxid 0x%x, 0 nodes", stat.Mzxid), c.String())
		srv.Stop()
		time.Sleep(time.Minute)
		assert.Regexp(t, `^cache /v: not current since 2000-01-01T\S+: .+; at zxid 0x\w+, 0 nodes$`, fmt.Sprint(c))
		srv.Restart()
	})
}

// What the servers turn away is read again, also while something changes all the time.
func TestReadsThatAreTurnedAwayBesideAWriter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server, client, other *framework.Client) {
		made(t, other, "/app/a", "/app/b")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = other.Set(ctx, "/app/b", nil, framework.AnyVersion)
				time.Sleep(50 * time.Millisecond)
			}
		})
		rule := srv.On(zktest.Match{Op: "multiRead", Session: client.SessionID(), Nth: 2}, zktest.Fail(-127))
		c := started(t, client, "/app", text)
		time.Sleep(2 * time.Second)
		assert.Equal(t, 1, rule.Fired())
		assert.True(t, c.Status().Current)
		assert.Len(t, paths(c.Snapshot()), 3)
		cancel()
		wg.Wait()
	})
}

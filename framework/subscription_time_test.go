package framework_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// told are the events that have come to a subscription by now, as text.
func told(t *testing.T, sub *framework.Subscription) (list []string) {
	t.Helper()
	time.Sleep(time.Second)
	for {
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(time.Nanosecond, cancel)
		ev, err := sub.Next(ctx)
		stop.Stop()
		cancel()
		if err != nil {
			return list
		}
		list = append(list, ev.Type.String()+" "+ev.Path)
	}
}

// onEach runs a test in virtual time with a server of each version.
func onEach(t *testing.T, test func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	for _, version := range zktest.Versions() {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, zktest.Start(t, zktest.InMemory(), zktest.Version(version)))
			})
		})
	}
}

func TestSubscription(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		c := kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/app"))
		in := c.UsingNamespace("app")
		node, err := in.Subscribe(t.Context(), "/a")
		require.NoError(t, err)
		tree, err := in.Subscribe(t.Context(), "/", framework.Subtree())
		require.NoError(t, err)
		for _, path := range []string{"/a", "/a/b", "/a/b/c"} {
			_, err = in.Create(t.Context(), path, nil, framework.Persistent)
			require.NoError(t, err)
		}
		_, err = c.Create(t.Context(), "/apple", nil, framework.Persistent)
		require.NoError(t, err)
		_, err = in.Set(t.Context(), "/a", nil, 0)
		require.NoError(t, err)
		_, err = in.Set(t.Context(), "/a/b/c", nil, 0)
		require.NoError(t, err)
		require.NoError(t, in.Delete(t.Context(), "/a", framework.AnyVersion, framework.Recursive()))
		assert.Equal(t, []string{"Established /a", "NodeCreated /a", "NodeChildrenChanged /a", "NodeDataChanged /a", "NodeChildrenChanged /a", "NodeDeleted /a"}, told(t, node))
		assert.Equal(t, []string{"Established /", "NodeCreated /a", "NodeCreated /a/b", "NodeCreated /a/b/c",
			"NodeDataChanged /a", "NodeDataChanged /a/b/c", "NodeDeleted /a/b/c", "NodeDeleted /a/b", "NodeDeleted /a"}, told(t, tree))
		tree.Stop()
		tree.Stop()
		_, err = tree.Next(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
		require.ErrorContains(t, err, ": it was stopped", "and the client is not closed")
		node.Stop()
		time.Sleep(time.Second)
		assert.Empty(t, srv.Watches())
	})
}

// Events say which transaction they tell of, where the servers do.
func TestSubscriptionTellsZxids(t *testing.T) {
	for version, tells := range map[string]bool{"3.8.0": false, "3.9.3": true} {
		synctest.Test(t, func(t *testing.T) {
			c := kit.Connect(t, zktest.Start(t, zktest.InMemory(), zktest.Version(version)))
			require.NoError(t, c.EnsurePath(t.Context(), "/a"))
			_, before, err := c.Exists(t.Context(), "/a")
			require.NoError(t, err)
			sub, err := c.Subscribe(t.Context(), "/a")
			require.NoError(t, err)
			now, err := c.Set(t.Context(), "/a", nil, 0)
			require.NoError(t, err)
			ev, err := sub.Next(t.Context())
			require.NoError(t, err)
			assert.Equal(t, framework.Event{Type: framework.Established, Path: "/a", Zxid: before.Mzxid}, ev)
			ev, err = sub.Next(t.Context())
			require.NoError(t, err)
			if assert.Equal(t, framework.NodeDataChanged, ev.Type); tells {
				assert.Equal(t, now.Mzxid, ev.Zxid)
			} else {
				assert.Zero(t, ev.Zxid)
			}
		})
	}
}

// Nothing is told of an outage, and everything after it, on the same session or another one.
func TestSubscriptionOutlivesConnectionsAndSessions(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, other.EnsurePath(t.Context(), "/a"))
		tree, err := c.Subscribe(t.Context(), "/a", framework.Subtree())
		require.NoError(t, err)
		node, err := c.Subscribe(t.Context(), "/a/x")
		require.NoError(t, err)
		assert.Equal(t, []string{"Established /a"}, told(t, tree))
		assert.Equal(t, []string{"Established /a/x"}, told(t, node))
		for i, outage := range []func() error{
			func() error { return srv.Disconnect(c.SessionID()) },
			func() error { return srv.ExpireSession(c.SessionID()) },
		} {
			require.NoError(t, outage())
			_, err = other.Create(t.Context(), fmt.Sprintf("/a/%d", i), nil, framework.Persistent)
			require.NoError(t, err)
			ev, err := tree.Next(t.Context())
			require.NoError(t, err)
			assert.Equal(t, framework.Gap, ev.Type)
			require.ErrorIs(t, ev.Err, framework.ErrNotConnected)
			assert.NotZero(t, ev.Zxid)
			synctest.Wait() // a gap is told before the client counts as not connected
			require.NoError(t, c.BlockUntilConnected(t.Context()))
			assert.Equal(t, "Established /a", told(t, tree)[0], "the new node is told of if the client was back first")
			assert.Equal(t, []string{"Gap /a/x", "Established /a/x"}, told(t, node))
			_, err = other.Create(t.Context(), "/a/x", nil, framework.Persistent)
			require.NoError(t, err)
			require.NoError(t, other.Delete(t.Context(), "/a/x", 0))
			assert.Equal(t, []string{"NodeCreated /a/x", "NodeDeleted /a/x"}, told(t, tree))
			assert.Equal(t, []string{"NodeCreated /a/x", "NodeDeleted /a/x"}, told(t, node))
		}
	})
}

// Who reads too slowly is told so, and then of everything that follows.
func TestSubscriberThatIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/a"))
		sub, err := c.Subscribe(t.Context(), "/a", framework.Subtree(), framework.Buffer(10))
		require.NoError(t, err)
		quick, err := c.Subscribe(t.Context(), "/a", framework.Subtree())
		require.NoError(t, err)
		for i := range 100 {
			_, err = c.Create(t.Context(), fmt.Sprintf("/a/%d", i), nil, framework.Persistent)
			require.NoError(t, err)
		}
		ev, err := sub.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, framework.Event{Type: framework.Gap, Path: "/a", Err: framework.ErrBehind}, ev)
		list := told(t, sub)
		assert.Equal(t, "Established /a", list[0])
		assert.LessOrEqual(t, len(list), 1+10)
		assert.Equal(t, "NodeCreated /a/99", list[len(list)-1])
		assert.Len(t, told(t, quick), 101)

		for range 1000 { // outages that nobody reads of
			require.NoError(t, srv.Disconnect(c.SessionID()))
			require.NoError(t, c.Sync(t.Context(), "/"))
		}
		assert.Equal(t, []string{"Gap /a", "Established /a"}, told(t, sub))
	})
}

func TestSubscriptionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c, err := framework.Connect(t.Context(), kit.Config(srv))
		require.NoError(t, err)
		sub, err := c.Subscribe(t.Context(), "/a")
		require.NoError(t, err)
		ended := make(chan error, 2)
		for range 2 {
			go func() {
				var last error
				for _, err := range sub.Events(t.Context()) {
					last = err
				}
				ended <- last
			}()
		}
		time.Sleep(time.Second)
		require.NoError(t, c.Close())
		require.ErrorIs(t, <-ended, framework.ErrClosed)
		require.ErrorIs(t, <-ended, framework.ErrClosed)
		sub.Stop()
		_, err = c.Subscribe(t.Context(), "/a")
		require.ErrorIs(t, err, framework.ErrClosed)
		_, err = new(framework.Subscription).Next(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
	})
}

func TestSubscribeThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		fault zktest.Fault
		want  error
	}{
		"not known":            {zktest.Fail(-6), framework.ErrUnsupported},
		"not with this server": {zktest.Fail(-5), framework.ErrUnsupported},
		"throttled":            {zktest.Fail(-127), nil},
		"lost before":          {zktest.CutBefore(), nil},
		"lost after":           {zktest.CutAfter(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				srv.On(zktest.Match{Op: "addWatch", Nth: 1}, tc.fault)
				_, _, w, err := c.ExistsW(t.Context(), "/a")
				require.NoError(t, err)
				sub, err := c.Subscribe(t.Context(), "/a")
				if tc.want == nil {
					require.NoError(t, err)
					assert.Equal(t, []string{"Established /a"}, told(t, sub))
				} else {
					require.ErrorIs(t, err, tc.want)
				}
				require.NoError(t, c.EnsurePath(t.Context(), "/a"))
				select {
				case ev := <-w.C:
					assert.Equal(t, framework.NodeCreated, ev.Type)
				case <-time.After(time.Second):
					assert.Fail(t, "the watch that stood before has no event")
				}
				sub.Stop()
				time.Sleep(time.Second)
				assert.Empty(t, srv.Watches())
			})
		})
	}
}

// Servers that do not know persistent watches are asked once.
func TestSubscribeLearnsThatServersCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		asked := srv.On(zktest.Match{Op: "addWatch"}, zktest.Fail(-6))
		c := kit.Connect(t, srv)
		for range 3 {
			_, err := c.Subscribe(t.Context(), "/a", framework.Subtree())
			require.ErrorIs(t, err, framework.ErrUnsupported)
		}
		assert.Equal(t, 1, asked.Fired())
	})
}

// A watch for one event fires at the next change of its node, whatever subscriptions of the
// same client begin and end on the same paths, and on whichever connection.
func TestWatchesBesideSubscriptions(t *testing.T) {
	for _, version := range zktest.Versions() {
		t.Run(version, func(t *testing.T) {
			seeds := uint64(50)
			if *everySweep {
				seeds = 150
			}
			for seed := range seeds {
				synctest.Test(t, func(t *testing.T) { watchesBesideSubscriptions(t, version, seed) })
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// A server that has too much to do refuses to remove a watch, and is asked again after a while.
func TestUnsubscribeAtABusyServer(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		c := kit.Connect(t, srv)
		var asked atomic.Int32
		rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "removeWatches", Func: func(zktest.Request) bool {
			asked.Add(1)
			return true
		}}, zktest.Fail(-127))
		sub, err := c.Subscribe(t.Context(), "/a")
		require.NoError(t, err)
		tree, err := c.Subscribe(t.Context(), "/b", framework.Subtree())
		require.NoError(t, err)
		_, _, w, err := c.ExistsW(t.Context(), "/c")
		require.NoError(t, err)
		sub.Stop()
		tree.Stop()
		w.Stop()
		time.Sleep(time.Minute)
		assert.InDelta(t, 3*60, asked.Load(), 3, "each once in a second")
		rule.Remove()
		time.Sleep(2 * time.Second)
		assert.Empty(t, srv.Watches())
		assert.NoError(t, c.Sync(t.Context(), "/"))
	})
}

// So is a server that keeps two modes for a path, about the one that is not wanted. The one that
// is stays.
func TestUnsubscribeOneModeAtABusyServer(t *testing.T) {
	const node, tree = "node", "tree"
	for _, steps := range [][]string{ // a path is subscribed to, or no more
		{node, tree}, {node, tree, tree}, {node, tree, node}, {tree, tree, node}, {node, node, tree},
		{tree, tree, node, node}, {tree, tree, node, tree}, {node, tree, tree, node},
	} {
		t.Run(strings.Join(steps, " "), func(t *testing.T) {
			onEach(t, func(t *testing.T, srv *zktest.Server) {
				c := kit.Connect(t, srv)
				rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "removeWatches"}, zktest.Fail(-127))
				subs := map[string]*framework.Subscription{}
				for _, step := range steps {
					if sub := subs[step]; sub != nil {
						sub.Stop()
						delete(subs, step)
						continue
					}
					var opts []framework.SubscribeOption
					if step == tree {
						opts = append(opts, framework.Subtree())
					}
					sub, err := c.Subscribe(t.Context(), "/a", opts...)
					require.NoError(t, err)
					subs[step] = sub
				}
				time.Sleep(time.Minute)
				rule.Remove()
				time.Sleep(2 * time.Second)
				var want []zktest.WatchInfo
				switch {
				case subs[tree] != nil:
					want = []zktest.WatchInfo{{Path: "/a", Kind: "persistentRecursive", Session: c.SessionID()}}
				case subs[node] != nil:
					want = []zktest.WatchInfo{{Path: "/a", Kind: "persistent", Session: c.SessionID()}}
				}
				assert.Equal(t, want, srv.Watches())
				for _, sub := range subs {
					sub.Stop()
				}
				time.Sleep(time.Second)
				assert.Empty(t, srv.Watches())
			})
		})
	}
}

// A server that refuses a watch for want of rights is not left. Who has subscribed, or does, is
// told.
func TestSubscriptionThatIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		logged, logs := kit.Logged(zapcore.WarnLevel)
		c := kit.Connect(t, srv, logged)
		states := kit.CountStates(c)
		sub, err := c.Subscribe(t.Context(), "/a")
		require.NoError(t, err)
		kept, err := c.Keep(t.Context(), "/b", nil)
		require.NoError(t, err)
		rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch"}, zktest.Fail(-102))
		require.NoError(t, srv.Disconnect(c.SessionID()))
		for _, want := range []framework.EventType{framework.Established, framework.Gap} {
			ev, err := sub.Next(t.Context())
			require.NoError(t, err)
			assert.Equal(t, want, ev.Type)
		}
		_, err = sub.Next(t.Context())
		require.ErrorIs(t, err, framework.ErrNoAuth)
		_, err = c.Subscribe(t.Context(), "/a")
		require.ErrorIs(t, err, framework.ErrNoAuth)
		time.Sleep(time.Minute)
		require.ErrorIs(t, kept.Err(), framework.ErrNoAuth)
		assert.Equal(t, 1, logs.Len(), "%v", logs.All())
		synctest.Wait()
		assert.Equal(t, 3, *states, "connected, suspended, connected again")
		rule.Remove()
		time.Sleep(time.Minute)
		require.NoError(t, kept.Err())
		_, err = c.Subscribe(t.Context(), "/a")
		require.NoError(t, err)
	})
}

// A server takes a subscription and refuses one beside it that tells more, or less. Both are told:
// the watch of the first may have been removed already.
func TestSubscriptionBesideOneThatIsRefused(t *testing.T) {
	node, subtree := []framework.SubscribeOption{}, []framework.SubscribeOption{framework.Subtree()}
	for code, want := range map[int32]error{-102: framework.ErrNoAuth, -5: framework.ErrUnsupported, -6: framework.ErrUnsupported} {
		for _, opts := range [][2][]framework.SubscribeOption{{node, subtree}, {subtree, node}} {
			onEach(t, func(t *testing.T, srv *zktest.Server) {
				c := kit.Connect(t, srv)
				states := kit.CountStates(c)
				sub, err := c.Subscribe(t.Context(), "/a", opts[0]...)
				require.NoError(t, err)
				assert.Equal(t, []string{"Established /a"}, told(t, sub))
				srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch"}, zktest.Fail(code))
				_, err = c.Subscribe(t.Context(), "/a", opts[1]...)
				require.ErrorIs(t, err, want)
				_, err = sub.Next(t.Context())
				require.ErrorIs(t, err, want)
				synctest.Wait()
				assert.Equal(t, 1, *states, "the connection stays")
			})
		}
	}
}

// A busy server refuses a subscription beside one that stands. Both stand once it is less busy.
func TestSubscribeBesideAnotherAtABusyServer(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		c := kit.Connect(t, srv)
		sub, err := c.Subscribe(t.Context(), "/a")
		require.NoError(t, err)
		rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch"}, zktest.Fail(-127))
		time.AfterFunc(time.Minute, rule.Remove)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err = c.Subscribe(ctx, "/a", framework.Subtree())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wider, err := c.Subscribe(t.Context(), "/a", framework.Subtree())
		require.NoError(t, err)
		assert.Equal(t, []string{"Established /a"}, told(t, wider))
		assert.Equal(t, []string{"Established /a", "Gap /a", "Established /a"}, told(t, sub))
	})
}

// A server that has too much to do refuses a watch. That ends neither the connection nor the
// watches for one event that are set behind it.
func TestSubscribeAtABusyServer(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		c, other := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.None() }), kit.Connect(t, srv)
		states := kit.CountStates(c)
		rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch", Nth: 1}, zktest.Fail(-127))
		failed := make(chan error)
		go func() {
			_, err := c.Subscribe(t.Context(), "/a")
			failed <- err
		}()
		_, _, w, err := c.ExistsW(t.Context(), "/a")
		require.NoError(t, err)
		err = <-failed
		assert.True(t, framework.Retryable(err), "%v", err)
		assert.Equal(t, 1, rule.Fired())
		_, err = other.Create(t.Context(), "/a", nil, framework.Persistent)
		require.NoError(t, err)
		assert.Equal(t, framework.NodeCreated, (<-w.C).Type)
		sub, err := c.Subscribe(t.Context(), "/a")
		require.NoError(t, err)
		assert.Equal(t, []string{"Established /a"}, told(t, sub))
		synctest.Wait()
		assert.Equal(t, 1, *states, "the connection stays")
	})
}

// The last subscription with Subtree on a path ends. Until the server has heard of that, its
// watch serves those without.
func TestSubscriptionThatOutlivesOneWithSubtree(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, other.EnsurePath(t.Context(), "/a"))
		node, err := c.Subscribe(t.Context(), "/a")
		require.NoError(t, err)
		tree, err := c.Subscribe(t.Context(), "/a", framework.Subtree())
		require.NoError(t, err)
		told(t, node)
		srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch"}, zktest.Call(func(zktest.Request) {
			_, err := other.Create(t.Context(), "/a/b", nil, framework.Persistent)
			assert.NoError(t, err)
		}))
		tree.Stop()
		assert.Equal(t, []string{"NodeChildrenChanged /a"}, told(t, node))
		require.NoError(t, other.Delete(t.Context(), "/a/b", framework.AnyVersion))
		assert.Equal(t, []string{"NodeChildrenChanged /a"}, told(t, node))
	})
}

func watchesBesideSubscriptions(t *testing.T, version string, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
	srv := zktest.Start(t, zktest.InMemory(), zktest.Version(version), zktest.Latency(time.Millisecond))
	c, other := kit.Connect(t, srv, kit.SmallBuffers), kit.Connect(t, srv, kit.SmallBuffers)
	paths := []string{"/a", "/a/b", "/a/c"}
	type subscribed struct {
		*framework.Subscription
		path    string
		subtree bool
	}
	var subs []subscribed
	begun := make(chan subscribed, 100)
	type waiting struct {
		w        *framework.Watch
		children bool
		path     string
	}
	var watches []waiting
	var script []string
	due := func(ev framework.EventType, path string) { // who waits for it has it
		time.Sleep(10 * time.Millisecond)
		left := watches[:0]
		for _, w := range watches {
			concerns := w.path == path && (ev == framework.NodeDeleted || w.children == (ev == framework.NodeChildrenChanged))
			select {
			case got := <-w.w.C:
				assert.True(t, concerns, "%v: %v of %s", script, got, w.path)
			default:
				assert.False(t, concerns, "%v: no event of %s", script, w.path)
				left = append(left, w)
			}
		}
		watches = left
	}
	var busy *zktest.Rule                                // by which the server sets no persistent watch
	heard := func(ev framework.EventType, path string) { // as subscribers do
		if busy != nil {
			return // they have a gap
		}
		for _, s := range subs {
			list := told(t, s.Subscription)
			if s.path == path || s.subtree && strings.HasPrefix(path, s.path+"/") {
				assert.Contains(t, list, ev.String()+" "+path, "%v: %s %v", script, s.path, s.subtree)
			}
		}
	}
	for range 40 {
		if busy != nil && r.IntN(6) == 0 {
			script = append(script, "busy no more")
			busy.Remove()
			busy = nil
			time.Sleep(2 * time.Second)
		}
		for len(begun) > 0 {
			s := <-begun
			told(t, s.Subscription)
			subs = append(subs, s)
		}
		path := paths[r.IntN(len(paths))]
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var err error
		switch n := r.IntN(10); n {
		case 0, 1:
			script = append(script, fmt.Sprintf("subscribe %s %v", path, n == 0))
			var opts []framework.SubscribeOption
			if n == 0 {
				opts = append(opts, framework.Subtree())
			}
			go func() { // so that what follows is on its way at the same time
				sub, err := c.Subscribe(t.Context(), path, opts...)
				if err == nil {
					begun <- subscribed{sub, path, n == 0}
				}
			}()
			if r.IntN(2) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		case 2:
			if len(subs) > 0 {
				i := r.IntN(len(subs))
				script = append(script, fmt.Sprintf("stop %d", i))
				subs[i].Stop()
				subs = append(subs[:i], subs[i+1:]...)
			}
			time.Sleep(time.Duration(r.IntN(4)) * time.Millisecond)
		case 3:
			script = append(script, "disconnect")
			if busy == nil && r.IntN(2) == 0 {
				script = append(script, "busy")
				busy = srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch"}, zktest.Fail(-127))
			}
			require.NoError(t, srv.Disconnect(c.SessionID()))
			require.NoError(t, c.Sync(ctx, "/"))
		case 4, 5, 6:
			w := waiting{path: path, children: n == 6}
			script = append(script, fmt.Sprintf("watch %s %v", path, w.children))
			if w.children {
				_, _, w.w, err = c.ChildrenW(ctx, path)
			} else {
				_, _, w.w, err = c.ExistsW(ctx, path)
			}
			if err == nil && r.IntN(4) == 0 {
				script = append(script, "gave it up")
				w.w.Stop()
			} else if err == nil {
				watches = append(watches, w)
			}
		default:
			script = append(script, "change "+path)
			if n == 9 {
				_, err = other.Set(ctx, path, nil, framework.AnyVersion)
				if err == nil {
					due(framework.NodeDataChanged, path)
					heard(framework.NodeDataChanged, path)
				}
			} else if there, stat, _ := other.Exists(ctx, path); there && stat.NumChildren == 0 {
				require.NoError(t, other.Delete(ctx, path, framework.AnyVersion))
				parent, _ := framework.PathAndNode(path)
				dueBoth(due, framework.NodeDeleted, path, parent, &watches, func(w waiting) bool { return w.path == parent && w.children })
				heard(framework.NodeDeleted, path)
			} else if !there {
				if _, err = other.Create(ctx, path, nil, framework.Persistent); err == nil {
					parent, _ := framework.PathAndNode(path)
					dueBoth(due, framework.NodeCreated, path, parent, &watches, func(w waiting) bool { return w.path == parent && w.children })
					heard(framework.NodeCreated, path)
				}
			}
		}
		cancel()
		if errors.Is(err, framework.ErrNoNode) {
			err = nil
		}
		require.NoError(t, err, "%v", script)
		if t.Failed() {
			return
		}
	}
	if busy != nil {
		busy.Fired()
		busy.Remove()
	}
	time.Sleep(time.Minute) // until whoever subscribes has tried again
	for _, w := range watches {
		w.w.Stop()
	}
	for len(begun) > 0 {
		subs = append(subs, <-begun)
	}
	for _, sub := range subs {
		sub.Stop()
	}
	time.Sleep(time.Second)
	for _, left := range srv.Watches() {
		// A removal at which a connection has ended is not repeated, see transport.Suspects.
		assert.True(t, slices.Contains(script, "disconnect") && !strings.HasPrefix(left.Kind, "persistent"), "%v: %v", script, left)
	}
}

// dueBoth is for a change that is told of a node, and of its parent's children.
func dueBoth[W any](due func(framework.EventType, string), ev framework.EventType, path, parent string, watches *[]W, ofParent func(W) bool) {
	var apart, rest []W
	for _, w := range *watches {
		if ofParent(w) {
			apart = append(apart, w)
		} else {
			rest = append(rest, w)
		}
	}
	*watches = rest
	due(ev, path)
	rest, *watches = *watches, apart
	due(framework.NodeChildrenChanged, parent)
	*watches = append(rest, *watches...)
}

// Nor does it if a later request for the path is on its way.
func TestSubscribesAtABusyServer(t *testing.T) {
	for name, meddle := range map[string]func(c *framework.Client, cancel func()){
		"another one": func(c *framework.Client, _ func()) {
			_, err := c.Subscribe(context.Background(), "/a")
			assert.True(t, framework.Retryable(err), "%v", err)
		},
		"given up": func(_ *framework.Client, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(100*time.Millisecond))
				c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.None() })
				states := kit.CountStates(c)
				rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch"}, zktest.Fail(-127))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(10*time.Millisecond, func() { meddle(c, cancel) })
				_, err := c.Subscribe(ctx, "/a")
				require.Error(t, err)
				time.Sleep(time.Second)
				synctest.Wait()
				assert.Equal(t, 1, *states, "the connection stays")
				assert.NotZero(t, rule.Fired())
				rule.Remove()
				sub, err := c.Subscribe(t.Context(), "/a")
				require.NoError(t, err)
				assert.Equal(t, []string{"Established /a"}, told(t, sub))
			})
		})
	}
}

// Each is told that it stands by the answer to its own request, and not to one before it on the
// same path.
func TestSubscribesOnTheirWayTogether(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		srv.SetLatency(time.Millisecond)
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch", Nth: 2}, zktest.Delay(time.Second))
		began := time.Now()
		go func() {
			_, err := c.Subscribe(t.Context(), "/a")
			assert.NoError(t, err)
			assert.Equal(t, 2*time.Millisecond, time.Since(began))
		}()
		synctest.Wait()
		tree, err := c.Subscribe(t.Context(), "/a", framework.Subtree())
		require.NoError(t, err)
		_, err = other.Create(t.Context(), "/a/x", nil, framework.Persistent, framework.Parents())
		require.NoError(t, err)
		assert.Equal(t, []string{"Established /a", "NodeCreated /a", "NodeCreated /a/x"}, told(t, tree))
	})
}

// A watch for one event does not wait for the removal of a persistent one that would not tell
// of it.
func TestChildWatchWhileARemovalIsPutOff(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		srv.SetLatency(time.Millisecond)
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/b", nil, framework.Persistent)
		require.NoError(t, err)
		tree, err := c.Subscribe(t.Context(), "/b", framework.Subtree())
		require.NoError(t, err)
		node, err := c.Subscribe(t.Context(), "/b")
		require.NoError(t, err)
		var asked atomic.Int32
		rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "removeWatches", Func: func(zktest.Request) bool {
			return asked.Add(1) != 2 // that of the node
		}}, zktest.Fail(-127))
		time.AfterFunc(20*time.Second, rule.Remove)
		tree.Stop()
		time.Sleep(10 * time.Millisecond)
		node.Stop()
		time.Sleep(10 * time.Millisecond)
		childWatchTellsAtOnce(t, srv, c, other)
	})
}

// childWatchTellsAtOnce lets c wait for a child of /b, which another client makes. Nothing is left then.
func childWatchTellsAtOnce(t *testing.T, srv *zktest.Server, c, other *framework.Client) {
	t.Helper()
	_, _, w, err := c.ChildrenW(t.Context(), "/b")
	require.NoError(t, err)
	_, err = other.Create(t.Context(), "/b/x", nil, framework.Persistent)
	require.NoError(t, err)
	created := time.Now()
	assert.Equal(t, framework.NodeChildrenChanged, (<-w.C).Type)
	assert.Less(t, time.Since(created), 100*time.Millisecond)
	time.Sleep(time.Minute)
	assert.Empty(t, srv.Watches())
}

// Nor if the removal that is put off is of the same kind as one that is through.
func TestChildWatchWhileOneOfTwoRemovalsIsPutOff(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		srv.SetLatency(time.Millisecond)
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/b", nil, framework.Persistent)
		require.NoError(t, err)
		srv.On(zktest.Match{Session: c.SessionID(), Op: "removeWatches", Nth: 1}, zktest.Fail(-127))
		for range 2 {
			tree, err := c.Subscribe(t.Context(), "/b", framework.Subtree())
			require.NoError(t, err)
			tree.Stop()
			time.Sleep(10 * time.Millisecond)
		}
		childWatchTellsAtOnce(t, srv, c, other)
	})
}

// So it does if it sets none for a subscription. Who has subscribed has a gap until it does, and
// watches for one event on the same path tell theirs.
func TestResubscribeAtABusyServer(t *testing.T) {
	for name, opts := range map[string][]framework.SubscribeOption{"node": nil, "tree": {framework.Subtree()}} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, srv *zktest.Server) {
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				sub, err := c.Subscribe(t.Context(), "/a", opts...)
				require.NoError(t, err)
				for _, path := range []string{"/b", "/c"} {
					stopped, err := c.Subscribe(t.Context(), path, opts...)
					require.NoError(t, err)
					defer stopped.Stop()
					time.AfterFunc(30*time.Second, stopped.Stop)
				}
				stays, err := c.Subscribe(t.Context(), "/c", opts...)
				require.NoError(t, err)
				_, _, before, err := c.ExistsW(t.Context(), "/a")
				require.NoError(t, err)
				rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch"}, zktest.Fail(-127))
				states := kit.CountStates(c)
				require.NoError(t, srv.Disconnect(c.SessionID()))
				time.Sleep(20 * time.Second)
				_, err = other.Create(t.Context(), "/a", nil, framework.Persistent)
				require.NoError(t, err)
				assert.Equal(t, framework.NodeCreated, (<-before.C).Type)
				_, _, during, err := c.GetW(t.Context(), "/a")
				require.NoError(t, err)
				_, err = other.Set(t.Context(), "/a", nil, framework.AnyVersion)
				require.NoError(t, err)
				assert.Equal(t, framework.NodeDataChanged, (<-during.C).Type)
				_, _, after, err := c.GetW(t.Context(), "/a")
				require.NoError(t, err)
				time.Sleep(20 * time.Second)
				assert.InDelta(t, 3*20+2*20, rule.Fired(), 10, "each once in a second")
				rule.Remove()
				time.Sleep(2 * time.Second)
				assert.Equal(t, []string{"Established /a", "Gap /a", "Established /a"}, told(t, sub))
				assert.Equal(t, []string{"Established /c", "Gap /c", "Established /c"}, told(t, stays))
				require.NoError(t, other.Delete(t.Context(), "/a", framework.AnyVersion))
				assert.Equal(t, framework.NodeDeleted, (<-after.C).Type)
				assert.Equal(t, []string{"NodeDeleted /a"}, told(t, sub))
				synctest.Wait()
				assert.Equal(t, 3, *states, "connected, suspended, connected again")
				sub.Stop()
				stays.Stop()
				time.Sleep(2 * time.Second)
				assert.Empty(t, srv.Watches())
			})
		})
	}
}

// A server that has too much to do to set watches again keeps the connection. It is asked again
// after a while, for those that are still waited for, and tells then what they have missed.
func TestReconnectAtABusyServer(t *testing.T) {
	onEach(t, func(t *testing.T, srv *zktest.Server) {
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		_, _, missed, err := c.ExistsW(t.Context(), "/a")
		require.NoError(t, err)
		_, _, stopped, err := c.ExistsW(t.Context(), "/b")
		require.NoError(t, err)
		_, _, later, err := c.ExistsW(t.Context(), "/c")
		require.NoError(t, err)
		rule := srv.On(zktest.Match{Session: c.SessionID(), Op: "setWatches"}, zktest.Fail(-127))
		require.NoError(t, srv.Disconnect(c.SessionID()))
		states := kit.CountStates(c)
		time.Sleep(30 * time.Second)
		stopped.Stop()
		_, err = other.Create(t.Context(), "/a", nil, framework.Persistent)
		require.NoError(t, err)
		time.Sleep(30 * time.Second)
		assert.InDelta(t, 60, rule.Fired(), 3, "once in a second")
		rule.Remove()
		assert.Equal(t, framework.NodeCreated, (<-missed.C).Type)
		time.Sleep(2 * time.Second)
		assert.Equal(t, []zktest.WatchInfo{{Path: "/c", Kind: "exist", Session: c.SessionID()}}, srv.Watches())
		_, err = other.Create(t.Context(), "/c", nil, framework.Persistent)
		require.NoError(t, err)
		assert.Equal(t, framework.NodeCreated, (<-later.C).Type)
		synctest.Wait()
		assert.LessOrEqual(t, *states, 3, "connected, suspended, connected again")
	})
}

// A watch for one event misses nothing between the end of a subscription to its path and the
// beginning of the next one, though both are on their way together.
func TestWatchBetweenSubscriptions(t *testing.T) {
	for _, first := range [][]framework.SubscribeOption{nil, {framework.Subtree()}} {
		for _, next := range [][]framework.SubscribeOption{nil, {framework.Subtree()}} {
			onEach(t, func(t *testing.T, srv *zktest.Server) {
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				require.NoError(t, other.EnsurePath(t.Context(), "/a"))
				sub, err := c.Subscribe(t.Context(), "/a", first...)
				require.NoError(t, err)
				_, _, data, err := c.GetW(t.Context(), "/a")
				require.NoError(t, err)
				_, _, children, err := c.ChildrenW(t.Context(), "/a")
				require.NoError(t, err)
				srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch"}, zktest.Call(func(zktest.Request) {
					_, err := other.Set(t.Context(), "/a", nil, framework.AnyVersion)
					assert.NoError(t, err)
					_, err = other.Create(t.Context(), "/a/b", nil, framework.Persistent)
					assert.NoError(t, err)
				}))
				sub.Stop()
				sub, err = c.Subscribe(t.Context(), "/a", next...)
				require.NoError(t, err)
				defer sub.Stop()
				time.Sleep(time.Second)
				for _, w := range []*framework.Watch{data, children} {
					select {
					case <-w.C:
					default:
						t.Error("it was not told")
					}
				}
			})
		}
	}
}

// Nor does one whose read is on its way meanwhile, before or behind the removal.
func TestWatchOnItsWayBetweenSubscriptions(t *testing.T) {
	for _, behind := range []bool{false, true} {
		onEach(t, func(t *testing.T, srv *zktest.Server) {
			srv.SetLatency(time.Millisecond)
			c, other := kit.Connect(t, srv), kit.Connect(t, srv)
			require.NoError(t, other.EnsurePath(t.Context(), "/a"))
			sub, err := c.Subscribe(t.Context(), "/a")
			require.NoError(t, err)
			srv.On(zktest.Match{Session: c.SessionID(), Op: "addWatch", Nth: 1}, zktest.Call(func(zktest.Request) {
				_, err := other.Set(t.Context(), "/a", nil, framework.AnyVersion)
				assert.NoError(t, err)
			}))
			if behind {
				sub.Stop()
			}
			read := make(chan *framework.Watch)
			go func() {
				_, _, w, err := c.GetW(t.Context(), "/a")
				assert.NoError(t, err)
				read <- w
			}()
			synctest.Wait()
			if !behind {
				sub.Stop()
			}
			next := make(chan *framework.Subscription)
			go func() {
				sub, err := c.Subscribe(t.Context(), "/a")
				assert.NoError(t, err)
				next <- sub
			}()
			w := <-read
			sub = <-next
			defer sub.Stop()
			time.Sleep(time.Second)
			assert.Len(t, w.C, 1)
			_, err = other.Create(t.Context(), "/a/b", nil, framework.Persistent)
			require.NoError(t, err)
			assert.Contains(t, told(t, sub), "NodeChildrenChanged /a")
		})
	}
}

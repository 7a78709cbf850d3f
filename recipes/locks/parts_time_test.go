package locks_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A mutex comes to a path while a semaphore makes its parts there. These go again, and do
// not harm mutexes. Parts that are left, since the connection has ended before the
// semaphore looked, let nobody in.
func TestMutexThatComesWhileASemaphoreMakesItsParts(t *testing.T) {
	for name, lost := range map[string]bool{"": false, "the look is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				a, b, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				require.NoError(t, a.EnsurePath(t.Context(), "/p"))
				var hold *locks.Hold
				srv.On(zktest.Match{Path: "/p/locks", Op: "createContainer", Nth: 1}, zktest.Call(func(zktest.Request) {
					var err error
					hold, err = locks.NewInterProcessMutex(a, "/p").Acquire(context.WithoutCancel(t.Context()))
					assert.NoError(t, err)
				}))
				if lost {
					srv.On(zktest.Match{Path: "/p", Op: "getChildren", Session: b.SessionID(), Nth: 2}, zktest.CutBefore())
				}
				for range 2 {
					_, err := locks.NewInterProcessSemaphore(b, "/p", 1).Acquire(t.Context())
					require.ErrorIs(t, err, locks.ErrInvalidLock)
				}
				if !lost {
					_, err := locks.NewInterProcessSemaphore(c, "/p", 1).Acquire(t.Context())
					require.ErrorIs(t, err, locks.ErrInvalidLock)
				}
				require.NoError(t, hold.Err())
				if !lost {
					next := kit.Acquire(t, locks.NewInterProcessMutex(c, "/p"))
					require.NoError(t, hold.Release())
					hold = next.Soon()
				}
				require.NoError(t, hold.Release())
				require.NoError(t, kit.Hold(t, locks.NewInterProcessSemaphore(b, "/p", 1)).Release())
			})
		})
	}
}

// Three clients come to one path at once, with two kinds of lock, and their requests reach
// the servers in any order. No two kinds are held at the same time, whoever makes the
// semaphore's parts.
func TestKindsNeverMeet(t *testing.T) {
	t.Parallel()
	from, to := uint64(26), uint64(30) // 27 and 29 have let two kinds meet
	if *everySweep {
		from, to = 0, 400
	}
	for _, with := range []string{"mutex", "write", "latch", "mutex in a MultiLock"} {
		for _, semaphore := range []string{"semaphore", "semaphore mutex in a MultiLock"} {
			if strings.Contains(with, "MultiLock") && strings.Contains(semaphore, "MultiLock") {
				continue // these share another lock
			}
			t.Run(with+" and "+semaphore, func(t *testing.T) {
				for seed := from; seed < to; seed++ {
					synctest.Test(t, func(t *testing.T) { kindsMeet(t, seed, with, semaphore, semaphore) })
				}
			})
		}
	}
}

func kindsMeet(t *testing.T, seed uint64, names ...string) {
	srv := zktest.Start(t, zktest.InMemory())
	random := rand.New(rand.NewPCG(seed, 0))
	clients := make([]*framework.Client, len(names))
	for i := range names {
		clients[i] = kit.Connect(t, srv)
	}
	require.NoError(t, clients[0].EnsurePath(t.Context(), "/x/y"))
	most := []time.Duration{d, 5 * d, 20 * d}
	var slow []*zktest.Rule
	for i, c := range clients {
		slow = append(slow, srv.On(zktest.Match{Session: c.SessionID()}, zktest.DelayBy(seed+uint64(i), zktest.Uniform(0, most[random.IntN(len(most))])))) //nolint:gosec // it is small
	}
	var mu sync.Mutex
	held := make(map[string]int)
	var all sync.WaitGroup
	for i, name := range names {
		lock, begin, stay := kinds[name].lock(clients[i]), time.Duration(random.IntN(100))*time.Millisecond, time.Duration(random.IntN(300))*time.Millisecond
		all.Go(func() {
			time.Sleep(begin)
			for range 2 {
				h, err := lock.Acquire(t.Context())
				if err != nil {
					assert.ErrorIs(t, err, locks.ErrInvalidLock)
					continue
				}
				mu.Lock()
				held[kinds[name].kind]++
				assert.Len(t, held, 1, "seed %d: two kinds are held", seed)
				mu.Unlock()
				time.Sleep(stay)
				mu.Lock()
				if held[kinds[name].kind]--; held[kinds[name].kind] == 0 {
					delete(held, kinds[name].kind)
				}
				mu.Unlock()
				assert.NoError(t, h.Release())
			}
		})
	}
	all.Wait()
	// Whoever was refused has left nothing: each kind can be used once the other has gone.
	for _, r := range slow {
		r.Remove()
	}
	time.Sleep(time.Minute)
	for i, name := range names {
		h, err := kinds[name].lock(clients[i]).TryAcquire(t.Context(), time.Second)
		if assert.NoError(t, err, "seed %d", seed) {
			require.NoError(t, h.Release())
		}
		time.Sleep(5 * time.Minute)
	}
}

// Curator's mutex does not look for the parts of a semaphore, so it comes where these
// stand empty. Whoever wants a lease then is refused, unless that node goes soon.
func TestMutexBesideTheEmptyPartsOfASemaphore(t *testing.T) {
	for _, name := range []string{"semaphore", "semaphore mutex", "semaphore mutex in a MultiLock"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
				c, peer, java := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				lock := kinds[name].lock(c)
				require.NoError(t, kit.Hold(t, lock).Release())
				mutex := kit.Put(t, java, "/x/y/"+kinds["mutex"].java)
				_, err := lock.TryAcquire(t.Context(), time.Second)
				require.ErrorIs(t, err, locks.ErrNotAcquired)
				require.ErrorContains(t, err, "behind "+mutex)
				_, err = lock.Acquire(t.Context())
				require.ErrorIs(t, err, locks.ErrInvalidLock)
				require.ErrorContains(t, err, "/x/y is used by a lock of another kind, a mutex")
				_, err = lock.TryAcquire(t.Context(), 0)
				require.ErrorIs(t, err, locks.ErrInvalidLock)
				_, err = locks.NewInterProcessSemaphore(c, "/x/y", 3).Participants(t.Context())
				require.ErrorIs(t, err, locks.ErrInvalidLock)
				require.Empty(t, srv.Ephemerals(c.SessionID()))

				soon := kit.Acquire(t, lock)
				time.Sleep(time.Second / 2)
				require.True(t, soon.Pending())
				require.NoError(t, java.Delete(t.Context(), mutex, framework.AnyVersion))
				require.NoError(t, soon.Soon().Release())

				first := kit.Hold(t, kinds[name].lock(peer))
				kit.Put(t, java, "/x/y/"+kinds["mutex"].java)
				_, err = locks.NewInterProcessSemaphore(c, "/x/y", 3).Participants(t.Context())
				require.NoError(t, err, "the semaphore was there first")
				require.NoError(t, first.Release())
			})
		})
	}
}

// Servers keep a container that never had a child. So parts that nobody has used must not
// stay where they were made in vain: every other kind of lock would be refused for ever.
func TestPartsThatWereMadeInVain(t *testing.T) {
	for name, lose := range map[string]func(srv *zktest.Server, end context.CancelFunc){
		"their deletion is lost": func(srv *zktest.Server, _ context.CancelFunc) {
			srv.On(zktest.Match{Path: "/x/y/leases", Op: "delete", Nth: 1}, zktest.CutBefore())
		},
		"the look is lost, and the context ends": func(srv *zktest.Server, end context.CancelFunc) {
			srv.On(zktest.Match{Path: "/x/y", Op: "getChildren", Nth: 3}, zktest.Call(func(zktest.Request) { end() }))
			srv.On(zktest.Match{Path: "/x/y", Op: "getChildren", Nth: 3}, zktest.CutBefore())
		},
		"the context ends as they are made": func(srv *zktest.Server, end context.CancelFunc) {
			srv.On(zktest.Match{Path: "/x/y/locks", Op: "createContainer"}, zktest.Call(func(zktest.Request) { end() }))
			srv.On(zktest.Match{Path: "/x/y/leases", Op: "createContainer"}, zktest.Delay(d))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				a, b := kit.Connect(t, srv), kit.Connect(t, srv)
				require.NoError(t, a.EnsurePath(t.Context(), "/x/y"))
				var hold *locks.Hold
				srv.On(zktest.Match{Path: "/x/y/locks", Op: "createContainer", Nth: 1}, zktest.Call(func(zktest.Request) {
					var err error
					hold, err = kinds["mutex"].lock(a).Acquire(context.WithoutCancel(t.Context()))
					assert.NoError(t, err)
				}))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				lose(srv, cancel)
				_, err := kinds["semaphore"].lock(b).Acquire(ctx)
				require.Error(t, err)
				time.Sleep(10 * time.Second)
				there, _, err := a.Exists(t.Context(), "/x/y/leases")
				require.NoError(t, err)
				require.False(t, there)
				require.NoError(t, hold.Release())
			})
		})
	}
}

package acquire_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// An ordered MultiLock sees that it is in the way of who has a lock that it has
// not come to yet.
func TestOrderedMultiLockYieldsToOwnersOfLaterLocks(t *testing.T) {
	for name, later := range map[string]func(c *framework.Client) locks.Lock{
		"mutex":           func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/c") },
		"semaphore mutex": func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/c") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
				stranger, nests, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				outer, err := later(nests).Acquire(t.Context())
				require.NoError(t, err)
				b, err := locks.NewInterProcessMutex(stranger, "/b").Acquire(t.Context())
				require.NoError(t, err)
				m := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b"), later(c))
				multi := kit.Acquire(t, m.Ordered())
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 2)) // it has /a
				began := time.Now()
				inner, err := locks.NewInterProcessMutex(nests, "/a").Acquire(t.Context()) // else its name says it
				require.NoError(t, err)
				assert.Less(t, time.Since(began), 150*time.Millisecond, "before it would yield to anybody")
				require.NoError(t, inner.Release())
				require.NoError(t, outer.Release())
				require.NoError(t, b.Release())
				require.NoError(t, multi.Soon().Release())
			})
		})
	}
}

// MultiLocks of one client do not take each other for the holder of what both wait for.
func TestMultiLocksOfOneClientKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		c := kit.Connect(t, srv)
		lock := func(path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
		b, err := lock("/b").Acquire(t.Context())
		require.NoError(t, err)
		var multis []*kit.Acquisition
		for i := range 2 {
			multis = append(multis, kit.Acquire(t, locks.NewInterProcessMultiLock(lock("/a"), lock("/b"))))
			require.NoError(t, srv.WaitChildren(t.Context(), "/b", i+2))
		}
		before := srv.Requests()["multi"]
		time.Sleep(150 * time.Millisecond)
		assert.Equal(t, before, srv.Requests()["multi"], "nobody yielded")
		require.NoError(t, b.Release())
		for _, got := range multis {
			require.NoError(t, got.Soon().Release())
		}
	})
}

// Of two MultiLocks that wait for each other the younger yields, whatever process it is in:
// else one could yield to all that come after it. A plain user is there as well: among
// themselves MultiLocks with places in order yield to nobody.
func TestTheYoungerOfTwoMultiLocksYields(t *testing.T) {
	for name, tc := range map[string]struct {
		writes int64 // since the other began; less than 0 if it begins later
		yields bool
	}{
		"the other is older":   {1000, true},
		"the other is younger": {-1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
				other, c := kit.Connect(t, srv), kit.Connect(t, srv)
				var now *framework.Stat
				for range 2000 {
					var err error
					now, err = c.Set(t.Context(), "/", nil, -1)
					require.NoError(t, err)
				}
				tag := nodename.NewTag(now.Mzxid-tc.writes, [3]byte{0x80, 0x80, 0x80})
				queue := func(path string) string {
					created, err := other.Create(t.Context(), path+"/"+nodename.Owned([10]byte{}, nodename.Owner{Tag: tag, Way: nodename.Joint})+"lock-", nil, framework.EphemeralSequential, framework.Parents())
					require.NoError(t, err)
					return created
				}
				queue("/b")
				plain := kit.Acquire(t, locks.NewInterProcessMutex(c, "/b"))
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 2))
				multi := kit.Acquire(t, locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b")))
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 3))
				theirs := path.Base(queue("/a"))
				time.Sleep(15 * time.Millisecond) // before it would yield to anybody
				ours, _, err := other.Children(t.Context(), "/a")
				require.NoError(t, err)
				ours = slices.DeleteFunc(ours, func(name string) bool { return name == theirs })
				require.Len(t, ours, 1)
				number := func(name string) string { return name[len(name)-10:] }
				assert.Equal(t, tc.yields, number(ours[0]) > number(theirs), "behind them")
				require.NoError(t, other.Close())
				require.NoError(t, plain.Soon().Release())
				require.NoError(t, multi.Soon().Release())
			})
		})
	}
}

// Patience with those of whom nothing shows grows with what a MultiLock has
// waited, but not through a fault.
func TestPatienceGrowsWithTheWait(t *testing.T) {
	const young, old = 500 * time.Millisecond, 900 * time.Millisecond // backoff, at most and at least
	for name, tc := range map[string]struct {
		waited        time.Duration
		fault         bool
		atLeast, less time.Duration
	}{
		"young":         {less: young},
		"old":           {waited: 10 * time.Second, atLeast: old, less: 1500 * time.Millisecond},
		"after a fault": {waited: 10 * time.Second, fault: true, less: young},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
				first, second, third, stranger, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				b, err := locks.NewInterProcessMutex(first, "/b").Acquire(t.Context())
				require.NoError(t, err)
				next := kit.Acquire(t, locks.NewInterProcessMutex(second, "/b"))
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 2))
				tired, tire := context.WithCancel(t.Context())
				gone := make(chan error, 1)
				go func() {
					_, err := locks.NewInterProcessMutex(third, "/b").Acquire(tired)
					gone <- err
				}()
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 3))
				multi := kit.Acquire(t, locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b")))
				require.NoError(t, srv.WaitChildren(t.Context(), "/b", 4)) // it has /a
				time.Sleep(tc.waited)
				if tc.fault {
					srv.DisconnectAll()
					time.Sleep(kit.SessionTimeout / 10)
					for _, c := range []*framework.Client{first, second, third, stranger, c} {
						require.NoError(t, c.BlockUntilConnected(t.Context()))
					}
				}
				require.NoError(t, b.Release())
				b = next.Soon() // somebody else has it from now on,
				tire()          // as the MultiLock learns when the one ahead of it goes
				require.ErrorIs(t, <-gone, context.Canceled)
				began := time.Now()
				a, err := locks.NewInterProcessMutex(stranger, "/a").Acquire(t.Context())
				require.NoError(t, err)
				assert.GreaterOrEqual(t, time.Since(began), tc.atLeast)
				assert.Less(t, time.Since(began), tc.less)
				require.NoError(t, a.Release())
				require.NoError(t, b.Release())
				require.NoError(t, multi.Soon().Release())
			})
		})
	}
}

// Whoever waits for a MultiLock is seen however many MultiLocks wait between, and whatever
// its name says.
func TestMultiLockYieldsToOwnersBehindManyMultiLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		nests, c := kit.Connect(t, srv), kit.Connect(t, srv)
		lock := func(path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
		b, err := locks.NewInterProcessMutex(nests, "/b").Acquire(t.Context())
		require.NoError(t, err)
		all := []*kit.Acquisition{kit.Acquire(t, locks.NewInterProcessMultiLock(lock("/a"), lock("/b")))}
		require.NoError(t, srv.WaitChildren(t.Context(), "/b", 2))
		for i := range 20 {
			all = append(all, kit.Acquire(t, locks.NewInterProcessMultiLock(lock("/a"), lock("/c"))))
			require.NoError(t, srv.WaitChildren(t.Context(), "/a", i+2))
		}
		got := make(chan error, 1)
		go func() {
			a, err := locks.NewInterProcessMutex(nests, "/a").Acquire(t.Context()) // the other context was forgotten
			if err == nil {
				err = a.Release()
			}
			got <- err
		}()
		for _, a := range all[1:] {
			require.NoError(t, a.Soon().Release())
		}
		require.NoError(t, <-got)
		require.NoError(t, b.Release())
		require.NoError(t, all[0].Soon().Release())
	})
}

// A MultiLock that is taken under another hold does not say that it yields: it does not
// yield that hold, and a MultiLock that is older would wait for it to do so.
func TestMultiLockUnderAHoldIsYieldedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		old, c := kit.Connect(t, srv), kit.Connect(t, srv) // the tags of old's owners are older
		for range 1000 {
			_, err := c.Set(t.Context(), "/", nil, -1)
			require.NoError(t, err)
		}
		lock := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
		outer, err := lock(c, "/a").Acquire(t.Context())
		require.NoError(t, err)
		multi := kit.Acquire(t, locks.NewInterProcessMultiLock(lock(old, "/a"), lock(old, "/b")))
		require.NoError(t, srv.WaitChildren(t.Context(), "/b", 1))
		inner := kit.AcquireWith(outer.Context(), t, locks.NewInterProcessMultiLock(lock(c, "/b"), lock(c, "/c")))
		require.NoError(t, inner.Soon().Release())
		require.NoError(t, outer.Release())
		require.NoError(t, multi.Soon().Release())
	})
}

// A MultiLock reads in the name of a node why its owner waits. It does not make room for one
// that has no other lock, and does at once for one that has a later lock.
func TestMultiLockReadsWhyOthersWait(t *testing.T) {
	for name, tc := range map[string]struct {
		has  string
		room bool
	}{
		"nothing":          {"", false},
		"an earlier lock":  {"/0", false},
		"a later lock":     {"/z", true},
		"a lock between":   {"/bb", true},
		"what we wait for": {"/c", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
				stranger, other, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				lock := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
				ctx := t.Context()
				var outer *locks.Hold
				if tc.has != "" {
					outer = kit.Hold(t, lock(other, tc.has))
					ctx = outer.Context()
				}
				var held *locks.Hold
				if tc.has != "/c" {
					held = kit.Hold(t, lock(stranger, "/c"))
				}
				multi := kit.Acquire(t, locks.NewInterProcessMultiLock(lock(c, "/b"), lock(c, "/c")))
				require.NoError(t, srv.WaitChildren(t.Context(), "/c", 2))
				time.Sleep(100 * time.Millisecond) // less than it waits beside owners that have nothing else
				waits := kit.AcquireWith(ctx, t, lock(other, "/b"))
				time.Sleep(10 * time.Millisecond)
				assert.Equal(t, tc.room, !waits.Pending())
				if tc.room {
					time.Sleep(100 * time.Millisecond)
					queue, _, err := c.Children(t.Context(), "/b")
					require.NoError(t, err)
					assert.Len(t, queue, 1, "it waits for the later lock alone, as that owner takes it first")
				}
				if held != nil {
					require.NoError(t, held.Release())
				}
				if !tc.room {
					require.NoError(t, multi.Soon().Release())
				}
				require.NoError(t, waits.Soon().Release())
				if outer != nil {
					require.NoError(t, outer.Release())
				}
				if tc.room {
					require.NoError(t, multi.Soon().Release())
				}
			})
		})
	}
}

// A MultiLock that waits for its like beside a plain user begins anew, however often. One that went on in
// an order instead made all others do so that it met.
func TestMultiLockThatWaitsForItsLikeBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		stranger, plain, other, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		lock := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
		held := []*locks.Hold{kit.Hold(t, lock(stranger, "/d")), kit.Hold(t, lock(stranger, "/f"))}
		like := kit.Acquire(t, locks.NewInterProcessMultiLock(lock(other, "/c"), lock(other, "/d")))
		require.NoError(t, srv.WaitChildren(t.Context(), "/d", 2))
		multi := kit.Acquire(t, locks.NewInterProcessMultiLock(lock(c, "/b"), lock(c, "/c")))
		require.NoError(t, srv.WaitChildren(t.Context(), "/c", 2))
		for range 3 {
			waits := kit.Acquire(t, lock(plain, "/b"))
			time.Sleep(time.Second)
			require.NoError(t, waits.Soon().Release(), "it made room")
			time.Sleep(10 * time.Millisecond)
			for _, path := range []string{"/b", "/c"} {
				for _, node := range kit.Children(t, c, path) {
					assert.Equal(t, nodename.Joint, nodename.WayOf(node), path)
				}
			}
		}
		later := kit.Acquire(t, locks.NewInterProcessMultiLock(lock(c, "/e"), lock(c, "/f")))
		require.NoError(t, srv.WaitChildren(t.Context(), "/f", 2))
		waits := kit.Acquire(t, lock(plain, "/e"))
		time.Sleep(100 * time.Millisecond)
		assert.True(t, waits.Pending(), "another of its client does not make room at once")
		for _, h := range held {
			require.NoError(t, h.Release())
		}
		for _, a := range []*kit.Acquisition{like, multi, later, waits} {
			require.NoError(t, a.Soon().Release())
		}
	})
}

// A MultiLock that reads keeps its place for readers, whatever else they have: none waits for
// it. It makes room for a reader behind a writer.
func TestMultiLockKeepsItsPlaceAmongReaders(t *testing.T) {
	for name, tc := range map[string]bool{"a reader": false, "a writer, and a reader behind it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
				other, writer, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
				sides := func(c *framework.Client) *locks.InterProcessReadWriteLock {
					return locks.NewInterProcessReadWriteLock(c, "/b")
				}
				held := kit.Hold(t, locks.NewInterProcessMutex(other, "/c"))
				multi := kit.Acquire(t, locks.NewInterProcessMultiLock(sides(c).ReadLock(), locks.NewInterProcessMutex(c, "/c")))
				require.NoError(t, srv.WaitChildren(t.Context(), "/c", 2))
				var writes *kit.Acquisition
				if tc {
					writes = kit.Acquire(t, sides(writer).WriteLock())
					require.NoError(t, srv.WaitChildren(t.Context(), "/b", 2))
				}
				time.Sleep(10 * time.Millisecond)
				before := srv.Requests()["multi"]
				reads := kit.AcquireWith(held.Context(), t, sides(other).ReadLock())
				time.Sleep(time.Second)
				assert.Equal(t, tc, srv.Requests()["multi"] > before, "it made room")
				if writes != nil {
					require.NoError(t, writes.Soon().Release())
				}
				require.NoError(t, reads.Soon().Release())
				require.NoError(t, held.Release())
				require.NoError(t, multi.Soon().Release())
			})
		})
	}
}

// A MultiLock among its like hears of an owner that takes another lock under its hold,
// however many queues it is first in.
func TestMultiLockOfManyMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		other, c := kit.Connect(t, srv), kit.Connect(t, srv)
		lock := func(c *framework.Client, i int) locks.Lock {
			return locks.NewInterProcessMutex(c, fmt.Sprintf("/m%02d", i))
		}
		outer := kit.Hold(t, locks.NewInterProcessMultiLock(lock(other, 50), lock(other, 51)))
		var set []locks.Lock
		for i := range 51 {
			set = append(set, lock(c, i))
		}
		multi := kit.Acquire(t, locks.NewInterProcessMultiLock(set...))
		require.NoError(t, srv.WaitChildren(t.Context(), "/m50", 2))
		inner := kit.AcquireWith(outer.Context(), t, lock(other, 49))
		time.Sleep(50 * time.Millisecond)
		assert.False(t, inner.Pending())
		require.NoError(t, inner.Soon().Release())
		require.NoError(t, outer.Release())
		require.NoError(t, multi.Soon().Release())
	})
}

// A MultiLock among its like looks at newcomers twice, with one request for all queues. If it still
// waits then, it is told of the next ones, and asks nothing more.
func TestMultiLockAmongItsLikeLooksAtAllNewcomersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		other, c := kit.Connect(t, srv), kit.Connect(t, srv)
		set := func(c *framework.Client, from, to int) locks.Lock {
			var all []locks.Lock
			for i := from; i < to; i++ {
				all = append(all, locks.NewInterProcessMutex(c, fmt.Sprintf("/m%02d", i)))
			}
			return locks.NewInterProcessMultiLock(all...)
		}
		require.NoError(t, kit.Hold(t, set(c, 0, 10)).Release()) // the parents are there
		held := kit.Hold(t, set(other, 9, 11))
		waits := kit.Acquire(t, set(c, 0, 10))
		time.Sleep(10 * time.Millisecond) // it has queued
		began := srv.Requests()
		asked := func(op string) int { return srv.Requests()[op] - began[op] }
		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, []int{2, 0}, []int{asked("multiRead"), asked("getChildren2")})
		for range 2 {
			time.Sleep(10 * time.Second)
			assert.Equal(t, []int{2, 9}, []int{asked("multiRead"), asked("getChildren2")})
		}
		require.NoError(t, held.Release())
		require.NoError(t, waits.Soon().Release())
	})
}

// All that a MultiLock waited for has gone, and others are still ahead of it, at the moment when it
// would look at newcomers. It hears of these others, too.
func TestMultiLockGoesOnToHearWhereItsLookIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		other, c := kit.Connect(t, srv), kit.Connect(t, srv)
		for late := 10 * time.Millisecond; late < 36*time.Millisecond; late += d / 2 {
			lock := func(c *framework.Client, i int) *locks.InterProcessReadWriteLock {
				return locks.NewInterProcessReadWriteLock(c, fmt.Sprintf("/%v/%d", late, i))
			}
			var readers [4]*locks.Hold
			for i := range readers {
				readers[i] = kit.Hold(t, locks.NewInterProcessMultiLock(lock(other, i%2).ReadLock(), lock(other, 2+i).ReadLock()))
			}
			multi := kit.Acquire(t, locks.NewInterProcessMultiLock(lock(c, 0).WriteLock(), lock(c, 1).WriteLock()))
			time.Sleep(time.Second)
			require.NoError(t, readers[2].Release())
			time.Sleep(late)
			require.NoError(t, readers[3].Release())
			time.Sleep(time.Second)
			require.True(t, multi.Pending())
			require.NoError(t, readers[0].Release())
			require.NoError(t, readers[1].Release())
			require.NoError(t, multi.Soon().Release())
		}
	})
}

// Newcomers that come over and over, and give up, do not put off the look at who waits.
func TestNewcomersDoNotPutOffTheLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(kit.Near))
		c, first, second, passing := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		b := kit.Hold(t, locks.NewInterProcessMutex(first, "/b"))
		multi := kit.Acquire(t, locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/a"), locks.NewInterProcessMutex(c, "/b")))
		require.NoError(t, srv.WaitChildren(t.Context(), "/b", 2))
		ctx, cancel := context.WithCancel(t.Context())
		var come sync.WaitGroup
		come.Go(func() {
			for ctx.Err() == nil {
				_, _ = locks.NewInterProcessMutex(passing, "/a").TryAcquire(ctx, 10*time.Millisecond)
			}
		})
		began := time.Now()
		a := kit.Acquire(t, locks.NewInterProcessMutex(second, "/a")).Soon() // the same owner, who does not say so
		assert.Less(t, time.Since(began), time.Second)
		cancel()
		come.Wait()
		require.NoError(t, a.Release())
		require.NoError(t, b.Release())
		require.NoError(t, multi.Soon().Release())
	})
}

package locks_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestHoldEndsBeforeTheServerCanGiveTheLockAway(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, time.Second, 9 * time.Second, 10 * time.Second, 29 * time.Second, 47 * time.Second} {
		for name, change := range map[string]func(*framework.Config){"by server": kit.ByServer, "by quorum": func(*framework.Config) {}} {
			t.Run(fmt.Sprintf("%s after %v", name, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
					c, other := kit.Connect(t, srv, change), kit.Connect(t, srv)
					h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
					require.NoError(t, err)
					granted := make(chan time.Time, 1)
					go func() {
						_, err := locks.NewInterProcessMutex(other, "/l").Acquire(t.Context())
						assert.NoError(t, err)
						granted <- time.Now()
					}()
					time.Sleep(after)
					require.NoError(t, h.Err())
					// Its messages get lost from now on, in both directions.
					srv.On(zktest.Match{Session: c.SessionID()}, zktest.Delay(time.Hour))
					<-h.Context().Done()
					ended := time.Now()
					require.ErrorIs(t, context.Cause(h.Context()), framework.ErrNotConnected)
					assert.Equal(t, locks.Lost, h.State())
					passed := <-granted
					assert.True(t, ended.Before(passed), "ended %v before it passed on", passed.Sub(ended))
					require.ErrorIs(t, h.Release(), locks.ErrLockLost)
				})
			})
		}
	}
}

func TestHoldIsVerifiedAfterAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		c, operator := kit.Connect(t, srv), kit.Connect(t, srv)
		kept, err := locks.NewInterProcessMutex(c, "/kept").Acquire(t.Context())
		require.NoError(t, err)
		gone, err := locks.NewInterProcessMutex(c, "/gone").Acquire(t.Context())
		require.NoError(t, err)
		var seen []locks.HoldState
		kept.Listen(func(s locks.HoldState) { seen = append(seen, s) })
		var seenGone []locks.HoldState
		gone.Listen(func(s locks.HoldState) { seenGone = append(seenGone, s) })
		time.Sleep(time.Millisecond) // before watches stand on the nodes
		srv.Refuse()
		require.NoError(t, srv.Disconnect(c.SessionID()))
		time.Sleep(50 * time.Millisecond)
		assert.Equal(t, locks.Uncertain, kept.State())
		require.NoError(t, kept.Err())
		require.NoError(t, kept.Context().Err(), "uncertain is not lost")
		require.NoError(t, operator.Delete(t.Context(), gone.Path(), 0))
		srv.Accept()
		<-gone.Context().Done()
		require.ErrorIs(t, gone.Err(), locks.ErrNodeDeleted)
		time.Sleep(time.Second)
		assert.Equal(t, locks.Held, kept.State())
		synctest.Wait()
		assert.Equal(t, []locks.HoldState{locks.Held, locks.Uncertain, locks.Held}, seen)
		assert.Equal(t, []locks.HoldState{locks.Held, locks.Uncertain, locks.Lost}, seenGone)
		require.NoError(t, kept.Release())
	})
}

func TestWaiterRenewsBeforeItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
		holder, waiter := kit.Connect(t, srv, kit.ByServer), kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(holder, "/l").Acquire(t.Context())
		require.NoError(t, err)
		got := make(chan *locks.Hold, 1)
		go func() {
			h, err := locks.NewInterProcessMutex(waiter, "/l").Acquire(t.Context())
			assert.NoError(t, err)
			got <- h
		}()
		time.Sleep(10 * time.Minute) // nothing was written for it all the while
		assert.Zero(t, srv.Requests()["multi"])
		require.NoError(t, h.Release())
		h = <-got
		assert.Equal(t, 1, srv.Requests()["multi"], "a write renewed the session lease before the hold was returned")
		time.Sleep(10 * time.Minute)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release())
	})
}

func TestSessionIsClosedAfterALossThatTheServerDoesNotKnowOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, srv.Stop()) // sessions do not age while it is down
		<-h.Context().Done()
		require.NoError(t, srv.Restart())
		assert.NotEmpty(t, srv.Ephemerals(0))
		time.Sleep(3 * time.Second)
		assert.Empty(t, srv.Ephemerals(0), "the lost session was closed where it was found again")
	})
}

// A crowd of goroutines writes as fast as it can through the client that holds a lock,
// on servers that take a while for each write. The hold stays, and the servers are
// kept as busy as they would be without a bound.
func TestOwnLoadLosesNoHold(t *testing.T) {
	t.Parallel()
	const timeout, span = 2 * time.Second, 6 * time.Second
	crowds := []int{2048}
	if *everySweep {
		crowds = []int{512, 2048, 4000}
	}
	for _, crowd := range crowds {
		for _, takes := range []time.Duration{300 * time.Microsecond, time.Millisecond} {
			for _, trip := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
				if !*everySweep && (takes < time.Millisecond) == (trip == time.Millisecond) { // the most writes, and the least
					continue
				}
				t.Run(fmt.Sprintf("%d goroutines, writes of %v, round trips of %v", crowd, takes, trip), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(timeout/10), zktest.Latency(trip/2))
						c := kit.Connect(t, srv, kit.Within(timeout, 0))
						h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
						require.NoError(t, err)
						_, err = c.Create(t.Context(), "/x", nil, framework.Persistent)
						require.NoError(t, err)
						srv.On(zktest.Match{Op: "setData"}, zktest.Delay(takes))
						ctx, stop := context.WithTimeout(t.Context(), span)
						defer stop()
						var done atomic.Int64
						var wg sync.WaitGroup
						for range crowd {
							wg.Go(func() {
								for ctx.Err() == nil {
									if _, err := c.Set(ctx, "/x", nil, framework.AnyVersion); err == nil {
										done.Add(1)
									}
								}
							})
						}
						<-ctx.Done()
						require.NoError(t, h.Err())
						possible := min(float64(span/takes), float64(crowd)*float64(span/(trip+takes)))
						t.Logf("%d writes, %.0f %% of what is possible", done.Load(), float64(done.Load())*100/possible)
						assert.Greater(t, float64(done.Load()), 0.9*possible)
						wg.Wait()
						time.Sleep(time.Second)
						require.NoError(t, h.Release())
					})
				})
			}
		}
	}
}

// Very many locks are given back at one moment. The deletions are bounded as other requests
// are, so a hold beside them stays.
func TestManyReleasesLoseNoHold(t *testing.T) {
	t.Parallel()
	const timeout, n, takes = 2 * time.Second, 500, 6 * time.Millisecond
	for name, lock := range map[string]func(c *framework.Client, i int) locks.Lock{
		"locks": func(c *framework.Client, i int) locks.Lock {
			return locks.NewInterProcessMutex(c, fmt.Sprint("/h/", i))
		},
		"MultiLocks": func(c *framework.Client, i int) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, fmt.Sprint("/a/", i)), locks.NewInterProcessMutex(c, fmt.Sprint("/b/", i)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(timeout/10), zktest.Latency(time.Millisecond/2))
				c := kit.Connect(t, srv, kit.Within(timeout, 0), func(cfg *framework.Config) { cfg.NoBatches = true })
				srv.On(zktest.Match{Session: c.SessionID()}, zktest.Delay(takes))
				beside, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				holds := make([]*locks.Hold, n)
				var wg sync.WaitGroup
				for i := range holds {
					wg.Go(func() {
						h, err := lock(c, i).Acquire(t.Context())
						assert.NoError(t, err)
						holds[i] = h
					})
				}
				wg.Wait()
				for _, h := range holds {
					wg.Go(func() { _ = h.Release() }) // may go on in the background
				}
				wg.Wait()
				time.Sleep(10 * time.Second)
				require.NoError(t, beside.Err())
				assert.Len(t, srv.Ephemerals(0), 1, "all others are gone")
				require.NoError(t, beside.Release())
			})
		})
	}
}

// However many holds a client has, all contexts have ended when another client gets
// the first of the locks.
func TestManyHoldsAreLost(t *testing.T) {
	t.Parallel()
	const many, awaited = 1_000, 50
	for name, give := range map[string]func(srv *zktest.Server, c *framework.Client){
		// The server is there all the time, so the session is closed at once.
		"no renewal": func(srv *zktest.Server, c *framework.Client) {
			srv.On(zktest.Match{Op: "multi", Session: c.SessionID()}, zktest.Fail(-127))
		},
		"silence": func(srv *zktest.Server, c *framework.Client) {
			srv.On(zktest.Match{Session: c.SessionID()}, zktest.Delay(time.Hour))
		},
		"close": func(_ *zktest.Server, c *framework.Client) { assert.NoError(t, c.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(500*time.Millisecond))
				c, other := kit.Connect(t, srv, kit.Within(3*time.Second, 0)), kit.Connect(t, srv)
				holds, contexts := make([]*locks.Hold, many), make([]context.Context, many)
				for i := range holds {
					holds[i] = kit.Hold(t, locks.NewInterProcessMutex(c, fmt.Sprint("/many/", i)))
					contexts[i] = holds[i].Context()
				}
				var waiting sync.WaitGroup
				for i := 0; i < many; i += many / awaited {
					waiting.Go(func() {
						next, err := locks.NewInterProcessMutex(other, fmt.Sprint("/many/", i)).Acquire(t.Context())
						for _, ctx := range contexts {
							assert.Error(t, ctx.Err())
						}
						if assert.NoError(t, err) {
							assert.NoError(t, next.Release())
						}
					})
				}
				synctest.Wait()
				give(srv, c)
				waiting.Wait()
				for i, h := range holds {
					assert.ErrorIs(t, h.Release(), locks.ErrLockLost, "hold %d", i)
				}
			})
		})
	}
}

// laptop is a clock whose machine sleeps when it is told to: then no timer of
// the process runs, while the servers' go on.
type laptop struct{ slept atomic.Int64 }

func (l *laptop) Now() time.Time { return time.Now().Add(time.Duration(l.slept.Load())) }

func (l *laptop) Since(t time.Time) time.Duration { return l.Now().Sub(t) }

func (l *laptop) sleep(d time.Duration) { l.slept.Add(int64(d)) }

// config is a configuration of a client on it.
func (l *laptop) config(cfg *framework.Config) {
	*cfg = cfg.WithSeams(session.Key{}, session.Seams{Clock: l})
}

func TestLeaseEndsWhileTheMachineSleeps(t *testing.T) {
	for name, change := range map[string]func(*framework.Config){"by server": kit.ByServer, "by quorum": func(*framework.Config) {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				machine := new(laptop)
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
				c := kit.Connect(t, srv, change, machine.config)
				asked, err := locks.NewInterProcessMutex(c, "/asked").Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Minute)

				machine.sleep(5 * time.Second)
				assert.Equal(t, locks.Held, asked.State(), "a nap")
				time.Sleep(time.Minute)
				require.NoError(t, asked.Err())
				require.NoError(t, asked.Context().Err())

				machine.sleep(30 * time.Second)
				require.ErrorIs(t, asked.Err(), locks.ErrLockLost, "who asks is told at once")
				waited, err := locks.NewInterProcessMutex(c, "/waited").Acquire(t.Context())
				require.NoError(t, err, "in a new session")
				time.Sleep(time.Minute)
				require.NoError(t, waited.Err())

				machine.sleep(time.Hour)
				woke := time.Now()
				<-waited.Context().Done()
				assert.LessOrEqual(t, time.Since(woke), time.Second, "who waits, soon")
				require.ErrorIs(t, context.Cause(waited.Context()), locks.ErrLockLost)
			})
		})
	}
}

// No timer has told of the deadline yet when the machine wakes up.
func TestNobodyEntersAgainAfterSleep(t *testing.T) {
	for name, lock := range map[string]func(*framework.Client) locks.Lock{
		"mutex": kit.MutexAt("/l"),
		"read side": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessReadWriteLock(c, "/l").ReadLock()
		},
		"MultiLock": kit.MultiAt("/l"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				machine := new(laptop)
				c := kit.Connect(t, zktest.Start(t, zktest.InMemory()), machine.config)
				l := lock(c)
				h, err := l.Acquire(t.Context())
				require.NoError(t, err)
				again, err := l.Acquire(h.Context())
				require.NoError(t, err)

				machine.sleep(time.Minute)
				// Without the context's end, which comes before or after this call looks.
				_, err = l.Acquire(context.WithoutCancel(again.Context()))
				require.ErrorIs(t, err, locks.ErrLockLost)
				require.ErrorIs(t, again.Release(), locks.ErrLockLost)
				require.ErrorIs(t, h.Release(), locks.ErrLockLost)
			})
		})
	}
}

// A session that the client gives up is closed on the servers as soon as they can be
// reached. By then, and before the connection is closed, the contexts of all holds
// have ended, however many there are.
func TestContextsEndBeforeASessionIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, giveUp := range map[string]func(srv *zktest.Server, c *framework.Client){
		"no renewal": func(srv *zktest.Server, c *framework.Client) {
			srv.On(zktest.Match{Op: "multi", Session: c.SessionID()}, zktest.Fail(-127))
		},
		"silence": func(srv *zktest.Server, _ *framework.Client) {
			srv.Freeze()
			time.AfterFunc(3*time.Second, srv.Thaw)
		},
		"LostAfter": func(srv *zktest.Server, c *framework.Client) {
			srv.Refuse()
			_ = srv.Disconnect(c.SessionID())
			time.AfterFunc(time.Second, srv.Accept) // at the very time
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(2*time.Millisecond))
				var all []context.Context
				var looking atomic.Bool
				look := func(what string) {
					if !looking.Load() {
						return
					}
					going := 0
					for _, ctx := range all {
						if ctx.Err() == nil {
							going++
						}
					}
					assert.Zero(t, going, "contexts that go on: %s", what)
				}
				c := kit.Connect(t, srv, func(cfg *framework.Config) {
					cfg.SessionTimeout = 4 * time.Second
					if name == "LostAfter" {
						cfg.LostAfter = time.Second
					}
					cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
						nc, err := srv.DialContext(ctx, network, addr)
						if err != nil {
							return nil, err
						}
						return &closing{nc, func() { look("connection closed") }}, nil
					}
				})
				var holds []*locks.Hold
				for i := range 100 {
					h, err := locks.NewInterProcessMutex(c, fmt.Sprint("/l", i)).Acquire(t.Context())
					require.NoError(t, err)
					holds, all = append(holds, h), append(all, shown(t, h)...)
				}
				var looked atomic.Int32
				srv.On(zktest.Match{Op: "closeSession", Session: c.SessionID()}, zktest.Call(func(zktest.Request) {
					looked.Add(1)
					looking.Store(true)
					look("session closed")
				}))
				looking.Store(name != "LostAfter") // which begins with the end of a connection
				giveUp(srv, c)
				time.Sleep(10 * time.Second)
				assert.Equal(t, int32(1), looked.Load())
				for _, h := range holds {
					assert.ErrorIs(t, h.Release(), locks.ErrLockLost)
				}
			})
		})
	}
}

// A session timeout that leaves no time for anything is told of.
func TestSessionTimeoutThatIsTooShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged, logs := kit.Logged(zapcore.WarnLevel)
		srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(100*time.Millisecond), zktest.SessionTimeouts(200*time.Millisecond, 900*time.Millisecond))
		c := kit.Connect(t, srv, kit.Within(2*time.Second, 0), logged)
		require.Equal(t, 900*time.Millisecond, c.SessionTimeout())
		_, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrTimeoutTooShort)
		assert.ErrorContains(t, err, "grants 900ms")
		_, err = locks.NewInterProcessMutex(c, "/l").TryAcquire(t.Context(), time.Minute)
		require.ErrorIs(t, err, framework.ErrTimeoutTooShort)
		assert.Len(t, logs.FilterMessageSnippet("too short for locks").All(), 1)
		synctest.Wait()
		time.Sleep(time.Second)
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// Round trips of half of the session timeout can prove nothing. A lock that could
// not be held is not kept from others.
func TestSessionThatCannotBeProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 4 * time.Second
		logged, logs := kit.Logged(zapcore.WarnLevel)
		srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(timeout/10), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv, kit.Within(timeout, 0), logged)
		other := kit.Connect(t, srv)
		h, err := locks.NewInterProcessMutex(c, "/held").Acquire(t.Context())
		require.NoError(t, err)
		held := h.Context()
		time.Sleep(3 * timeout)
		require.NoError(t, held.Err())
		srv.On(zktest.Match{Session: c.SessionID(), Op: "sync"}, zktest.Fail(-127)) // throttled: nothing vouches any more
		id := c.SessionID()
		on, _ := lasts(h, 10*timeout)
		require.False(t, on)
		assert.Equal(t, framework.ErrNotConnected, errorsOf(context.Cause(held)))
		short := logs.FilterMessageSnippet("about to end").All()
		if assert.Len(t, short, 1, "it was told of before") {
			assert.Less(t, time.Since(short[0].Time), timeout)
		}
		_ = h.Release()

		time.Sleep(3 * timeout) // what the connect request has proved is over
		assert.NotEqual(t, id, c.SessionID())
		srv.On(zktest.Match{Session: c.SessionID(), Op: "sync"}, zktest.Fail(-127))
		time.Sleep(2 * timeout)
		began := time.Now()
		_, err = locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.ErrorIs(t, err, framework.ErrTimeoutTooShort)
		assert.LessOrEqual(t, time.Since(began), 3*timeout)
		n, err := locks.NewInterProcessMutex(other, "/l").Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, n.Release())
	})
}

// closing is a connection that tells when it is closed.
type closing struct {
	net.Conn
	tell func()
}

func (c *closing) Close() error {
	c.tell()
	return c.Conn.Close()
}

// errorsOf is the last reason in a chain of single ones, or of the last of several.
func errorsOf(err error) error {
	for {
		switch e := err.(type) { //nolint:errorlint // it is the chain that is walked
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			all := e.Unwrap()
			err = all[len(all)-1]
		default:
			return err
		}
	}
}

// A client that has holds is back before the session lease ends, however long its pauses
// between rounds of servers are otherwise.
func TestHoldOutlivesALongOutage(t *testing.T) {
	for range 20 { // pauses are random
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
			c := kit.Connect(t, srv)
			h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
			require.NoError(t, err)
			srv.Refuse()
			require.NoError(t, srv.Disconnect(c.SessionID()))
			time.Sleep(c.Stats().LeaseLeft - time.Second)
			srv.Accept()
			time.Sleep(time.Second)
			require.NoError(t, h.Err())
			require.NoError(t, h.Release())
		})
	}
}

package leader_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// reports gathers what a client tells its error listeners.
type reports struct {
	mu  sync.Mutex
	all []error
}

func reportsOf(c *framework.Client) *reports {
	r := &reports{}
	c.Errors().Listen(func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, err)
	})
	return r
}

func (r *reports) get() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.all...)
}

// What the function returns decides what comes next.
func TestWhatTheFunctionReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		told := reportsOf(c)
		latch := leader.NewLatch(c, "/e", leader.BackOff(retry.NTimes(2, time.Minute)))
		var began []time.Duration
		start := time.Now()
		err := latch.Run(t.Context(), func(_ context.Context, term *leader.Term) error {
			began = append(began, time.Since(start))
			assert.Same(t, term, latch.Term())
			switch len(began) {
			case 1, 2:
				return nil
			case 3, 4:
				return errWork
			case 5:
				return nil // what failed before counts no more
			}
			return errWork
		})
		require.ErrorIs(t, err, errWork)
		var failure *leader.FunctionError
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, "/e", failure.Path)
		assert.NotZero(t, failure.Number)
		var pauses []time.Duration
		for i := range began[1:] {
			pauses = append(pauses, began[i+1]-began[i])
		}
		short, m := 100*time.Millisecond, time.Minute
		assert.Equal(t, []time.Duration{short, short, m, m, short, m, m}, pauses)
		synctest.Wait()
		assert.Len(t, told.get(), 5, "each failure")
		assert.Empty(t, srv.Ephemerals(0))
		assert.Nil(t, latch.Term())
	})
}

func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		told := reportsOf(c)
		latch := leader.NewLatch(c, "/e")
		require.NoError(t, latch.Run(t.Context(), func(context.Context, *leader.Term) error { return leader.ErrLeave }))
		ctx, cancel := context.WithCancel(t.Context())
		err := latch.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		for term, err := range latch.Terms(t.Context()) {
			require.NoError(t, err)
			assert.Equal(t, locks.Held, term.State())
			break
		}
		synctest.Wait()
		assert.Empty(t, told.get())
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// A function that goes on is reported. Its node stays until it returns, or the session is
// over.
func TestAFunctionThatIgnoresItsContext(t *testing.T) {
	for name, expires := range map[string]bool{"goes on": false, "session expires": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				told := reportsOf(c)
				latch := leader.NewLatch(c, "/e", leader.Grace(time.Minute))
				ctx, cancel := context.WithCancel(t.Context())
				release, ran := make(chan struct{}), make(chan error, 1)
				go func() {
					ran <- latch.Run(ctx, func(context.Context, *leader.Term) error {
						<-release
						return nil
					})
				}()
				synctest.Wait()
				term := latch.Term()
				require.NotNil(t, term)
				next := stands(t.Context(), t, leader.NewLatch(kit.Connect(t, srv), "/e"))
				cancel()
				time.Sleep(time.Minute - time.Second)
				assert.Empty(t, told.get())
				assert.False(t, latch.Overrun())
				time.Sleep(2 * time.Second)
				require.Len(t, told.get(), 1)
				var overrun *leader.OverrunError
				require.ErrorAs(t, told.get()[0], &overrun)
				assert.Equal(t, leader.OverrunError{Path: "/e", Number: term.Number(), Limit: time.Minute, Cause: context.Canceled}, *overrun)
				assert.True(t, latch.Overrun())
				time.Sleep(time.Hour)
				assert.Empty(t, next, "nobody leads beside a function that goes on")
				assert.Empty(t, ran)
				if expires {
					require.NoError(t, srv.ExpireSession(c.SessionID()))
					require.NoError(t, (<-next).Release())
				}
				close(release)
				require.ErrorIs(t, <-ran, context.Canceled)
				assert.False(t, latch.Overrun())
				if !expires {
					require.NoError(t, (<-next).Release())
				}
				synctest.Wait()
				assert.Empty(t, srv.Ephemerals(0))
			})
		})
	}
}

// Run that ends with its context says what kept the function from leading.
func TestTheLastFailureIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		logged, logs := kit.Logged(zapcore.InfoLevel)
		c := kit.Connect(t, srv, logged)
		latch := leader.NewLatch(c, "/e")
		run := func(limit time.Duration, lead func(n int) error) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			n := 0
			return latch.Run(ctx, func(context.Context, *leader.Term) error { n++; return lead(n) })
		}
		var number int64
		err := run(time.Minute, func(int) error {
			number = latch.Term().Number()
			return locks.ErrDeadlock // as any error that the function comes by
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, locks.ErrDeadlock)
		assert.Contains(t, err.Error(), fmt.Sprintf("the last one: leader function at /e, term %d: would wait for itself", number))
		lines := logs.FilterMessage("leader function failed").All()
		assert.Greater(t, len(lines), 3)
		assert.Contains(t, lines[len(lines)-1].ContextMap()["error"], fmt.Sprintf("term %d:", number))

		err = run(time.Minute, func(n int) error {
			if n == 1 {
				return errors.New("no database")
			}
			return nil
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotContains(t, err.Error(), "no database", "that is long over")
	})
}

// A function that panics or ends its goroutine gives its term back.
func TestAFunctionThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		latch := leader.NewLatch(kit.Connect(t, srv), "/e", leader.BackOff(retry.None()))
		assert.PanicsWithValue(t, "oh", func() {
			_ = latch.Run(t.Context(), func(context.Context, *leader.Term) error { panic("oh") })
		})
		synctest.Wait()
		require.Empty(t, srv.Ephemerals(0))
		err := latch.Run(t.Context(), func(context.Context, *leader.Term) error { runtime.Goexit(); return nil })
		require.ErrorIs(t, err, leader.ErrExited)
		synctest.Wait()
		assert.Empty(t, srv.Ephemerals(0))
	})
}

// A candidate that gives way stands again after the pause, behind the others.
func TestGivingWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		ctx, cancel := context.WithCancel(t.Context())
		j := &termChecker{t: t}
		var order []string
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b"} {
			latch := leader.NewSelector(kit.Connect(t, srv), "/e", leader.ID(id))
			wg.Go(func() {
				assert.ErrorIs(t, latch.Run(ctx, func(ctx context.Context, term *leader.Term) error {
					j.begins(term)
					order = append(order, id)
					time.Sleep(time.Second)
					if len(order) == 1 {
						term.GiveWay(time.Minute)
						term.GiveWay(time.Second) // the longer one counts
					}
					<-ctx.Done()
					return ctx.Err()
				}), context.Canceled)
			})
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"a", "b"}, order)
		assert.Len(t, srv.Ephemerals(0), 1, "who gives way does not stand")
		time.Sleep(time.Minute)
		assert.Len(t, srv.Ephemerals(0), 2, "it stands again")
		cancel()
		wg.Wait()
	})
}

// A failing health check ends the term, and keeps the candidate from standing.
func TestHealthCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		var sick atomic.Bool
		sick.Store(true)
		var checking atomic.Int32
		latch := leader.NewLatch(kit.Connect(t, srv), "/e", leader.HealthCheck(time.Second, func(ctx context.Context) error {
			assert.EqualValues(t, 1, checking.Add(1))
			defer checking.Add(-1)
			until, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.LessOrEqual(t, time.Until(until), time.Second)
			if sick.Load() {
				return errWork
			}
			return nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		var causes []error
		ran := make(chan error, 1)
		go func() {
			ran <- latch.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
				<-ctx.Done()
				causes = append(causes, context.Cause(ctx))
				return ctx.Err()
			})
		}()
		time.Sleep(10 * time.Second)
		assert.Empty(t, srv.Ephemerals(0), "who is not healthy does not stand")
		assert.Zero(t, srv.Requests()["create2"], "it does not stand")
		sick.Store(false)
		time.Sleep(10 * time.Second)
		require.NotNil(t, latch.Term())
		sick.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Nil(t, latch.Term())
		assert.Empty(t, srv.Ephemerals(0))
		require.Len(t, causes, 1)
		for _, want := range []error{leader.ErrSteppedDown, leader.ErrUnhealthy, errWork} {
			require.ErrorIs(t, causes[0], want)
		}
		sick.Store(false)
		time.Sleep(2 * time.Second)
		require.NotNil(t, latch.Term())
		cancel()
		require.ErrorIs(t, <-ran, context.Canceled)
	})
}

// With EndOnSuspended, Run keeps the node until the function has returned, and then stands
// again.
func TestRunEndsOnSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		latch := leader.NewLatch(kit.Connect(t, srv), "/e", leader.EndOnSuspended())
		ctx, cancel := context.WithCancel(t.Context())
		var terms []*leader.Term
		ran := make(chan error, 1)
		go func() {
			ran <- latch.Run(ctx, func(ctx context.Context, term *leader.Term) error {
				terms = append(terms, term)
				<-ctx.Done()
				time.Sleep(5 * time.Second)
				return ctx.Err()
			})
		}()
		synctest.Wait()
		srv.DisconnectAll()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{terms[0].Path()}, srv.Ephemerals(0))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, terms, 2)
		assert.Equal(t, []string{terms[1].Path()}, srv.Ephemerals(0))
		cancel()
		require.ErrorIs(t, <-ran, context.Canceled)
	})
}

// A function that returns at once does not have its candidate stand as fast as servers
// answer, and nobody waits for that.
func TestAFunctionThatReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d/10))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		terms := make([]atomic.Int64, 3)
		run := func(c *framework.Client, n int) {
			latch := leader.NewLatch(c, "/e")
			wg.Go(func() {
				assert.ErrorIs(t, latch.Run(ctx, func(context.Context, *leader.Term) error {
					if terms[n].Add(1) > 300 {
						cancel()
					}
					return nil
				}), context.Canceled)
			})
		}
		run(kit.Connect(t, srv), 0)
		time.Sleep(10 * time.Second)
		assert.InDelta(t, 100, terms[0].Load(), 5, "ten in a second")
		run(kit.Connect(t, srv), 1)
		run(kit.Connect(t, srv), 2)
		time.Sleep(10 * time.Second)
		assert.InDelta(t, 200, terms[0].Load(), 10, "whoever else stands")
		assert.InDelta(t, 100, terms[1].Load(), 5)
		assert.InDelta(t, 100, terms[2].Load(), 5)
		cancel()
		wg.Wait()
		count, began := 0, time.Now()
		for term, err := range leader.NewLatch(kit.Connect(t, srv), "/e").Terms(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, term.Context().Err())
			if count++; count == 11 {
				break
			}
		}
		assert.InDelta(t, time.Second, time.Since(began), float64(50*time.Millisecond))
	})
}

// deleter is a tracer that deletes the nodes of the first candidates as soon as they lead,
// before their Await returns.
type deleter struct {
	monitor.Nothing
	by   *framework.Client
	left atomic.Int32
}

func (d *deleter) End(ctx context.Context, op monitor.Operation, r monitor.Result) {
	if op.Kind == monitor.Acquire && r.Lock.Node != "" && d.left.Add(-1) >= 0 {
		_ = d.by.Delete(context.WithoutCancel(ctx), r.Lock.Node, framework.AnyVersion)
		time.Sleep(time.Second) // the candidate watches its node, and knows
	}
}

// A term that is lost before anybody has seen it is nobody's: Await says so, and Terms and
// Run stand again.
func TestATermThatIsLostAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		d := &deleter{by: kit.Connect(t, srv)}
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Tracer = d })
		latch := leader.NewLatch(c, "/e")
		d.left.Store(1)
		_, err := latch.Await(t.Context())
		require.ErrorIs(t, err, locks.ErrLockLost)
		require.ErrorIs(t, err, locks.ErrNodeDeleted)
		assert.Nil(t, latch.Term())

		d.left.Store(2)
		for term, err := range latch.Terms(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, term.Context().Err(), "the term goes on")
			break
		}
		assert.Negative(t, d.left.Load(), "two were lost before")
		d.left.Store(1)
		runs := 0
		require.NoError(t, latch.Run(t.Context(), func(context.Context, *leader.Term) error {
			runs++
			return leader.ErrLeave
		}))
		assert.Equal(t, 1, runs, "no function is called in a term that is lost")
		names, _, err := c.Children(t.Context(), "/e")
		if !errors.Is(err, framework.ErrNoNode) {
			require.NoError(t, err)
		}
		assert.Empty(t, names)
	})
}

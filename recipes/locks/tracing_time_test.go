package locks_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// span is an operation as a recorder has heard of it.
type span struct {
	op     monitor.Operation
	parent *span
	ended  int
	result monitor.Result
	events []monitor.Event
}

type spanKey struct{}

// recorder is a tracer that keeps what it hears.
type recorder struct {
	mu    sync.Mutex
	spans []*span
	alone []monitor.Event // that belong to no operation
	block <-chan struct{} // events wait for it, nil for none
}

func (r *recorder) Begin(ctx context.Context, op monitor.Operation) context.Context {
	s := &span{op: op}
	s.parent, _ = ctx.Value(spanKey{}).(*span)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, s)
	return context.WithValue(ctx, spanKey{}, s)
}

func (r *recorder) End(ctx context.Context, _ monitor.Operation, result monitor.Result) {
	s, _ := ctx.Value(spanKey{}).(*span)
	r.mu.Lock()
	defer r.mu.Unlock()
	s.ended++
	s.result = result
}

func (r *recorder) Event(ctx context.Context, e monitor.Event) {
	if r.block != nil {
		<-r.block
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, of := ctx.Value(spanKey{}).(*span); of {
		s.events = append(s.events, e)
		return
	}
	r.alone = append(r.alone, e)
}

// of are the spans of a kind, once everything that is told aside was told.
func (r *recorder) of(kind monitor.OperationKind) (all []*span) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.op.Kind == kind {
			all = append(all, s)
		}
	}
	return all
}

// told are outcomes and events of spans, in order.
func told(spans []*span) (all []string) {
	for _, s := range spans {
		line := s.op.Kind.String()
		for _, e := range s.events {
			line += ", " + e.Kind.String()
		}
		line += ": " + string(s.result.Outcome)
		if s.ended != 1 {
			line += fmt.Sprintf(" (ended %d times)", s.ended)
		}
		all = append(all, line)
	}
	return all
}

func traced(t *testing.T, srv *zktest.Server, r monitor.Tracer) *framework.Client {
	return kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Tracer = r })
}

func TestTracerHearsOfEachLock(t *testing.T) {
	for _, tc := range []struct {
		lock func(*framework.Client) locks.Lock
		kind string
		path string
	}{
		{kit.MutexAt("/l"), monitor.Mutex, "/l"},
		{kit.ReadAt("/l"), monitor.ReadLock, "/l"},
		{kit.WriteAt("/l"), monitor.WriteLock, "/l"},
		{func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphore(c, "/l", 2) }, monitor.Semaphore, "/l"},
		{func(c *framework.Client) locks.Lock { return locks.NewInterProcessSemaphoreMutex(c, "/l") }, monitor.SemaphoreMutex, "/l"},
		{kit.MultiAt("/l"), monitor.MultiLock, "/l/a, /l/b"},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				r := new(recorder)
				c := traced(t, srv, r)
				outer := context.WithValue(t.Context(), spanKey{}, &span{op: monitor.Operation{Name: "mine"}})
				hold, err := tc.lock(c).Acquire(outer)
				require.NoError(t, err)
				time.Sleep(3 * time.Second)
				below, _ := hold.Context().Value(spanKey{}).(*span)
				require.NotNil(t, below, "what is done under the hold is part of it")
				require.NoError(t, hold.Release())

				acquired, held, released := r.of(monitor.Acquire), r.of(monitor.Hold), r.of(monitor.Release)
				assert.Equal(t, []string{"acquire: acquired", "hold: released", "release: released"}, append(append(told(acquired), told(held)...), told(released)...))
				assert.Same(t, held[0], below)
				assert.Equal(t, "mine", held[0].parent.op.Name, "a hold is no part of its acquisition")
				assert.Equal(t, "mine", acquired[0].parent.op.Name)
				assert.Same(t, held[0], released[0].parent)
				assert.Equal(t, tc.kind, acquired[0].op.Lock.Kind)
				assert.Equal(t, tc.path, acquired[0].op.Lock.Path)
				assert.Equal(t, 3*time.Second, held[0].result.Ended.Sub(held[0].op.Began).Round(time.Second))
				if tc.kind == monitor.MultiLock {
					assert.Equal(t, []string{"/l/a", "/l/b"}, held[0].op.Lock.Members)
				} else {
					assert.Equal(t, hold.Path(), held[0].op.Lock.Node)
					assert.NotZero(t, held[0].op.Lock.Token)
				}
				assert.Equal(t, "127.0.0.1", held[0].op.Lock.Participant)
			})
		})
	}
}

// The tracer hears who waits, gives up, enters again or takes over.
func TestTracerHearsOfOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		other, r := kit.Connect(t, srv), new(recorder)
		c := traced(t, srv, r)
		first, err := kit.MutexAt("/l")(other).Acquire(t.Context())
		require.NoError(t, err)

		_, err = kit.MutexAt("/l")(c).TryAcquire(t.Context(), 0)
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = kit.MutexAt("/l")(c).Acquire(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		front, behind := kit.Acquire(t, kit.MutexAt("/l")(c)), (*kit.Acquisition)(nil)
		time.Sleep(time.Second)
		behind = kit.Acquire(t, kit.MutexAt("/l")(c))
		time.Sleep(time.Second)

		waiters := c.Waiters()
		require.Len(t, waiters, 2)
		assert.Equal(t, monitor.Lock{Kind: monitor.Mutex, Path: "/l", Node: waiters[0].Lock.Node, Participant: "127.0.0.1"}, waiters[0].Lock)
		assert.NotEmpty(t, waiters[0].Lock.Node)
		assert.Equal(t, 1, waiters[0].Ahead)
		assert.Equal(t, first.Path(), waiters[0].Behind)
		assert.False(t, waiters[0].Local)
		assert.True(t, waiters[1].Local)
		assert.Equal(t, time.Second, waiters[1].Since.Sub(waiters[0].Since).Round(time.Second))
		assert.Empty(t, c.Holds())

		require.NoError(t, first.Release())
		hold := front.Soon()
		again, err := kit.MutexAt("/l")(c).Acquire(hold.Context())
		require.NoError(t, err)
		require.Len(t, c.Holds(), 1)
		mine := c.Holds()[0]
		assert.Equal(t, hold.Path(), mine.Lock.Node)
		assert.Equal(t, 2, mine.Holds)
		assert.Equal(t, c.SessionID(), mine.Session)
		require.NoError(t, again.Release())
		require.NoError(t, hold.Release())
		require.NoError(t, behind.Soon().Release())
		assert.Empty(t, c.Holds())
		assert.Empty(t, c.Waiters())

		assert.Equal(t, []string{
			"acquire: busy", "acquire, waiting: canceled", "acquire, waiting: acquired", "acquire: taken over", "acquire: reentered",
		}, told(r.of(monitor.Acquire)))
		assert.Equal(t, []string{"hold: handed over", "hold: released", "hold: released"}, told(r.of(monitor.Hold)))
		assert.Equal(t, []string{"release: kept", "release: handed over", "release: released"}, told(r.of(monitor.Release)))
		waited := r.of(monitor.Acquire)[2]
		assert.True(t, waited.result.Waited)
		assert.Equal(t, 1, waited.result.Ahead)
		assert.Equal(t, first.Path(), waited.events[0].Behind)
	})
}

// A hold that is lost ends once, whatever takes it away, and once more is released.
func TestTracerHearsOfLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		admin, r := kit.Connect(t, srv), new(recorder)
		c := traced(t, srv, r)
		var seen []listeners.State
		c.States().Listen(func(s listeners.State) { seen = append(seen, s) })
		for _, lock := range []locks.Lock{kit.MutexAt("/l")(c), kit.MultiAt("/m")(c)} {
			hold, err := lock.Acquire(t.Context())
			require.NoError(t, err)
			node := hold.Path()
			if node == "" {
				node = hold.Members()[1].Path()
			}
			time.Sleep(time.Second)
			require.NoError(t, admin.Delete(t.Context(), node, framework.AnyVersion))
			<-hold.Context().Done()
			require.ErrorIs(t, hold.Release(), locks.ErrLockLost)
		}
		hold, err := kit.MutexAt("/l")(c).Acquire(t.Context())
		require.NoError(t, err)
		srv.Disconnect(c.SessionID())
		time.Sleep(kit.SessionTimeout / 10)
		srv.ExpireSession(c.SessionID())
		<-hold.Context().Done()
		time.Sleep(kit.SessionTimeout) // the event of the node may be read before the connection ends
		require.NoError(t, c.BlockUntilConnected(t.Context()))
		synctest.Wait()
		assert.Equal(t, []string{"hold: lost", "hold: lost", "hold, uncertain, confirmed: lost"}, told(r.of(monitor.Hold)))
		for _, s := range r.of(monitor.Hold) {
			assert.ErrorIs(t, s.result.Err, locks.ErrLockLost)
		}
		assert.Equal(t, []string{"release: lost", "release: lost"}, told(r.of(monitor.Release)))
		require.ErrorIs(t, hold.Release(), locks.ErrLockLost)
		assert.Equal(t, []string{"hold: lost", "hold: lost", "hold, uncertain, confirmed: lost"}, told(r.of(monitor.Hold)))
		var states []listeners.State
		for _, e := range r.alone {
			if e.Kind == monitor.Connection {
				states = append(states, e.State)
			}
		}
		assert.Contains(t, seen, listeners.Lost)
		assert.Equal(t, seen, states)
	})
}

// rude is a tracer whose Begin returns what it must not.
type rude struct{ monitor.Nothing }

func (rude) Begin(ctx context.Context, op monitor.Operation) context.Context {
	if op.Kind == monitor.Hold {
		return context.Background() // without the holds that ctx comes from, and with another end
	}
	return nil
}

func TestTracerCannotBreakALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := traced(t, zktest.Start(t, zktest.InMemory()), rude{})
		ctx, cancel := context.WithCancel(t.Context())
		hold, err := kit.MutexAt("/l")(c).Acquire(ctx)
		require.NoError(t, err)
		again, err := kit.MutexAt("/l")(c).Acquire(hold.Context())
		require.NoError(t, err, "it is re-entered")
		require.NoError(t, again.Release())
		cancel()
		<-hold.Context().Done()
		require.NoError(t, hold.Release())
	})
}

// A tracer that does not return holds up neither the loss of a lock nor its contexts.
func TestSlowTracerHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		block := make(chan struct{})
		r := &recorder{block: block}
		c := traced(t, srv, r)
		var all []*locks.Hold
		for i := range 3 {
			hold, err := kit.MutexAt(fmt.Sprintf("/l%d", i))(c).Acquire(t.Context())
			require.NoError(t, err)
			all = append(all, hold)
		}
		srv.Disconnect(c.SessionID())
		srv.ExpireSession(c.SessionID())
		for _, hold := range all {
			<-hold.Context().Done()
			assert.ErrorIs(t, hold.Err(), locks.ErrLockLost)
		}
		close(block)
		assert.Equal(t, []string{"hold, uncertain: lost", "hold, uncertain: lost", "hold, uncertain: lost"}, told(r.of(monitor.Hold)))
	})
}

// The log has the words of the tracer, without data of nodes, and at info nothing of what
// goes well.
func TestLogTellsOfLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		admin := kit.Connect(t, srv)
		logged, logs := kit.Logged(zapcore.DebugLevel)
		c := kit.Connect(t, srv, logged)
		hold, err := locks.NewInterProcessMutex(c, "/l", locks.NodeData([]byte("me"))).Acquire(t.Context())
		require.NoError(t, err)
		node, token := hold.Path(), hold.FencingToken()
		require.NoError(t, hold.Release())
		assert.Empty(t, aboutLocks(logs, zapcore.InfoLevel))
		lines := logs.FilterField(zap.String("path", "/l")).All()
		require.Len(t, lines, 2)
		assert.Equal(t, "acquired", lines[0].Message)
		assert.Equal(t, "released", lines[1].Message)
		fields := lines[1].ContextMap()
		assert.Equal(t, map[string]any{"kind": "mutex", "path": "/l", "node": node, "token": token, "held": fields["held"]}, fields)

		hold, err = kit.MutexAt("/l")(c).Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, admin.Delete(t.Context(), hold.Path(), framework.AnyVersion))
		<-hold.Context().Done()
		synctest.Wait()
		lost := aboutLocks(logs, zapcore.WarnLevel)
		require.Len(t, lost, 1, "once")
		assert.Equal(t, time.Second, lost[0]["held"].(time.Duration).Round(time.Second))
		assert.Contains(t, lost[0]["error"], "deleted")
	})
}

// Why a node is gone may come to light only after the loss. Then another line says so.
func TestLossIsExplainedInTheLog(t *testing.T) {
	for name, tc := range map[string]struct {
		lose func(t *testing.T, srv *zktest.Server, admin, c *framework.Client, hold *locks.Hold)
		says string
	}{
		"deleted": {func(t *testing.T, _ *zktest.Server, admin, _ *framework.Client, hold *locks.Hold) {
			require.NoError(t, admin.Delete(t.Context(), hold.Path(), framework.AnyVersion))
		}, "node deleted"},
		"expired": {func(t *testing.T, srv *zktest.Server, _, c *framework.Client, _ *locks.Hold) {
			require.NoError(t, srv.ExpireSession(c.SessionID()))
		}, "session has been expired"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(5*time.Millisecond))
				logged, logs := kit.Logged(zapcore.InfoLevel)
				admin, c := kit.Connect(t, srv), kit.Connect(t, srv, logged)
				hold, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Second) // its node is watched by now
				tc.lose(t, srv, admin, c, hold)
				time.Sleep(10 * time.Second)
				lines := append(logs.FilterMessage("lost").All(), logs.FilterMessage("lost for a reason that is known by now").All()...)
				require.Len(t, lines, 2)
				assert.Contains(t, lines[1].ContextMap()["error"], tc.says)
				for _, line := range lines {
					assert.Equal(t, hold.Path(), line.ContextMap()["node"])
				}
			})
		})
	}
}

// A lock that was made from something wrong is refused, also with a tracer.
func TestTracerAndInvalidLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := traced(t, zktest.Start(t, zktest.InMemory()), new(recorder))
		bad := locks.NewInterProcessMutex(c, "no path")
		for _, lock := range []locks.Lock{
			bad, locks.NewInterProcessMultiLock(bad), locks.NewInterProcessMultiLock(bad, kit.MutexAt("/l")(c)), locks.NewInterProcessMultiLock(kit.MutexAt("/l")(c), bad),
			locks.NewInterProcessMultiLock(), new(locks.InterProcessMutex), new(locks.InterProcessMultiLock), (*locks.InterProcessMultiLock)(nil),
			locks.NewInterProcessSemaphore(c, "/l", 0), (*locks.InterProcessMutex)(nil), locks.NewInterProcessMutex(nil, "/l"),
		} {
			_, err := lock.Acquire(t.Context())
			require.ErrorIs(t, err, locks.ErrInvalidLock)
			_, err = lock.TryAcquire(t.Context(), time.Second)
			require.ErrorIs(t, err, locks.ErrInvalidLock)
		}
		_, err := kit.MutexAt("/l")(c).Acquire(nil) //nolint:staticcheck // on purpose
		require.ErrorIs(t, err, framework.ErrNilContext)
	})
}

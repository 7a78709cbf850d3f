package leader_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	zktest "github.com/paddock-zk/paddock/testing"
)

// odd is a context of a user's type. One of its methods blocks or panics once the test
// says so.
type odd struct {
	context.Context
	method string
	panics bool
	on     atomic.Bool
	gate   chan struct{}
	once   sync.Once
}

// normal lets all calls return, from now on.
func (o *odd) normal() {
	o.on.Store(false)
	o.once.Do(func() { close(o.gate) })
}

func (o *odd) called(method string) {
	switch {
	case !o.on.Load() || o.method != method:
	case o.panics:
		panic("method " + method)
	default:
		<-o.gate
	}
}

func (o *odd) Done() <-chan struct{}       { o.called("Done"); return o.Context.Done() }
func (o *odd) Err() error                  { o.called("Err"); return o.Context.Err() }
func (o *odd) Value(key any) any           { o.called("Value"); return o.Context.Value(key) }
func (o *odd) Deadline() (time.Time, bool) { o.called("Deadline"); return o.Context.Deadline() }

// eachOdd runs a test for each method, which blocks or panics.
func eachOdd(t *testing.T, test func(t *testing.T, srv *zktest.Server, c *framework.Client, ctx *odd)) {
	for _, method := range []string{"Done", "Err", "Value", "Deadline"} {
		for how, panics := range map[string]bool{"blocks": false, "panics": true} {
			t.Run(method+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					ctx := &odd{Context: t.Context(), method: method, panics: panics, gate: make(chan struct{})}
					defer ctx.normal()
					test(t, srv, kit.Connect(t, srv), ctx)
					synctest.Wait()
				})
			})
		}
	}
}

// aside calls fn, which may take until the context's methods return, and panic with what
// they do.
func aside(fn func()) (done <-chan struct{}) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { _ = recover() }()
		fn()
	}()
	return over
}

// The term ends and the next candidate leads, whatever a context given to Await does.
func TestAContextOfAnotherTypeAndTheEndOfATerm(t *testing.T) {
	for name, end := range map[string]func(srv *zktest.Server, term *leader.Term){
		"release":                func(_ *zktest.Server, term *leader.Term) { _ = term.Release() },
		"give way, then release": func(_ *zktest.Server, term *leader.Term) { term.GiveWay(0); _ = term.Release() },
		"suspended":              func(srv *zktest.Server, _ *leader.Term) { srv.DisconnectAll() },
	} {
		t.Run(name, func(t *testing.T) {
			eachOdd(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, ctx *odd) {
				term, err := leader.NewLatch(c, "/e", leader.EndOnSuspended()).Await(ctx)
				require.NoError(t, err)
				next := stands(t.Context(), t, leader.NewLatch(kit.Connect(t, srv), "/e"))
				time.Sleep(time.Second)
				led := term.Context()
				ctx.on.Store(true)
				ended := aside(func() { end(srv, term) })
				<-led.Done()
				if name == "suspended" {
					require.ErrorIs(t, context.Cause(led), leader.ErrSteppedDown)
					<-ended
					ended = aside(func() { _ = term.Release() })
				}
				second := soon(t, next)
				ctx.normal()
				<-ended
				require.NoError(t, second.Release())
			})
		})
	}
}

// A context given to Run delays only its own candidate.
func TestAContextOfAnotherTypeAndRun(t *testing.T) {
	eachOdd(t, func(t *testing.T, srv *zktest.Server, c *framework.Client, ctx *odd) {
		var sick atomic.Bool
		latch := leader.NewLatch(c, "/e", leader.HealthCheck(time.Second, func(context.Context) error {
			if sick.Load() {
				return errWork
			}
			return nil
		}))
		ran := aside(func() {
			_ = latch.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
				<-ctx.Done()
				return leader.ErrLeave
			})
		})
		synctest.Wait()
		next := stands(t.Context(), t, leader.NewLatch(kit.Connect(t, srv), "/e"))
		time.Sleep(time.Second)
		ctx.on.Store(true)
		sick.Store(true)
		second := soon(t, next)
		ctx.normal()
		<-ran
		require.NoError(t, second.Release())
	})
}

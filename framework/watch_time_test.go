package framework_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A watch was left on the server if its last subscriber went while a request
// that would have set it again was on its way, and that failed.
func TestWatchGivenUpWhileASetterFails(t *testing.T) {
	for name, fault := range map[string]zktest.Fault{"refused": zktest.Fail(-102), "lost": zktest.CutBefore()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(10*time.Millisecond))
				c := kit.Connect(t, srv)
				require.NoError(t, c.EnsurePath(t.Context(), "/a"))
				_, _, first, err := c.GetW(t.Context(), "/a")
				require.NoError(t, err)
				srv.On(zktest.Match{Op: "getData", Nth: 1}, fault)
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
				defer cancel()
				failed := make(chan error, 1)
				go func() {
					_, _, _, err := c.GetW(ctx, "/a")
					failed <- err
				}()
				time.Sleep(time.Millisecond)
				first.Stop()
				require.Error(t, <-failed)
				time.Sleep(time.Second)
				assert.Empty(t, srv.Watches())
			})
		})
	}
}

// A connection ends before all watches were set again on it. Another reply on it has shown a
// later state than that of the last event. The next connection still has to ask for what has
// happened since all watches stood.
func TestWatchesAreNotAllSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c, other := kit.Connect(t, srv), kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/z"))
		_, _, last, err := c.GetW(t.Context(), "/z")
		require.NoError(t, err)
		for i := range 800 { // more than one request can set
			_, _, _, err := c.ExistsW(t.Context(), fmt.Sprintf("/%0200d", i))
			require.NoError(t, err)
		}
		require.NoError(t, srv.Disconnect(c.SessionID()))
		_, err = other.Set(t.Context(), "/z", []byte("changed"), framework.AnyVersion)
		require.NoError(t, err)
		rule := srv.On(zktest.Match{Op: "setWatches", Nth: 2}, zktest.CutBefore())
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, rule.Fired())
		select {
		case ev := <-last.C:
			assert.NoError(t, ev.Err)
		default:
			assert.Fail(t, "the event is lost")
		}
	})
}

func TestWatchesStopConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		require.NoError(t, c.EnsurePath(t.Context(), "/a"))
		done := make(chan struct{})
		for i := range 50 {
			go func() {
				defer func() { done <- struct{}{} }()
				for j := range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*j%5)*time.Millisecond+1)
					var w *framework.Watch
					var err error
					switch i % 3 {
					case 0:
						_, _, w, err = c.GetW(ctx, "/a")
					case 1:
						_, _, w, err = c.ExistsW(ctx, "/a")
					default:
						_, _, w, err = c.ChildrenW(ctx, "/a")
					}
					cancel()
					if err == nil {
						time.Sleep(time.Duration(i%4) * time.Millisecond)
						w.Stop()
					}
				}
			}()
		}
		for range 50 {
			<-done
		}
		time.Sleep(time.Second)
		assert.Empty(t, srv.Watches())
	})
}

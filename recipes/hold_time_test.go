package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestWorkStopsWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		client, err := framework.Connect(t.Context(), framework.Config{
			ConnectString: srv.ConnectString(), DialContext: srv.DialContext, SessionTimeout: 30 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()

		mutex := recipes.NewInterProcessMutex(client, "/locks/nightly")
		start := time.Now()
		err = recipes.Do(t.Context(), mutex, func(ctx context.Context) error {
			srv.Freeze() // 30 seconds of silence, in no time
			<-ctx.Done()
			t.Log(time.Since(start), context.Cause(ctx))
			return context.Cause(ctx)
		})
		if !errors.Is(err, recipes.ErrLockLost) {
			t.Errorf("err = %v, want ErrLockLost", err)
		}
		srv.Thaw()
		t.Log(client.Close(), time.Since(start))
	})
}

func TestRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 5 * time.Millisecond
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(d))
		client, err := framework.Connect(t.Context(), framework.Config{
			ConnectString: srv.ConnectString(), DialContext: srv.DialContext, SessionTimeout: 30 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		client.EnsurePath(t.Context(), "/l")
		start := time.Now()
		h, err := recipes.NewInterProcessMutex(client, "/l").Acquire(t.Context())
		t.Log("acquire", time.Since(start), err)
		start = time.Now()
		t.Log(h.Release())
		t.Log("release", time.Since(start))
	})
}

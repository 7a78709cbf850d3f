package health_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/leader/health"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ask(t *testing.T, h http.Handler) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	return w.Code, w.Body.String()
}

func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		latch := leader.NewLatch(c, "/e", leader.ID("a"))
		live, leads := health.Live(latch), health.Leading(latch)
		code, body := ask(t, live)
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "a: does not lead\n", body)
		code, body = ask(t, leads)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, "a: does not lead\n", body)
		ctx, cancel := context.WithCancel(t.Context())
		release, ran := make(chan struct{}), make(chan error, 1)
		go func() {
			ran <- latch.Run(ctx, func(context.Context, *leader.Term) error { <-release; return nil })
		}()
		synctest.Wait()
		for _, h := range []http.Handler{live, leads} {
			code, body = ask(t, h)
			assert.Equal(t, http.StatusOK, code)
			assert.Contains(t, body, fmt.Sprintf("a: leads, term %d HELD /e/", latch.Term().Number()))
		}
		cancel()
		time.Sleep(time.Second)
		code, _ = ask(t, live)
		assert.Equal(t, http.StatusOK, code)
		code, _ = ask(t, leads)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		time.Sleep(time.Minute)
		code, body = ask(t, live)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Contains(t, body, "goes on after the end of its term")
		close(release)
		require.ErrorIs(t, <-ran, context.Canceled)
	})
}

// A process with many elections is alive as long as each of their functions obeys.
func TestLiveOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		a, b := leader.NewLatch(c, "/a", leader.ID("me")), leader.NewSelector(c, "/b", leader.ID("me"))
		live := health.Live(a, b)
		code, body := ask(t, live)
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "me at /a: does not lead\nme at /b: does not lead\n", body)
		ctx, cancel := context.WithCancel(t.Context())
		release, ran := make(chan struct{}), make(chan error, 1)
		go func() {
			ran <- b.Run(ctx, func(context.Context, *leader.Term) error { <-release; return nil })
		}()
		synctest.Wait()
		cancel()
		time.Sleep(time.Minute)
		code, body = ask(t, live)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, "me at /a: does not lead\nme at /b: the leader function goes on after the end of its term\n", body)
		close(release)
		require.ErrorIs(t, <-ran, context.Canceled)
		code, _ = ask(t, live)
		assert.Equal(t, http.StatusOK, code)
	})
}

// A nil candidate is found where the handler is made, not by a probe.
func TestCandidateIsNil(t *testing.T) {
	latch, none := leader.NewLatch(nil, "/a"), (*leader.Latch)(nil)
	for i, handler := range []func(){
		func() { health.Live(nil) },
		func() { health.Live(none) },
		func() { health.Live(latch, none) },
		func() { health.Leading(nil) },
		func() { health.Leading(none) },
	} {
		assert.PanicsWithValue(t, "health: candidate is nil", handler, i)
	}
}

package lockpage_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/lockpage"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestProbes(t *testing.T) {
	srv := zktest.Start(t)
	c := kit.Connect(t, srv)
	ask := func(h http.Handler) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		return w.Code
	}
	ready, live := lockpage.Ready(c), lockpage.Live(c)
	assert.Equal(t, []int{200, 200}, []int{ask(ready), ask(live)})
	require.NoError(t, srv.Stop())
	require.Eventually(t, func() bool { return ask(ready) == 503 }, 10*time.Second, time.Millisecond)
	assert.Equal(t, 200, ask(live), "to restart the process would mend nothing")
	status, _ := serve(t, lockpage.Handler(c)).get("")
	assert.Equal(t, 200, status, "it shows what it knows")
	require.NoError(t, srv.Restart())
	require.Eventually(t, func() bool { return ask(ready) == 200 }, 10*time.Second, time.Millisecond)
	require.NoError(t, c.Close())
	assert.Equal(t, []int{503, 503}, []int{ask(ready), ask(live)})
}

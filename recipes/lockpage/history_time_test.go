package lockpage_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/lockpage"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// shown is the page's text at an address.
func shown(t *testing.T, h http.Handler, query string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/locks"+query, nil))
	require.Equal(t, http.StatusOK, w.Code, query)
	return w.Body.String()
}

// order is in which order texts stand in a page.
func order(page string, texts ...string) []int {
	at := make([]int, len(texts))
	for i, text := range texts {
		at[i] = strings.Index(page, text)
	}
	return at
}

func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		history := new(lockpage.History)
		client := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Tracer = history })
		other := kit.Connect(t, srv)
		h := lockpage.Handler(client, lockpage.Remember(history))
		assert.Equal(t, 2, strings.Count(shown(t, h, ""), "None since this client began."))

		busy := kit.Hold(t, locks.NewInterProcessMutex(other, "/busy"))
		for path, wait := range map[string]time.Duration{"/busy": 12 * time.Second, "/short": time.Second} {
			_, err := locks.NewInterProcessMutex(client, "/busy").TryAcquire(t.Context(), wait)
			require.ErrorIs(t, err, locks.ErrNotAcquired, path)
		}
		require.NoError(t, busy.Release())
		term, err := leader.NewLatch(other, "/election").Await(t.Context())
		require.NoError(t, err)
		limited, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = leader.NewLatch(client, "/election").Await(limited)
		require.Error(t, err, "to wait is what candidates are for")
		require.NoError(t, term.Release())
		for range 25 {
			lost := kit.Hold(t, locks.NewInterProcessMutex(client, "/lost"))
			require.NoError(t, other.Delete(t.Context(), lost.Path(), framework.AnyVersion))
			<-lost.Context().Done()
			synctest.Wait()
			time.Sleep(time.Second)
		}
		page := shown(t, h, "")
		assert.Contains(t, page, "Lost: the last 20")
		assert.Equal(t, 20, strings.Count(page, "node deleted"), "as known now, though not when each was lost")
		assert.Contains(t, page, "Waited for long: the last 1<")
		assert.Contains(t, page, `data-is="Waited">12s<`)
		assert.NotContains(t, shown(t, lockpage.Handler(client), ""), "Waited for long", "nothing remembers")
	})
}

func TestWhoWaitsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		data := func(text string) func(*framework.Config) {
			return func(cfg *framework.Config) { cfg.DefaultData = []byte(text) }
		}
		client, other := kit.Connect(t, srv, data("me http://me:80")), kit.Connect(t, srv, data("other http://other:80"))
		mutex := func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) }
		for i, path := range []string{"/c/oldest", "/b/popular", "/a/new"} {
			kit.Hold(t, mutex(client, path))
			time.Sleep(time.Minute)
			for range i % 2 * 3 {
				kit.Queue(t, mutex(kit.Connect(t, srv), path))
			}
		}
		kit.Hold(t, mutex(other, "/theirs"))
		kit.Queue(t, mutex(client, "/theirs"))
		synctest.Wait()
		h := lockpage.Handler(client, lockpage.LinkTo(func(participant string) string {
			_, address, _ := strings.Cut(participant, " ")
			return address + "/debug/locks"
		}))

		began := srv.Counters().Received
		page := shown(t, h, "")
		assert.LessOrEqual(t, srv.Counters().Received-began, int64(3), "one request for the queues, one for who has each, one for who waits")
		assert.IsIncreasing(t, order(page, ">/c/oldest<", ">/b/popular<", ">/a/new<"))
		assert.Contains(t, page, `<span class="many">3</span>`)
		assert.Equal(t, 2, strings.Count(page, `<span class="faint">nobody</span>`))
		assert.Contains(t, page, `<a href="http://other:80/debug/locks" rel="noreferrer">other http://other:80</a>`)
		assert.Contains(t, page, `<rect class="held" width="100" height="4"/>`)
		assert.Regexp(t, `<rect class="held" width="3[34]" height="4"/>`, page)

		page = shown(t, h, "?sort=waiters")
		assert.IsIncreasing(t, order(page, ">/b/popular<", ">/c/oldest<", ">/a/new<"))
		page = shown(t, h, "?sort=path")
		assert.IsIncreasing(t, order(page, ">/a/new<", ">/b/popular<", ">/c/oldest<"))
		page = shown(t, h, "?filter=popular")
		assert.Contains(t, page, "Held: 1")
		assert.Contains(t, page, "Waiting: 0")
		assert.Contains(t, shown(t, h, "?path=/theirs"), `<a href="http://other:80/debug/locks" rel="noreferrer">`)

		unsafe := lockpage.Handler(client, lockpage.LinkTo(func(string) string { return "javascript:alert(1)" }))
		assert.NotContains(t, shown(t, unsafe, ""), "javascript:")

		srv.Freeze()
		began = time.Now().UnixMilli()
		page = shown(t, h, "")
		assert.LessOrEqual(t, time.Now().UnixMilli()-began, int64(2000), "the page is of use without the servers")
		assert.Contains(t, page, "The servers did not say who waits behind")
		assert.Contains(t, page, "Held: 3")
		srv.Thaw()
	})
}

func TestPageRefusesAnUnknownOrder(t *testing.T) {
	s := serve(t, lockpage.Handler(kit.Connect(t, zktest.Start(t))))
	status, body := s.get("?sort=size")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, body, "it must be waiters or path")
}

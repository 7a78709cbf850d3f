package lockpage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/cache"
	"github.com/paddock-zk/paddock/recipes/lockpage"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is the page on a server, as one browser sees it.
type site struct {
	*http.Client
	t       *testing.T
	address string
}

func serve(t *testing.T, h http.Handler) *site {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", h)
	srv := httptest.NewServer(mux)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	c := srv.Client()
	c.Jar = jar
	t.Cleanup(func() {
		c.CloseIdleConnections()
		srv.Close()
	})
	return &site{c, t, srv.URL + "/debug/locks"}
}

func (s *site) do(r *http.Request) (int, string, http.Header) {
	s.t.Helper()
	resp, err := s.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(body), resp.Header
}

func (s *site) get(query string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.address+query, nil)
	require.NoError(s.t, err)
	status, body, _ := s.do(r)
	return status, body
}

func (s *site) post(form url.Values, change ...func(*http.Request)) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.address, strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, fn := range change {
		fn(r)
	}
	status, body, _ := s.do(r)
	return status, body
}

const hostile = `<script>alert(1)</script>"'&` + "\x1b[2J\u202e"

func TestPageOfAClient(t *testing.T) {
	srv := zktest.Start(t)
	c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Namespace = "app" })
	h := kit.Hold(t, locks.NewInterProcessMutex(c, "/locks/<b>", locks.NodeData([]byte(hostile))))
	kit.Queue(t, locks.NewInterProcessMutex(c, "/locks/<b>", locks.NodeData([]byte(hostile))))
	require.Eventually(t, func() bool { return len(c.Waiters()) == 1 }, 5*time.Second, time.Millisecond)
	s := serve(t, lockpage.Handler(c))
	status, body := s.get("")
	require.Equal(t, http.StatusOK, status)
	for _, text := range []string{"CONNECTED", "Held: 1", "Waiting: 1", "a goroutine of this client", "/app/locks/&lt;b&gt;", "?path=%2Flocks%2F%3Cb%3E", "&lt;script&gt;", `\x1b[2J\u202e`} {
		assert.True(t, strings.Contains(body, text), "%s in %s", text, body)
	}
	assert.NotContains(t, body, "<script")
	assert.NotContains(t, body, "http-equiv")
	_, body = s.get("?refresh=5")
	assert.Contains(t, body, `http-equiv="refresh" content="5"`)

	_, body = s.get("?path=" + url.QueryEscape("/locks/<b>"))
	for _, text := range []string{"A mutex.", "holds", "&lt;script&gt;", fmt.Sprint(h.FencingToken())} {
		assert.True(t, strings.Contains(body, text), "%s in %s", text, body)
	}
	assert.NotContains(t, body, "<script")
	assert.NotContains(t, body, "Delete the node", "it only reads")

	status, body = s.get("?format=json")
	require.Equal(t, http.StatusOK, status)
	var all struct {
		State   string
		Holds   []map[string]any
		Waiters []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	assert.Equal(t, "CONNECTED", all.State)
	require.Len(t, all.Holds, 1)
	assert.Equal(t, "/app"+h.Path(), all.Holds[0]["node"])
	assert.Equal(t, hostile, all.Holds[0]["participant"])
	require.Len(t, all.Waiters, 1)
	assert.Equal(t, true, all.Waiters[0]["local"])
	_, body = s.get("?format=json&path=" + url.QueryEscape("/locks/<b>"))
	var q struct{ Participants []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(body), &q))
	assert.Equal(t, h.Path(), q.Participants[0]["node"])

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.address, nil)
	require.NoError(t, err)
	_, _, header := s.do(r)
	assert.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.Equal(t, "no-store", header.Get("Cache-Control"))
}

// A page shows the caches of its client, and what recipes of other modules say.
func TestPageOfOtherRecipes(t *testing.T) {
	srv := zktest.Start(t)
	c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Namespace = "app" })
	s := serve(t, lockpage.Handler(c))
	_, body := s.get("")
	assert.NotContains(t, body, "Other recipes")
	require.NoError(t, c.EnsurePath(t.Context(), "/<b>/x"))
	copied, err := cache.Start(c, "/<b>", cache.Bytes)
	require.NoError(t, err)
	defer copied.Close()
	snapshot, err := copied.Ready(t.Context())
	require.NoError(t, err)
	kit.Until(t, "it is current", func() bool { return copied.Status().Current }) // just after the snapshot
	party, err := c.Show("/party", func() monitor.Entry {
		return monitor.Entry{Kind: "<party>", State: "full & loud", Err: errors.New("<too many>"), Behind: "/doorman", Numbers: map[string]int64{"guests": 71}}
	})
	require.NoError(t, err)
	_, body = s.get("")
	for _, text := range []string{
		"Other recipes: 2", "/app/&lt;b&gt;", "current", fmt.Sprintf("%#x", snapshot.Zxid()),
		"/app/party", "&lt;party&gt;", `<span class="bad">full &amp; loud`, "&lt;too many&gt;", "/doorman", "71",
	} {
		assert.True(t, strings.Contains(body, text), "%s in %s", text, body)
	}
	assert.Contains(t, body, "<span>current", "whether a state without an error is good is the recipe's to know")
	_, body = s.get("?filter=party&format=json")
	assert.NotContains(t, body, "0001-01-01")
	_, body = s.get("?filter=party")
	assert.Contains(t, body, "Other recipes: 1")
	party.Remove()
	_, body = s.get("?filter=other")
	assert.NotContains(t, body, "Other recipes")
	status, _ := s.get("?entries=x")
	assert.Equal(t, http.StatusBadRequest, status)
	_, body = s.get("?format=json")
	var all struct{ Entries []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	require.Len(t, all.Entries, 1)
	assert.Equal(t, "/app/<b>", all.Entries[0]["path"])
	assert.InDelta(t, 2, all.Entries[0]["numbers"].(map[string]any)["nodes"], 0)
	assert.NotContains(t, all.Entries[0], "error")
}

// A MultiLock that waits shows what it has.
func TestPageOfAWaitingMultiLock(t *testing.T) {
	srv := zktest.Start(t)
	c := kit.Connect(t, srv)
	held := kit.Hold(t, kit.MutexAt("/l/b")(kit.Connect(t, srv)))
	waits := kit.Acquire(t, kit.MultiAt("/l")(c))
	require.Eventually(t, func() bool { return len(c.Waiters()) == 1 }, 5*time.Second, time.Millisecond)
	s := serve(t, lockpage.Handler(c))
	_, body := s.get("")
	assert.Contains(t, body, "multilock: has /l/a, wants /l/b")
	_, body = s.get("?format=json")
	assert.Contains(t, body, `"has":["/l/a"],"wants":["/l/b"]`)
	require.NoError(t, held.Release())
	require.NoError(t, waits.Soon().Release())
}

func TestOptionIsNil(t *testing.T) {
	assert.PanicsWithValue(t, "lockpage: option is nil", func() { lockpage.Handler(nil, nil) })
}

func TestPageRefusesWhatIsWrong(t *testing.T) {
	srv := zktest.Start(t)
	c := kit.Connect(t, srv)
	require.NoError(t, c.EnsurePath(t.Context(), "/mixed/x-lock-0000000001"))
	require.NoError(t, c.EnsurePath(t.Context(), "/mixed/x-latch-0000000002"))
	s := serve(t, lockpage.Handler(c))
	for query, want := range map[string]int{
		"?path=nowhere": 400, "?path=/l&leases=x": 400, "?holds=0": 400, "?waiters=-1": 400, "?path=/none": 404, "?path=/mixed": 409,
		"?holds=99": 200, "?path=/": 200,
	} {
		status, body := s.get(query)
		assert.Equal(t, want, status, query)
		assert.Contains(t, body, "<!doctype html>", query)
	}
	status, body := s.get("?path=/none&format=json")
	assert.Equal(t, 404, status)
	assert.Contains(t, body, `"error"`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.address, nil)
	require.NoError(t, err)
	status, _, header := s.do(r)
	assert.Equal(t, http.StatusMethodNotAllowed, status)
	assert.NotEmpty(t, header.Get("Allow"))
}

var token = regexp.MustCompile(`name="token" value="([0-9a-f]{64})"`)

// many are the holds and the waiters of a client that has ten thousand of each.
func many(t testing.TB, c *framework.Client, n int) (release func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2*n)
	for i := range 2 * n {
		go func() {
			defer func() { done <- struct{}{} }()
			if _, err := locks.NewInterProcessMutex(c, fmt.Sprintf("/many/%05d", i%n), locks.LocalHandovers(16)).Acquire(ctx); err != nil {
				return
			}
		}()
	}
	for range n {
		<-done
	}
	return func() {
		cancel()
		for range n {
			<-done
		}
	}
}

// BenchmarkPage renders pages of a client with 10,000 holds and 10,000 waiters.
func BenchmarkPage(b *testing.B) {
	srv := zktest.Start(b)
	c := kit.Connect(b, srv, kit.Within(40*time.Second, 0))
	defer many(b, c, 10_000)()
	for name, query := range map[string]string{"html": "/", "last page": "/?holds=100", "json": "/?format=json"} {
		b.Run(name, func(b *testing.B) {
			h := lockpage.Handler(c)
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, query, nil))
				require.Equal(b, http.StatusOK, w.Code)
			}
		})
	}
}

func TestPagesOfManyHolds(t *testing.T) {
	srv := zktest.Start(t)
	c := kit.Connect(t, srv)
	defer many(t, c, 250)()
	require.Eventually(t, func() bool { return len(c.Waiters()) == 250 }, 10*time.Second, time.Millisecond)
	s := serve(t, lockpage.Handler(c))
	for page, want := range map[string]int{"": 100, "?holds=2": 100, "?holds=3": 50, "?holds=9": 50} {
		_, body := s.get(page)
		assert.Contains(t, body, "Held: 250")
		assert.Contains(t, body, "Waiting: 250")
		held, _, _ := strings.Cut(body, "Waiting: ")
		assert.Equal(t, want, strings.Count(held, `<tr><td class="name" data-is="Lock">`), page)
	}
}

// A long queue is shown in parts, and in full as JSON.
func TestPagesOfALongQueue(t *testing.T) {
	srv := zktest.Start(t)
	c := kit.Connect(t, srv)
	require.NoError(t, c.EnsurePath(t.Context(), "/l"))
	for i := range 250 {
		_, err := c.Create(t.Context(), fmt.Sprintf("/l/_c_%08x-0000-0000-0000-000000000000-lock-", i), nil, framework.EphemeralSequential)
		require.NoError(t, err)
	}
	s := serve(t, lockpage.Handler(c))
	for page, want := range map[string]struct{ from, to, nodes int }{
		"": {1, 100, 100}, "&places=2": {101, 200, 100}, "&places=3": {201, 250, 50}, "&places=9&leases=3": {201, 250, 50},
	} {
		status, body := s.get("?path=/l" + page)
		assert.Equal(t, http.StatusOK, status, page)
		assert.Contains(t, body, fmt.Sprintf("%d to %d of 250", want.from, want.to), page)
		assert.Contains(t, body, fmt.Sprintf(`<td class="number" data-is="#">%d</td>`, want.to), page)
		assert.Equal(t, want.nodes, strings.Count(body, `<tr><td class="number" data-is="#">`), page)
		if want.to < 250 {
			assert.Contains(t, body, fmt.Sprintf("?path=%%2Fl&amp;places=%d", want.to/100+1), page)
		}
	}
	status, _ := s.get("?path=/l&places=0")
	assert.Equal(t, http.StatusBadRequest, status)
	_, body := s.get("?path=/l&format=json")
	assert.Equal(t, 250, strings.Count(body, `"node"`))
}

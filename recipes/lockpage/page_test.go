package lockpage_test

import (
	"context"
	"encoding/json"
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
	"github.com/paddock-zk/paddock/internal/test/kit"
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

func TestBreakOnThePage(t *testing.T) {
	srv := zktest.Start(t)
	c := kit.Connect(t, srv)
	lock := locks.NewInterProcessMutex(kit.Connect(t, srv), "/l")
	h := kit.Hold(t, lock)
	admin := func(r *http.Request) bool { return r.Header.Get("X-User") != "guest" }
	s := serve(t, lockpage.Handler(c, lockpage.AllowBreak(admin)))
	_, body := s.get("?path=/l")
	found := token.FindStringSubmatch(body)
	require.NotNil(t, found, body)
	form := func(change ...string) url.Values {
		v := url.Values{"path": {"/l"}, "node": {h.Path()}, "token": {found[1]}}
		for i := 0; i < len(change); i += 2 {
			v.Set(change[i], change[i+1])
		}
		return v
	}
	for name, tc := range map[string]struct {
		form   url.Values
		change func(*http.Request)
		want   int
	}{
		"no token":         {form("token", ""), nil, 403},
		"another token":    {form("token", strings.Repeat("0", 64)), nil, 403},
		"without a cookie": {form(), func(r *http.Request) { r.Host = "localhost" }, 403}, // for which there is none
		"another site":     {form(), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"another origin":   {form(), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"not allowed":      {form(), func(r *http.Request) { r.Header.Set("X-User", "guest") }, 403},
		"another node":     {form("node", "/other"), nil, 404},
		"another lock":     {form("path", "/none"), nil, 404},
		"no path":          {form("path", "l"), nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			change := []func(*http.Request){}
			if tc.change != nil {
				change = append(change, tc.change)
			}
			status, _ := s.post(tc.form, change...)
			assert.Equal(t, tc.want, status)
			assert.Equal(t, locks.Held, h.State(), "nothing was deleted")
		})
	}
	status, body := s.post(form())
	assert.Equal(t, http.StatusOK, status, "behind the redirection")
	assert.Contains(t, body, "Deleted: <code>"+h.Path())
	<-h.Context().Done()
	require.ErrorIs(t, h.Err(), locks.ErrLockLost)

	only := serve(t, lockpage.Handler(c))
	status, _ = only.post(form())
	assert.Equal(t, 403, status, "it only reads")
	nobody := serve(t, lockpage.Handler(c, lockpage.AllowBreak(nil)))
	status, _ = nobody.post(form())
	assert.Equal(t, 403, status)
}

// A program breaks a lease of a semaphore and is answered in JSON. What the servers refuse
// is told with the status for it.
func TestBreakByAProgram(t *testing.T) {
	srv := zktest.Start(t)
	h := kit.Hold(t, locks.NewInterProcessSemaphore(kit.Connect(t, srv), "/s", 2))
	s := serve(t, lockpage.Handler(kit.Connect(t, srv), lockpage.AllowBreak(func(*http.Request) bool { return true })))
	_, body := s.get("?path=/s&leases=2")
	found := token.FindStringSubmatch(body)
	require.NotNil(t, found, body)
	form := url.Values{"path": {"/s"}, "leases": {"2"}, "node": {h.Path()}, "token": {found[1]}}
	asJSON := func(r *http.Request) { r.Header.Set("Accept", "application/json") }

	status, body := s.post(form, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("path=%zz")), 8
	})
	assert.Equal(t, 400, status, body)

	refuse := srv.On(zktest.Match{Op: "delete", Path: h.Path()}, zktest.Fail(-102))
	status, body = s.post(form, asJSON)
	refuse.Remove()
	assert.Equal(t, 403, status, body)
	assert.Equal(t, locks.Held, h.State(), "nothing was deleted")

	status, body = s.post(form, asJSON)
	assert.Equal(t, 200, status)
	assert.JSONEq(t, `{"deleted":"`+h.Path()+`"}`, body)
	<-h.Context().Done()
	require.ErrorIs(t, h.Err(), locks.ErrLockLost)

	again := kit.Hold(t, locks.NewInterProcessSemaphore(kit.Connect(t, srv), "/s", 2))
	form.Set("node", again.Path())
	status, body = s.post(form)
	assert.Equal(t, 200, status)
	assert.Contains(t, body, "Deleted: <code>"+again.Path(), "the page is that of the same semaphore")
}

func TestProbes(t *testing.T) {
	srv := zktest.Start(t)
	c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString()})
	require.NoError(t, err)
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
	c, err := framework.Connect(b.Context(), framework.Config{ConnectString: srv.ConnectString(), SessionTimeout: 40 * time.Second})
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close()) }()
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
		assert.Equal(t, want, strings.Count(held, `<tr><td class="name">`), page)
	}
}

package lockpage_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/lockpage"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

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

// Of two replicas behind one address, one makes the form and the other gets it.
func TestBreakBehindABalancer(t *testing.T) {
	srv := zktest.Start(t)
	h := kit.Hold(t, locks.NewInterProcessMutex(kit.Connect(t, srv), "/l"))
	anybody := func(*http.Request) bool { return true }
	a, b := lockpage.Handler(kit.Connect(t, srv), lockpage.AllowBreak(anybody)), lockpage.Handler(kit.Connect(t, srv), lockpage.AllowBreak(anybody))
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, b = b, a
		b.ServeHTTP(w, r)
	}))
	_, body := s.get("?path=/l")
	found := token.FindStringSubmatch(body)
	require.NotNil(t, found, body)
	status, body := s.post(url.Values{"path": {"/l"}, "node": {h.Path()}, "token": {found[1]}})
	assert.Equal(t, http.StatusOK, status, body)
	<-h.Context().Done()
}

// A proxy serves the page below another path, and changes the host. Over plain HTTP a browser
// says nothing but the origin.
func TestBreakBehindAProxy(t *testing.T) {
	srv := zktest.Start(t)
	c := kit.Connect(t, srv)
	h := kit.Hold(t, locks.NewInterProcessMutex(kit.Connect(t, srv), "/l"))
	anybody := lockpage.AllowBreak(func(*http.Request) bool { return true })
	for name, tc := range map[string]struct {
		opts []lockpage.Option
		want int
	}{
		"unknown": {[]lockpage.Option{anybody}, http.StatusForbidden},
		"trusted": {[]lockpage.Option{anybody, lockpage.TrustOrigin("http://ops.example.com")}, http.StatusOK},
	} {
		page := lockpage.Handler(c, tc.opts...)
		mux := http.NewServeMux()
		mux.Handle("/", http.StripPrefix("/debug/locks", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Host = "10.0.0.7:8080"
			page.ServeHTTP(w, r)
		})))
		s := serve(t, mux)
		_, body := s.get("?path=/l")
		found := token.FindStringSubmatch(body)
		require.NotNil(t, found, body)
		status, body := s.post(url.Values{"path": {"/l"}, "node": {h.Path()}, "token": {found[1]}},
			func(r *http.Request) { r.Header.Set("Origin", "http://ops.example.com") })
		assert.Equal(t, tc.want, status, name)
		if status == http.StatusForbidden {
			assert.Contains(t, body, "ops.example.com")
			assert.Contains(t, body, "10.0.0.7:8080")
			assert.Contains(t, body, "lockpage.TrustOrigin")
		}
		if status == http.StatusOK {
			<-h.Context().Done()
			h = kit.Hold(t, locks.NewInterProcessMutex(kit.Connect(t, srv), "/l"))
		}
	}
	assert.Panics(t, func() { lockpage.Handler(c, lockpage.TrustOrigin("ops.example.com")) })
}

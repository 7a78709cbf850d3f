package retryhttp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
	"github.com/paddock-zk/paddock/retry/retryhttp"
)

const ms = time.Millisecond

// reply is what a server says to one attempt.
type reply struct {
	status int
	after  string // Retry-After
	body   io.ReadCloser
	err    error
	takes  time.Duration
}

// server is a Base that gives one reply to each attempt, the last one for ever.
type server struct {
	replies []reply
	sent    []string // bodies of requests, "-" for none
	at      []time.Duration
	start   time.Time
	open    int // bodies of responses and requests that nobody has closed
	last    *http.Request
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	r := s.replies[min(len(s.sent), len(s.replies)-1)]
	s.at = append(s.at, time.Since(s.start))
	s.last = req
	text := "-"
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		text = string(b)
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
	}
	s.sent = append(s.sent, text)
	taken := make(chan struct{})
	if r.takes > 0 { // a timer that is due breaks the race detector in a bubble (golang/go#78156)
		time.AfterFunc(r.takes, func() { close(taken) })
	} else {
		close(taken)
	}
	select {
	case <-taken:
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	if r.err != nil {
		return nil, r.err
	}
	resp := &http.Response{StatusCode: r.status, Status: http.StatusText(r.status), Header: http.Header{}, Request: req, ContentLength: -1}
	if r.after != "" {
		resp.Header.Set("Retry-After", r.after)
	}
	if r.body == nil {
		r.body = io.NopCloser(strings.NewReader(resp.Status))
	}
	s.open++
	resp.Body = &counted{ReadCloser: r.body, open: &s.open, ctx: req.Context()}
	return resp, nil
}

// counted is a body that ends with the context of its request, as those of net/http.
type counted struct {
	io.ReadCloser
	open   *int
	ctx    context.Context
	closed bool
}

func (b *counted) Read(p []byte) (int, error) {
	if b.ctx != nil && b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.ReadCloser.Read(p)
}

func (b *counted) Close() error {
	if !b.closed {
		b.closed = true
		*b.open--
	}
	return b.ReadCloser.Close()
}

// request has a body that is counted, too.
func (s *server) request(t *testing.T, method, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://shop/orders", http.NoBody)
	require.NoError(t, err)
	if body != "" {
		get := func() (io.ReadCloser, error) {
			s.open++
			return &counted{ReadCloser: io.NopCloser(strings.NewReader(body)), open: &s.open}, nil
		}
		req.Body, err = get()
		require.NoError(t, err)
		req.GetBody, req.ContentLength = get, int64(len(body))
	}
	return req
}

func newServer(replies ...reply) *server { return &server{replies: replies, start: time.Now()} }

func (s *server) client(p retry.Policy) *http.Client {
	return &http.Client{Transport: &retryhttp.Transport{Base: s, Policy: p}}
}

func TestOnlyWhatMayBeRepeatedIsSentAgain(t *testing.T) {
	reset := &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	proxy := &net.OpError{Op: "proxyconnect", Err: errors.New("connection refused")}
	untrusted := &tls.CertificateVerificationError{Err: errors.New("unknown authority")}
	for _, tc := range []struct {
		name  string
		reply reply
		safe  int // attempts of requests that may be repeated
		once  int // attempts of others
	}{
		{"200", reply{status: 200}, 1, 1},
		{"202", reply{status: 202}, 1, 1},
		{"304", reply{status: 304}, 1, 1},
		{"400", reply{status: 400}, 1, 1},
		{"404", reply{status: 404}, 1, 1},
		{"408", reply{status: 408}, 3, 1},
		{"409", reply{status: 409}, 1, 1},
		{"429, which was refused before it was looked at", reply{status: 429}, 3, 3},
		{"500", reply{status: 500}, 3, 1},
		{"501", reply{status: 501}, 1, 1},
		{"502", reply{status: 502}, 3, 1},
		{"503", reply{status: 503, after: "0"}, 3, 1},
		{"504", reply{status: 504}, 3, 1},
		{"reset", reply{err: reset}, 3, 1},
		{"no connection", reply{err: dial}, 3, 3},
		{"no connection by a proxy", reply{err: proxy}, 3, 3},
		{"untrusted", reply{err: untrusted}, 1, 1},
	} {
		for _, how := range []struct {
			name, method, body string
			change             func(*http.Request)
			safe, rewindable   bool
		}{
			{"GET", "GET", "", nil, true, true},
			{"no method", "GET", "", func(r *http.Request) { r.Method = "" }, true, true},
			{"HEAD", "HEAD", "", nil, true, true},
			{"PUT", "PUT", "shoes", nil, true, true},
			{"DELETE", "DELETE", "", nil, true, true},
			{"POST", "POST", "shoes", nil, false, true},
			{"PATCH", "PATCH", "shoes", nil, false, true},
			{"POST with a key", "POST", "shoes", func(r *http.Request) { r.Header.Set("Idempotency-Key", "7") }, true, true},
			{"POST with an old key", "POST", "shoes", func(r *http.Request) { r.Header.Set("X-Idempotency-Key", "7") }, true, true},
			{"POST with a key that is not sent", "POST", "shoes", func(r *http.Request) { r.Header["Idempotency-Key"] = nil }, true, true},
			{"PUT of a stream", "PUT", "shoes", func(r *http.Request) { r.GetBody = nil }, true, false},
			{"POST of a stream", "POST", "shoes", func(r *http.Request) { r.GetBody = nil }, false, false},
		} {
			t.Run(tc.name+" to "+how.name, func(t *testing.T) {
				s := newServer(tc.reply)
				req := s.request(t, how.method, how.body)
				if how.change != nil {
					how.change(req)
				}
				resp, err := (&retryhttp.Transport{Base: s, Policy: retry.NTimes(2, 0)}).RoundTrip(req)
				want := tc.once
				switch {
				case !how.rewindable:
					want = 1
				case how.safe:
					want = tc.safe
				}
				require.Len(t, s.sent, want)
				for _, body := range s.sent {
					assert.Equal(t, max("-", how.body), max("-", body), "the body is sent again")
				}
				if tc.reply.err != nil {
					require.ErrorIs(t, err, tc.reply.err)
					var e *retry.Error
					assert.Equal(t, want > 1, errors.As(err, &e), "one attempt leaves the error as it is")
				} else {
					require.NoError(t, err)
					assert.Equal(t, tc.reply.status, resp.StatusCode)
					assert.Same(t, req, resp.Request)
					b, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					assert.Equal(t, http.StatusText(tc.reply.status), string(b), "the last response is whole")
					assert.Equal(t, 1, s.open, "the others are closed")
					require.NoError(t, resp.Body.Close())
				}
				assert.Zero(t, s.open)
			})
		}
	}
}

// A classifier of the policy comes first, but cannot have a stream sent twice.
func TestClassifiersComeFirst(t *testing.T) {
	p := retry.NTimes(2, 0).WithClassifier(retry.As(func(e *retryhttp.StatusError) retry.Decision {
		if e.Response.StatusCode == 404 && e.Response.Header.Get("Retry-After") == "7" {
			return retry.Again // it is made just now
		}
		return retry.Pass
	}))
	s := newServer(reply{status: 404, after: "7"}, reply{status: 200})
	resp, err := s.client(p).Do(s.request(t, "GET", ""))
	require.NoError(t, err)
	assert.Equal(t, 200, resp.StatusCode)
	require.NoError(t, resp.Body.Close())

	for status, left := range map[int]float64{404: 3, 503: 2} {
		b := retry.NewBudget(3, 1)
		assert.Error(t, retry.Do(t.Context(), retry.OneTime(0).WithBudget(b), func(context.Context) error { return errors.New("failure") }))
		s = newServer(reply{status: status, after: "7"})
		req := s.request(t, "PUT", "shoes")
		req.GetBody = nil
		resp, err = s.client(p.WithBudget(b)).Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Len(t, s.sent, 1)
		assert.Equal(t, left, b.Left(), "404 is an answer, 503 is none")
	}
}

func TestRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		after string
		max   time.Duration
		want  time.Duration
	}{
		{"", 0, ms},
		{"0", 0, ms},
		{"2", 0, 2 * time.Second},
		{" 2 ", 0, 2 * time.Second},
		{"-2", 0, ms},
		{"1.5", 0, ms},
		{"soon", 0, ms},
		{"Sat, 01 Jan 2000 00:00:30 GMT", 0, 30 * time.Second},
		{"Saturday, 01-Jan-00 00:00:30 GMT", 0, 30 * time.Second},
		{"Sat Jan  1 00:00:30 2000", 0, 30 * time.Second},
		{"Fri, 31 Dec 1999 23:00:00 GMT", 0, ms},
		{"86400", 0, time.Hour},
		{"99999999999999999999", 0, time.Hour},
		{"Sat, 01 Jan 2050 00:00:00 GMT", 0, time.Hour},
		{"60", 5 * time.Second, 5 * time.Second},
		{"Sat, 01 Jan 2000 00:01:00 GMT", 5 * time.Second, 5 * time.Second},
	} {
		for _, status := range []int{429, 503} {
			synctest.Test(t, func(t *testing.T) { // it is midnight, 1 January 2000
				s := newServer(reply{status: status, after: tc.after}, reply{status: 200})
				resp, err := s.client(retry.OneTime(ms).WithMaxAfter(tc.max)).Do(s.request(t, "GET", ""))
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				assert.Equal(t, []time.Duration{0, tc.want}, s.at, tc.after)
			})
		}
	}
}

// Nobody waits for what comes too late, and the caller sees why.
func TestRetryAfterBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(reply{status: 503, after: "60"})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		resp, err := s.client(retry.NTimes(9, ms)).Do(s.request(t, "GET", "").WithContext(ctx))
		require.NoError(t, err)
		assert.Equal(t, 503, resp.StatusCode)
		assert.Equal(t, "60", resp.Header.Get("Retry-After"))
		assert.Zero(t, time.Since(s.start))
		require.NoError(t, resp.Body.Close())
		assert.Zero(t, s.open)
	})
}

func TestContextOfTheRequest(t *testing.T) {
	t.Run("ends during a delay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(reply{status: 503})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(25*ms, cancel)
			_, err := s.client(retry.Forever(10 * ms)).Do(s.request(t, "PUT", "shoes").WithContext(ctx)) //nolint:bodyclose // there is none
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorAs(t, err, new(*retryhttp.StatusError))
			assert.Equal(t, 25*ms, time.Since(s.start))
			assert.Zero(t, s.open)
		})
	})
	t.Run("has ended", func(t *testing.T) {
		s := newServer(reply{status: 200})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := (&retryhttp.Transport{Base: s}).RoundTrip(s.request(t, "PUT", "shoes").WithContext(ctx)) //nolint:bodyclose // there is none
		require.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, s.sent)
		assert.Zero(t, s.open, "the body of the request")
	})
	t.Run("is out of time", func(t *testing.T) {
		for _, takes := range []time.Duration{time.Hour, 0} { // in an attempt, before a delay
			synctest.Test(t, func(t *testing.T) {
				s := newServer(reply{takes: takes, err: errors.New("broken")})
				ctx, cancel := context.WithTimeout(t.Context(), 25*ms)
				defer cancel()
				_, err := s.client(retry.Forever(10 * ms)).Do(s.request(t, "GET", "").WithContext(ctx)) //nolint:bodyclose // there is none
				var e *url.Error
				require.ErrorAs(t, err, &e)
				assert.True(t, e.Timeout())
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
	})
	t.Run("is cut short by the client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(reply{takes: time.Hour})
			c := s.client(retry.Forever(10 * ms))
			c.Timeout = 25 * ms
			_, err := c.Do(s.request(t, "GET", "")) //nolint:bodyclose // there is none
			var e *url.Error
			require.ErrorAs(t, err, &e)
			assert.True(t, e.Timeout())
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	t.Run("bounds the reading of the body", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(reply{status: 200})
			ctx, cancel := context.WithTimeout(t.Context(), 25*ms)
			defer cancel()
			resp, err := s.client(retry.None().WithAttemptTimeout(10 * ms)).Do(s.request(t, "GET", "").WithContext(ctx))
			require.NoError(t, err)
			time.Sleep(20 * ms) // the attempt's time is over, and counts no more
			n, err := resp.Body.Read(make([]byte, 1))
			require.NoError(t, err)
			assert.Equal(t, 1, n)
			time.Sleep(10 * ms)
			_, err = io.ReadAll(resp.Body)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NoError(t, resp.Body.Close())
		})
	})
	t.Run("ends with the body", func(t *testing.T) {
		s := newServer(reply{status: 200})
		resp, err := s.client(retry.None()).Do(s.request(t, "GET", ""))
		require.NoError(t, err)
		require.NoError(t, s.last.Context().Err())
		require.NoError(t, resp.Body.Close())
		assert.Error(t, s.last.Context().Err())
		s = newServer(reply{status: 204, body: http.NoBody})
		resp, err = (&retryhttp.Transport{Base: s}).RoundTrip(s.request(t, "GET", ""))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	})
}

func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(reply{takes: time.Hour}, reply{status: 200})
		resp, err := s.client(retry.OneTime(0).WithAttemptTimeout(10 * ms)).Do(s.request(t, "GET", ""))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, []time.Duration{0, 10 * ms}, s.at)

		s = newServer(reply{takes: time.Hour})
		_, err = s.client(retry.OneTime(0).WithAttemptTimeout(10 * ms)).Do(s.request(t, "POST", "shoes")) //nolint:bodyclose // there is none
		require.ErrorContains(t, err, "attempt timed out")
		assert.Len(t, s.sent, 1)
	})
}

func TestBudgetIsShared(t *testing.T) {
	b := retry.NewBudget(2, 0)
	p := retry.NTimes(9, 0).WithBudget(b)
	s := newServer(reply{status: 503})
	for _, total := range []int{3, 4} {
		resp, err := s.client(p).Do(s.request(t, "GET", ""))
		require.NoError(t, err)
		assert.Equal(t, 503, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		assert.Len(t, s.sent, total)
	}
	assert.Zero(t, b.Left())
}

// Loops around a request and below it add up with its own.
func TestNestedLoops(t *testing.T) {
	p := retry.NTimes(3, 0)
	s := newServer(reply{err: errors.New("broken")})
	c := &http.Client{Transport: &retryhttp.Transport{Policy: p, Base: &retryhttp.Transport{Policy: p, Base: s}}}
	req := s.request(t, "GET", "")
	assert.Error(t, retry.Do(t.Context(), p, func(ctx context.Context) error {
		resp, err := c.Do(req.WithContext(ctx))
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}))
	assert.Len(t, s.sent, 4)
	s.sent = nil
	resp, err := c.Do(req)
	if err == nil {
		err = resp.Body.Close()
	}
	require.Error(t, err)
	assert.Len(t, s.sent, 4)
}

// endless is a body that trickles.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	time.Sleep(15 * ms)
	return copy(p, "x"), nil
}

func (endless) Close() error { return nil }

func TestDrainingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(reply{status: 503, body: endless{}}, reply{status: 200})
		resp, err := s.client(retry.OneTime(0)).Do(s.request(t, "GET", ""))
		require.NoError(t, err)
		assert.Equal(t, []time.Duration{0, 105 * ms}, s.at, "after 100 ms, and the read that was under way")
		require.NoError(t, s.last.Context().Err(), "the next attempt goes on")
		require.NoError(t, resp.Body.Close())
		assert.Zero(t, s.open)

		huge := io.NopCloser(io.LimitReader(zeros{}, 1<<40))
		s = newServer(reply{status: 503, body: huge}, reply{status: 200})
		resp, err = s.client(retry.OneTime(0)).Do(s.request(t, "GET", ""))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Zero(t, s.open)
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestPanicsLeaveNothingOpen(t *testing.T) {
	s := newServer(reply{status: 503})
	p := retry.NTimes(2, 0).OnRetry(func(context.Context, retry.Attempt) { panic("hook") })
	assert.PanicsWithValue(t, "hook", func() {
		_, _ = s.client(p).Do(s.request(t, "PUT", "shoes")) //nolint:bodyclose // there is none
	})
	assert.Zero(t, s.open)
}

func TestPolicyThatIsRefused(t *testing.T) {
	s := newServer(reply{status: 200})
	_, err := s.client(retry.NTimes(3, 5)).Do(s.request(t, "PUT", "shoes")) //nolint:bodyclose // there is none
	require.ErrorContains(t, err, "the sleep is 5ns")
	assert.Zero(t, s.open)
	req := s.request(t, "PUT", "shoes")
	req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("file is gone") }
	s = newServer(reply{err: errors.New("broken")})
	_, err = s.client(retry.NTimes(3, 0)).Do(req) //nolint:bodyclose // there is none
	require.ErrorContains(t, err, "file is gone")
}

// bare is a Base as tests write it. http.Client takes a response without a body.
type bare []int

func (b *bare) RoundTrip(*http.Request) (*http.Response, error) {
	status := (*b)[0]
	*b = (*b)[1:]
	return &http.Response{StatusCode: status, Status: http.StatusText(status)}, nil
}

func TestResponseWithoutABody(t *testing.T) {
	c := &http.Client{Transport: &retryhttp.Transport{Base: &bare{503, 200}, Policy: retry.OneTime(0)}}
	resp, err := c.Do(newServer().request(t, "GET", ""))
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Empty(t, b)
	assert.NoError(t, resp.Body.Close())
}

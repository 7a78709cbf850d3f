// Package retryhttp sends HTTP requests again under a policy of package retry.
package retryhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/retry"
)

// Transport is an http.RoundTripper that sends a request again when its failure may
// pass, and when that does no harm. It is safe for use by many goroutines; do not
// change its fields while it is in use.
//
//	client := &http.Client{Transport: &retryhttp.Transport{Policy: inventory}}
//
// Failures are judged by the classifiers of Policy, and then by these rules. The status
// 429 is retry.Again, and so is a connection that could not be made. The status 408, 500,
// 502, 503 and 504 and all other errors of Base are retry.Unsure. Any other status from
// 400 on, a certificate that is not trusted, and a URL without a host or of a scheme that
// Base does not know, is retry.Stop. A status below 400 is a success. For classifiers and
// hooks a status is a *StatusError.
//
// What is Unsure is sent again only if the request is idempotent: GET, HEAD, OPTIONS,
// TRACE, PUT, DELETE, and any with a header Idempotency-Key or X-Idempotency-Key. One
// without values says so, too, and is not sent.
// A request whose body cannot be had again, for want of GetBody, is sent once. The
// functions of net/http set GetBody for a bytes.Buffer, bytes.Reader and strings.Reader.
//
// A Retry-After of a response is heeded as by retry.AgainAfter: Policy.WithMaxAfter bounds
// it, by default to an hour. If the delay would outlast the deadline of the request's
// context, Transport does not begin it.
//
// The timeout of an attempt ends when its response has come; the context of the
// request goes on to bound the reading of the body.
//
// Source: RFC 9110, 9.2.2 and 10.2.3; RFC 6585, 4; for the keys net/http.Transport.
type Transport struct {
	// Base makes each attempt. Defaults to http.DefaultTransport.
	Base http.RoundTripper

	// Policy says how often and how soon to try again. Its budget may be shared with other
	// transports and with calls of retry.Do. Its judges of results are not asked. The zero
	// Policy makes one attempt.
	Policy retry.Policy
}

// StatusError is a response that is no success, for classifiers and hooks of a policy.
type StatusError struct {
	// Response is what came. Only Transport and its caller may read and close its body.
	Response *http.Response
	// RetryAfter is how long the server asks to wait, 0 if it does not say.
	RetryAfter time.Duration
}

// Error is the status, such as "503 Service Unavailable".
func (e *StatusError) Error() string { return e.Response.Status }

// RoundTrip sends req until there is an answer, the policy gives up, or the request's
// context ends.
//
// If it gives up after a response, RoundTrip returns that response and no error, as if
// it had sent req once. The bodies of earlier responses have been read, at most 64 KiB and
// for at most 100 ms, and closed. If it gives up after an error, it returns that of Base
// after a single attempt, and else an error that wraps a *retry.Error. The latter matches
// the end of the request's context if that is the reason, and has a method Timeout.
//
// A RoundTrip below a retry.Do charges its retries to that loop as well, see retry.Detach.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{base: t.base(), req: req}
	defer x.close()
	p := t.Policy.WithFallback(judge).OnRetry(func(context.Context, retry.Attempt) { x.drain() })
	var opts []retry.Option
	if x.rewindable() && idempotent(req) {
		opts = append(opts, retry.Idempotent())
	}
	err := retry.Do(req.Context(), p, x.attempt, opts...)
	if err == nil || x.resp != nil && req.Context().Err() == nil {
		return x.take(), nil
	}
	var e *retry.Error
	if !errors.As(err, &e) {
		return nil, err
	}
	end := req.Context().Err()
	if e.Attempts == 1 && (end == nil || errors.Is(e.Last, end)) {
		return nil, e.Last
	}
	return nil, &roundTripError{e}
}

// CloseIdleConnections has Base close its idle connections, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// roundTripError lets http.Client see that a request has timed out.
type roundTripError struct{ err *retry.Error }

// Error implements error.
func (e *roundTripError) Error() string { return e.err.Error() }

// Unwrap gives the *retry.Error.
func (e *roundTripError) Unwrap() error { return e.err }

// Timeout is as of a net.Error.
func (e *roundTripError) Timeout() bool {
	var last interface{ Timeout() bool }
	return errors.Is(e.err.Reason, context.DeadlineExceeded) || errors.As(e.err.Last, &last) && last.Timeout()
}

func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	for _, key := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if _, ok := req.Header[key]; ok {
			return true
		}
	}
	return false
}

// judge is for what a user's classifiers have no opinion on.
func judge(err error) retry.Decision {
	var status *StatusError
	if errors.As(err, &status) {
		switch status.Response.StatusCode {
		case http.StatusTooManyRequests: // refused before it was looked at
			return retry.AgainAfter(status.RetryAfter)
		case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return retry.UnsureAfter(status.RetryAfter)
		}
		return retry.Stop
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return retry.Stop
	}
	for _, mistake := range []string{"unsupported protocol scheme", "no Host in request URL"} { // net/http has no values for them
		if strings.Contains(err.Error(), mistake) {
			return retry.Stop
		}
	}
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") { // nothing was sent
		return retry.Again
	}
	return retry.Unsure
}

// exchange is one call of RoundTrip.
type exchange struct {
	base http.RoundTripper
	req  *http.Request
	sent bool           // the body belongs to base
	resp *http.Response // that nobody has closed or taken
	end  context.CancelCauseFunc
}

func (x *exchange) rewindable() bool {
	return x.req.Body == nil || x.req.Body == http.NoBody || x.req.GetBody != nil
}

// attempt is one request. Its context lives as long as the response's body, so it is not
// that of the attempt, whose values it has.
func (x *exchange) attempt(ctx context.Context) error {
	req := x.req
	if x.sent && req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return retry.Mark(err, retry.Stop)
		}
		req = new(http.Request)
		*req = *x.req
		req.Body = body
	}
	x.sent = true
	life, end := context.WithCancelCause(x.req.Context())
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	resp, err := x.base.RoundTrip(req.WithContext(withValues{life, context.WithoutCancel(ctx)})) //nolint:contextcheck // see above
	inTime := stop()
	if err != nil {
		end(nil)
		return x.once(err)
	}
	resp.Request = x.req
	resp.Body = until(resp.Body, end)
	if !inTime { // the body can be read no more
		_ = resp.Body.Close()
		return x.once(context.Cause(ctx))
	}
	x.resp, x.end = resp, end
	if resp.StatusCode < http.StatusBadRequest {
		return nil
	}
	return x.once(&StatusError{Response: resp, RetryAfter: retry.ParseRetryAfter(resp.Header.Get("Retry-After"))})
}

// once keeps a failure from being repeated if the body is gone, whatever a classifier says.
func (x *exchange) once(err error) error {
	switch {
	case x.rewindable():
		return err
	case judge(err) == retry.Stop: // an answer, which a budget counts
		return retry.Mark(err, retry.Stop)
	}
	return retry.Mark(err, retry.Unsure)
}

const (
	mostDrained  = 64 << 10
	longestDrain = 100 * time.Millisecond
)

// drain reads the response before the next attempt, so that its connection can be used again.
func (x *exchange) drain() {
	if x.resp == nil {
		return
	}
	resp, end := x.take(), x.end
	if resp.ContentLength <= mostDrained {
		late := time.AfterFunc(longestDrain, func() { end(nil) })
		defer late.Stop()
		_, _ = io.CopyN(io.Discard, resp.Body, mostDrained)
	}
	_ = resp.Body.Close()
}

func (x *exchange) take() *http.Response {
	resp := x.resp
	x.resp = nil
	return resp
}

// close is for what nobody has got, also if base or a hook panics.
func (x *exchange) close() {
	if !x.sent && x.req.Body != nil {
		_ = x.req.Body.Close()
	}
	if x.resp != nil {
		_ = x.take().Body.Close()
	}
}

// withValues is a context with the values of another, where nested loops find theirs.
type withValues struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c withValues) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// until ends the context of a request with its body.
func until(b io.ReadCloser, end context.CancelCauseFunc) io.ReadCloser {
	if b == nil || b == http.NoBody { // nil is of a Base that somebody wrote for a test
		end(nil)
		return http.NoBody
	}
	ending := &body{b, end}
	if w, ok := b.(io.Writer); ok { // of a connection that was upgraded
		return struct {
			*body
			io.Writer
		}{ending, w}
	}
	return ending
}

type body struct {
	io.ReadCloser
	end context.CancelCauseFunc
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end(nil)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.end(nil)
	return b.ReadCloser.Close()
}

package retryhttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
	"github.com/paddock-zk/paddock/retry/retryhttp"
)

// listening is a real server and a client of it, and counts its connections.
func listening(t *testing.T, p retry.Policy, handler http.HandlerFunc) (url string, client *http.Client, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	s := httptest.NewUnstartedServer(handler)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	client = &http.Client{Transport: &retryhttp.Transport{Base: new(http.Transport), Policy: p}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.Close()
	})
	return s.URL, client, connections
}

func TestConnectionIsUsedAgain(t *testing.T) {
	requests := 0
	var got []string
	url, client, connections := listening(t, retry.NTimes(5, 0), func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, string(b))
		if requests++; requests < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, strings.Repeat("busy ", 10_000))
			return
		}
		_, _ = io.WriteString(w, "done")
	})
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader("shoes"))
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "done", string(b))
	}
	assert.Equal(t, []string{"shoes", "shoes", "shoes", "shoes", "shoes"}, got)
	assert.EqualValues(t, 1, connections.Load())
}

// A connection that ends before the response is one more failure, and not the client's end.
func TestServerThatHangsUp(t *testing.T) {
	var requests atomic.Int64
	url, client, _ := listening(t, retry.NTimes(5, 0), func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) < 3 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, r.Header.Get("Idempotency-Key"))
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("shoes"))
	require.NoError(t, err)
	req.Header.Set("Idempotency-Key", "order-7")
	resp, err := client.Do(req)
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "order-7", string(b))
	assert.EqualValues(t, 3, requests.Load())
}

// A URL that no server can be found by is a mistake, which time does not cure.
func TestURLThatLeadsNowhere(t *testing.T) {
	client := &http.Client{Transport: &retryhttp.Transport{Base: new(http.Transport), Policy: retry.NTimes(5, time.Hour)}}
	for url, what := range map[string]string{
		"shop/orders":     `unsupported protocol scheme ""`,
		"ftp://shop/a":    `unsupported protocol scheme "ftp"`,
		"http:///orders":  "no Host in request URL",
		"https:///orders": "no Host in request URL",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		_, err = client.Do(req) //nolint:bodyclose // there is none
		require.ErrorContains(t, err, what)
	}
}

func TestCancelledWhileTheBodyIsRead(t *testing.T) {
	url, client, _ := listening(t, retry.NTimes(5, 0).WithAttemptTimeout(time.Minute), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	_, err = io.ReadFull(resp.Body, make([]byte, 5))
	require.NoError(t, err)
	cancel()
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, context.Canceled)
	assert.NoError(t, resp.Body.Close())
}

// What comes after 101 is read and written on the body.
func TestUpgrade(t *testing.T) {
	url, client, _ := listening(t, retry.OneTime(0), func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		_, _ = fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = fmt.Fprint(conn, line)
		_ = conn.Close()
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	conn, ok := resp.Body.(io.ReadWriteCloser)
	require.True(t, ok)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "hello\n", line)
	require.NoError(t, conn.Close())
}

func TestDefaultBase(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	client := &http.Client{Transport: new(retryhttp.Transport)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusNotFound, resp.StatusCode)
	client.CloseIdleConnections()
	(&http.Client{Transport: &retryhttp.Transport{Base: newServer()}}).CloseIdleConnections() // has none
}

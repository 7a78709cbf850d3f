package retryhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/retry"
	"github.com/paddock-zk/paddock/retry/retryhttp"
)

// One client for one dependency. The server is busy once and fails once, so an order is
// sent three times: it has a key by which the server knows it again.
func ExampleTransport() {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch requests++; requests {
		case 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		default:
			_, _ = fmt.Fprintf(w, "order %s is taken", r.Header.Get("Idempotency-Key"))
		}
	}))
	defer server.Close()

	client := &http.Client{Transport: &retryhttp.Transport{
		Base: server.Client().Transport,
		Policy: retry.ExponentialBackoff(time.Millisecond, 4).Named("orders").
			WithJitter(retry.FullJitter).
			WithAttemptTimeout(time.Second).
			WithBudget(retry.NewBudget(20, 0.1)),
	}}

	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+"/orders", strings.NewReader("a fence"))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Idempotency-Key", "7f3a")
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	fmt.Println(string(text), err, "after", requests, "requests")
	// Output: order 7f3a is taken <nil> after 3 requests
}

package retry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/paddock-zk/paddock/retry"
)

// statusError is an answer that is not a success.
type statusError struct {
	Code  int
	After time.Duration // what Retry-After asks for
}

func (e *statusError) Error() string { return http.StatusText(e.Code) }

// judgeStatus is for every HTTP dependency. Errors without a status, such as
// a refused connection, are left to the next classifier.
func judgeStatus(e *statusError) retry.Decision {
	switch {
	case e.Code == http.StatusTooManyRequests: // refused before it was looked at
		return retry.AgainAfter(e.After)
	case e.Code >= http.StatusInternalServerError: // 503 may ask for a delay, too
		return retry.UnsureAfter(e.After) // Again for what is idempotent
	}
	return retry.Stop
}

// inventory is one policy per dependency, in a package variable.
var inventory = retry.ExponentialBackoff(time.Millisecond, 4).Named("inventory").
	WithJitter(retry.FullJitter).
	WithAttemptTimeout(time.Second).
	WithBudget(retry.NewBudget(20, 0.1)).
	WithClassifier(retry.As(judgeStatus)).
	WithFallback(func(error) retry.Decision { return retry.Unsure }) // the request may have arrived

// stock reads the number of pieces of an item. The body is read inside op,
// whose context ends with it.
func stock(ctx context.Context, client *http.Client, url string) (int, error) {
	return retry.DoValue(ctx, inventory, func(ctx context.Context) (n int, err error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, retry.Mark(err, retry.Stop)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return 0, &statusError{Code: resp.StatusCode, After: retry.ParseRetryAfter(resp.Header.Get("Retry-After"))}
		}
		err = json.NewDecoder(resp.Body).Decode(&n)
		return n, err
	}, retry.Idempotent()) // a GET may be repeated
}

// An HTTP client that repeats what may be repeated: here the server is busy
// twice, and an item that does not exist is asked for once.
func Example_http() {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch {
		case r.URL.Path != "/stock/fence":
			http.NotFound(w, r)
		case requests == 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case requests == 2:
			w.Header().Set("Retry-After", time.Now().UTC().Format(http.TimeFormat)) // a date, which has come
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, 12)
		}
	}))
	defer server.Close()

	n, err := stock(context.Background(), server.Client(), server.URL+"/stock/fence")
	fmt.Println(n, err, "after", requests, "requests")

	requests = 0
	_, err = stock(context.Background(), server.Client(), server.URL+"/stock/unicorn")
	var e *retry.Error
	fmt.Println(errors.As(err, &e), e.Reason, e.Last, "after", requests, "request")
	// Output:
	// 12 <nil> after 3 requests
	// true not retryable Not Found after 1 request
}

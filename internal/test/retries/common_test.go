package retries

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// What all libraries are given is here: one attempt of each task, and its errors.

type statusError struct {
	Code  int
	After string
}

func (e *statusError) Error() string { return fmt.Sprint("HTTP ", e.Code) }

func ask(ctx context.Context, c *http.Client, method, url string) (n int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return 0, &statusError{resp.StatusCode, resp.Header.Get("Retry-After")}
	}
	return n, json.NewDecoder(resp.Body).Decode(&n)
}

// seconds is how people read Retry-After.
func seconds(after string) time.Duration {
	n, _ := strconv.Atoi(after)
	return time.Duration(n) * time.Second
}

type codeError string

func (e codeError) Error() string { return string(e) }

const (
	exhausted   = codeError("ResourceExhausted") // refused before anything happened
	unavailable = codeError("Unavailable")       // may have happened
	invalid     = codeError("InvalidArgument")
)

type library interface {
	http(ctx context.Context, c *http.Client, method, url string) (int, error)
	sql(ctx context.Context, tx func(context.Context) error) error
	rpc(ctx context.Context, idempotent bool, call func(context.Context) (string, error)) (string, error)
	part(ctx context.Context, put func(context.Context) error) error
	hedge(ctx context.Context, read func(context.Context) (string, error)) (string, error)
}

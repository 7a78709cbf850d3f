package retries

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

type backoff5 struct{}

// task http
func (backoff5) http(ctx context.Context, c *http.Client, method, url string) (int, error) {
	return backoff.Retry(ctx, func() (int, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		n, err := ask(ctx, c, method, url)
		safe := method == http.MethodGet
		var e *statusError
		switch {
		case err == nil:
			return n, nil
		case errors.As(err, &e) && e.After != "" && (e.Code == 429 || e.Code >= 500 && safe):
			return 0, backoff.RetryAfter(int(seconds(e.After) / time.Second))
		case errors.As(err, &e) && (e.Code == 429 || e.Code >= 500 && safe):
			return 0, err
		case errors.As(err, &e) || !safe:
			return 0, backoff.Permanent(err)
		}
		return 0, err
	}, backoff.WithBackOff(growing5(50*time.Millisecond, time.Second)), backoff.WithMaxTries(5))
}

func growing5(first, most time.Duration) backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = first, most
	return b
}

// task sql
func (backoff5) sql(ctx context.Context, tx func(context.Context) error) error {
	_, err := backoff.Retry(ctx, func() (any, error) {
		err := tx(ctx)
		var e *pgconn.PgError
		if err != nil && (!errors.As(err, &e) || !slices.Contains([]string{"40001", "40P01"}, e.Code)) {
			return nil, backoff.Permanent(err)
		}
		return nil, err
	}, backoff.WithBackOff(growing5(time.Millisecond, 100*time.Millisecond)), backoff.WithMaxTries(51))
	return err
}

// task rpc
func (backoff5) rpc(ctx context.Context, idempotent bool, call func(context.Context) (string, error)) (string, error) {
	return backoff.Retry(ctx, func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		s, err := call(ctx)
		if err != nil && !errors.Is(err, exhausted) && (errors.Is(err, invalid) || !idempotent) {
			return "", backoff.Permanent(err)
		}
		return s, err
	}, backoff.WithBackOff(growing5(50*time.Millisecond, time.Second)), backoff.WithMaxTries(5))
}

// task upload
func (backoff5) part(ctx context.Context, put func(context.Context) error) error {
	_, err := backoff.Retry(ctx, func() (any, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return nil, put(ctx)
	}, backoff.WithBackOff(growing5(50*time.Millisecond, time.Second)), backoff.WithMaxTries(5))
	return err
}

// task hedge
func (backoff5) hedge(ctx context.Context, read func(context.Context) (string, error)) (string, error) {
	return backoff.Retry(ctx, func() (string, error) { return hedged(ctx, read, 20*time.Millisecond) },
		backoff.WithBackOff(backoff.NewConstantBackOff(50*time.Millisecond)), backoff.WithMaxTries(5))
}

// end

package retries

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/paddock-zk/paddock/retry"
)

type paddock struct{}

// task http
var shop = retry.BoundedExponentialBackoff(50*time.Millisecond, time.Second, 4).Named("shop").
	WithJitter(retry.FullJitter).
	WithAttemptTimeout(time.Second).
	WithClassifier(retry.As(func(e *statusError) retry.Decision {
		switch {
		case e.Code == http.StatusTooManyRequests:
			return retry.AgainAfter(retry.ParseRetryAfter(e.After))
		case e.Code >= 500:
			return retry.UnsureAfter(retry.ParseRetryAfter(e.After))
		}
		return retry.Stop
	})).
	WithFallback(func(error) retry.Decision { return retry.Unsure })

func (paddock) http(ctx context.Context, c *http.Client, method, url string) (int, error) {
	var opts []retry.Option
	if method == http.MethodGet {
		opts = append(opts, retry.Idempotent())
	}
	return retry.DoValue(ctx, shop, func(ctx context.Context) (int, error) { return ask(ctx, c, method, url) }, opts...)
}

// task sql
var ledger = retry.BoundedExponentialBackoff(time.Millisecond, 100*time.Millisecond, 50).Named("ledger").
	WithJitter(retry.FullJitter).
	WithClassifier(retry.As(func(e *pgconn.PgError) retry.Decision {
		if slices.Contains([]string{"40001", "40P01"}, e.Code) {
			return retry.Again
		}
		return retry.Stop
	})).
	WithFallback(func(error) retry.Decision { return retry.Unsure })

func (paddock) sql(ctx context.Context, tx func(context.Context) error) error {
	return retry.Do(ctx, ledger, tx)
}

// task rpc
var search = retry.BoundedExponentialBackoff(50*time.Millisecond, time.Second, 4).Named("search").
	WithJitter(retry.FullJitter).
	WithAttemptTimeout(time.Second).
	WithClassifier(retry.First(retry.Except(invalid), func(err error) retry.Decision {
		if errors.Is(err, exhausted) {
			return retry.Again
		}
		return retry.Unsure
	}))

func (paddock) rpc(ctx context.Context, idempotent bool, call func(context.Context) (string, error)) (string, error) {
	if idempotent {
		return retry.DoValue(ctx, search, call, retry.Idempotent())
	}
	return retry.DoValue(ctx, search, call)
}

// task upload
var store = retry.BoundedExponentialBackoff(50*time.Millisecond, time.Second, 4).Named("store").
	WithJitter(retry.FullJitter).
	WithAttemptTimeout(time.Second).
	WithBudget(retry.NewBudget(3, 0.2))

func (paddock) part(ctx context.Context, put func(context.Context) error) error {
	return retry.Do(ctx, store, put, retry.Idempotent())
}

// task hedge
var replicas = retry.NTimes(4, 50*time.Millisecond).Named("replicas").WithBudget(retry.NewBudget(3, 0.2))

func (paddock) hedge(ctx context.Context, read func(context.Context) (string, error)) (string, error) {
	return retry.DoValue(ctx, replicas, retry.Hedge(read, 20*time.Millisecond, 1, nil), retry.Idempotent())
}

// end

func (paddock) afresh() {
	store, replicas = store.WithBudget(retry.NewBudget(3, 0.2)), replicas.WithBudget(retry.NewBudget(3, 0.2))
}

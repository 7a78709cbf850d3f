package retries

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	avast "github.com/avast/retry-go/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

type avastGo struct{}

// task http
func (avastGo) http(ctx context.Context, c *http.Client, method, url string) (int, error) {
	return avast.NewWithData[int](avast.Context(ctx), avast.Attempts(5), avast.Delay(50*time.Millisecond),
		avast.WrapContextErrorWithLastError(true),
		avast.RetryIf(func(err error) bool {
			var e *statusError
			if errors.As(err, &e) {
				return e.Code == 429 || e.Code >= 500 && method == http.MethodGet
			}
			return method == http.MethodGet
		}),
		avast.DelayType(func(n uint, err error, config avast.DelayContext) time.Duration {
			var e *statusError
			if errors.As(err, &e) && e.After != "" {
				return seconds(e.After)
			}
			return min(time.Second, avast.FullJitterBackoffDelay(n, err, config))
		})).Do(func() (int, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return ask(ctx, c, method, url)
	})
}

// task sql
func (avastGo) sql(ctx context.Context, tx func(context.Context) error) error {
	return avast.New(avast.Context(ctx), avast.Attempts(51), avast.Delay(time.Millisecond), avast.MaxDelay(100*time.Millisecond),
		avast.DelayType(avast.FullJitterBackoffDelay),
		avast.RetryIf(func(err error) bool {
			var e *pgconn.PgError
			return errors.As(err, &e) && slices.Contains([]string{"40001", "40P01"}, e.Code)
		})).Do(func() error { return tx(ctx) })
}

// task rpc
func (avastGo) rpc(ctx context.Context, idempotent bool, call func(context.Context) (string, error)) (string, error) {
	return avast.NewWithData[string](avast.Context(ctx), avast.Attempts(5), avast.Delay(50*time.Millisecond), avast.MaxDelay(time.Second),
		avast.DelayType(avast.FullJitterBackoffDelay),
		avast.RetryIf(func(err error) bool { return errors.Is(err, exhausted) || !errors.Is(err, invalid) && idempotent }),
	).Do(func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return call(ctx)
	})
}

// task upload
var avThrottle = avast.NewFixedTokenBucketThrottle(avast.FixedTokenBucketThrottleConfig{MaxCapacity: 15})

func (avastGo) part(ctx context.Context, put func(context.Context) error) error {
	return avast.New(avast.Context(ctx), avast.Attempts(5), avast.Delay(50*time.Millisecond), avast.MaxDelay(time.Second),
		avast.DelayType(avast.FullJitterBackoffDelay), avast.WithThrottle(avThrottle),
	).Do(func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return put(ctx)
	})
}

// task hedge
func (avastGo) hedge(ctx context.Context, read func(context.Context) (string, error)) (string, error) {
	return avast.NewWithData[string](avast.Context(ctx), avast.Attempts(5), avast.Delay(50*time.Millisecond), avast.DelayType(avast.FixedDelay)).
		Do(func() (string, error) { return hedged(ctx, read, 20*time.Millisecond) })
}

// end

func (avastGo) afresh() {
	avThrottle = avast.NewFixedTokenBucketThrottle(avast.FixedTokenBucketThrottleConfig{MaxCapacity: 15})
}

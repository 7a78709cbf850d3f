package retries

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/jackc/pgx/v5/pgconn"
)

type failsafeGo struct{}

// task http
func shopPolicy(safe bool) failsafe.Executor[int] {
	return failsafe.With(retrypolicy.NewBuilder[int]().WithMaxRetries(4).
		WithBackoff(50*time.Millisecond, time.Second).WithJitterFactor(0.5).
		HandleIf(func(_ int, err error) bool {
			var e *statusError
			if errors.As(err, &e) {
				return e.Code == http.StatusTooManyRequests || e.Code >= 500 && safe
			}
			return err != nil && safe
		}).
		WithDelayFunc(func(exec failsafe.ExecutionAttempt[int]) time.Duration {
			var e *statusError
			if errors.As(exec.LastError(), &e) && e.After != "" {
				return seconds(e.After)
			}
			return -1
		}).Build(), timeout.New[int](time.Second))
}

var shopSafe, shopUnsafe = shopPolicy(true), shopPolicy(false)

func (failsafeGo) http(ctx context.Context, c *http.Client, method, url string) (int, error) {
	executor := shopUnsafe
	if method == http.MethodGet {
		executor = shopSafe
	}
	return executor.WithContext(ctx).GetWithExecution(func(exec failsafe.Execution[int]) (int, error) {
		return ask(exec.Context(), c, method, url)
	})
}

// task sql
var fsLedger = failsafe.With(retrypolicy.NewBuilder[any]().WithMaxRetries(50).
	WithBackoff(time.Millisecond, 100*time.Millisecond).WithJitterFactor(0.5).
	HandleIf(func(_ any, err error) bool {
		var e *pgconn.PgError
		return errors.As(err, &e) && slices.Contains([]string{"40001", "40P01"}, e.Code)
	}).Build())

func (failsafeGo) sql(ctx context.Context, tx func(context.Context) error) error {
	return fsLedger.WithContext(ctx).RunWithExecution(func(exec failsafe.Execution[any]) error { return tx(exec.Context()) })
}

// task rpc
func searchPolicy(safe bool) failsafe.Executor[string] {
	return failsafe.With(retrypolicy.NewBuilder[string]().WithMaxRetries(4).
		WithBackoff(50*time.Millisecond, time.Second).WithJitterFactor(0.5).
		HandleIf(func(_ string, err error) bool {
			return errors.Is(err, exhausted) || err != nil && !errors.Is(err, invalid) && safe
		}).Build(), timeout.New[string](time.Second))
}

var fsSearch, fsSearchOnce = searchPolicy(true), searchPolicy(false)

func (failsafeGo) rpc(ctx context.Context, idempotent bool, call func(context.Context) (string, error)) (string, error) {
	executor := fsSearchOnce
	if idempotent {
		executor = fsSearch
	}
	return executor.WithContext(ctx).GetWithExecution(func(exec failsafe.Execution[string]) (string, error) { return call(exec.Context()) })
}

// task upload
var fsStore = failsafe.With[any](retrypolicy.NewBuilder[any]().WithMaxRetries(4).
	WithBackoff(50*time.Millisecond, time.Second).WithJitterFactor(0.5).
	WithBudget(budget.New()).Build(), timeout.New[any](time.Second))

func (failsafeGo) part(ctx context.Context, put func(context.Context) error) error {
	return fsStore.WithContext(ctx).RunWithExecution(func(exec failsafe.Execution[any]) error { return put(exec.Context()) })
}

// task hedge
var (
	fsBudget   = budget.New()
	fsReplicas = failsafe.With[string](
		retrypolicy.NewBuilder[string]().WithMaxRetries(4).WithDelay(50*time.Millisecond).WithBudget(fsBudget).Build(),
		hedgepolicy.NewBuilderWithDelay[string](20*time.Millisecond).WithMaxHedges(1).WithBudget(fsBudget).
			CancelIf(func(_ string, err error) bool { return err == nil }).Build())
)

func (failsafeGo) hedge(ctx context.Context, read func(context.Context) (string, error)) (string, error) {
	return fsReplicas.WithContext(ctx).GetWithExecution(func(exec failsafe.Execution[string]) (string, error) { return read(exec.Context()) })
}

// end

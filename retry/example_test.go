package retry_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/paddock-zk/paddock/retry"
)

var errBusy = errors.New("busy")

func Example() {
	orders := retry.ExponentialBackoff(time.Millisecond, 4).Named("orders").WithJitter(retry.FullJitter)

	calls := 0
	err := retry.Do(context.Background(), orders, func(context.Context) error {
		if calls++; calls < 3 {
			return errBusy
		}
		return nil
	})
	fmt.Println(calls, err)
	// Output: 3 <nil>
}

func ExampleDoValue() {
	n, err := retry.DoValue(context.Background(), retry.OneTime(time.Millisecond), func(context.Context) (int, error) {
		return 42, nil
	})
	fmt.Println(n, err)
	// Output: 42 <nil>
}

func ExampleError() {
	orders := retry.NTimes(2, 0).Named("orders")
	err := retry.Do(context.Background(), orders, func(context.Context) error { return errBusy })

	var e *retry.Error
	if errors.As(err, &e) {
		fmt.Println(e.Policy, e.Attempts, e.Reason, e.Last)
	}
	fmt.Println(errors.Is(err, retry.ErrExhausted), errors.Is(err, errBusy))
	// Output:
	// orders 3 attempts used up busy
	// true true
}

// A failure may be judged where it is made.
func ExampleMark() {
	errGone := errors.New("gone")
	err := retry.Do(context.Background(), retry.NTimes(2, 0), func(context.Context) error {
		return retry.Mark(errGone, retry.Stop)
	})
	fmt.Println(errors.Is(err, retry.ErrStopped), errors.Is(err, errGone))
	// Output: true true
}

// A write whose reply is lost may have happened. It is repeated only if that
// does no harm.
func ExampleIdempotent() {
	errNoReply := errors.New("no reply")
	p := retry.NTimes(2, 0).WithClassifier(func(err error) retry.Decision {
		if errors.Is(err, errNoReply) {
			return retry.Unsure
		}
		return retry.Pass
	})
	write := func(context.Context) error { return errNoReply }

	var e *retry.Error
	errors.As(retry.Do(context.Background(), p, write), &e)
	fmt.Println(e.Attempts, e.Reason)
	errors.As(retry.Do(context.Background(), p, write, retry.Idempotent()), &e)
	fmt.Println(e.Attempts, e.Reason)
	// Output:
	// 1 may have taken effect
	// 3 attempts used up
}

func ExamplePolicy_Next() {
	p := retry.BoundedExponentialBackoff(100*time.Millisecond, time.Second, 5).WithJitter(retry.NoJitter)
	for retries := 0; ; retries++ {
		delay, ok := p.Next(retries, 0)
		if !ok {
			break
		}
		fmt.Print(delay, " ")
	}
	// Output: 100ms 300ms 700ms 1s 1s
}

func ExampleParse() {
	p, err := retry.Parse("exponential base=100ms retries=5 max=10s jitter=full elapsed=1m")
	fmt.Println(p, err)

	_, err = retry.Parse("exponential base=100 retries=5")
	fmt.Println(err)
	// Output:
	// exponential base=100ms retries=5 max=10s jitter=full elapsed=1m <nil>
	// retry policy "exponential base=100 retries=5": base=100 is not a duration such as 250ms or 1m30s
}

func ExamplePolicy_UnmarshalText_flag() {
	orders := retry.ExponentialBackoff(50*time.Millisecond, 4).Named("orders")
	flags := flag.NewFlagSet("app", flag.ContinueOnError)
	flags.TextVar(&orders, "orders-retry", orders, "retry policy for orders")

	err := flags.Parse([]string{"-orders-retry", "ntimes retries=2 sleep=1s"})
	fmt.Println(orders, err)
	// Output: ntimes retries=2 sleep=1s <nil>
}

// A hundred callers fail at once. Together they retry ten times, not three
// hundred times.
func ExampleBudget() {
	p := retry.NTimes(3, 0).WithBudget(retry.NewBudget(10, 0.1))
	calls := 0
	for range 100 {
		_ = retry.Do(context.Background(), p, func(context.Context) error { calls++; return errBusy })
	}
	fmt.Println(calls)
	// Output: 110
}

// The dependency answers, but what it says means that one has to ask again.
func ExampleWithResult() {
	type report struct{ Status string }
	reports := retry.WithResult(retry.NTimes(3, 0).Named("reports"), func(r report) retry.Decision {
		if r.Status == "pending" {
			return retry.Again
		}
		return retry.Pass
	})

	calls := 0
	r, err := retry.DoValue(context.Background(), reports, func(context.Context) (report, error) {
		if calls++; calls < 3 {
			return report{"pending"}, nil
		}
		return report{"ready"}, nil
	})
	fmt.Println(calls, r, err)
	// Output: 3 {ready} <nil>
}

// A gauge shows what is left, and one line says that nothing is.
func ExampleBudget_OnEmpty() {
	budget := retry.NewBudget(10, 0.1).OnEmpty(func(_ context.Context, a retry.Attempt) {
		fmt.Printf("no retry left for %s: %v\n", a.Policy, a.Err)
	})
	orders := retry.NTimes(3, 0).Named("orders").WithBudget(budget)
	for range 100 {
		_ = retry.Do(context.Background(), orders, func(context.Context) error { return errBusy })
	}
	_ = retry.Do(context.Background(), orders, func(context.Context) error { return nil })
	fmt.Println(budget.Left())
	// Output:
	// no retry left for orders: busy
	// 0.1
}

// One of two replicas hangs. The second call costs one retry of the budget.
func ExampleHedge() {
	budget := retry.NewBudget(20, 0.1)
	reads := retry.NTimes(3, 0).Named("reads").WithBudget(budget)

	replicas := make(chan string, 2)
	replicas <- "slow"
	replicas <- "fast"
	read := func(ctx context.Context) (string, error) {
		replica := <-replicas
		if replica == "slow" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "from the " + replica + " one", nil
	}
	value, err := retry.DoValue(context.Background(), reads, retry.Hedge(read, 5*time.Millisecond, 1, nil), retry.Idempotent())
	fmt.Println(value, err, budget.Left())
	// Output: from the fast one <nil> 19.1
}

// Three retries outside and three inside make four calls, not sixteen.
func ExampleDo_nested() {
	p := retry.NTimes(3, 0)
	calls := 0
	_ = retry.Do(context.Background(), p, func(ctx context.Context) error {
		return retry.Do(ctx, p, func(context.Context) error { calls++; return errBusy })
	})
	fmt.Println(calls)

	calls = 0
	_ = retry.Do(context.Background(), p, func(ctx context.Context) error {
		return retry.Do(retry.Detach(ctx), p, func(context.Context) error { calls++; return errBusy })
	})
	fmt.Println(calls)
	// Output:
	// 4
	// 16
}

// Times are left out, since they differ from run to run.
func ExampleLogTo() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "elapsed" {
			return slog.Attr{}
		}
		return a
	}}))
	p := retry.OneTime(time.Millisecond).Named("orders").OnRetry(retry.LogTo(logger))
	_ = retry.Do(context.Background(), p, func(context.Context) error { return errBusy })
	// Output: level=WARN msg=retrying policy=orders attempt=1 delay=1ms error=busy
}

func ExamplePolicy_OnRetry() {
	p := retry.NTimes(2, time.Millisecond).Named("orders").
		OnRetry(func(_ context.Context, a retry.Attempt) {
			fmt.Printf("%s: attempt %d: %v, again in %v\n", a.Policy, a.Number, a.Err, a.Delay)
		}).
		OnDone(func(_ context.Context, a retry.Attempt) {
			fmt.Printf("%s: done after %d, success %t\n", a.Policy, a.Number, a.Err == nil)
		})
	calls := 0
	_ = retry.Do(context.Background(), p, func(context.Context) error {
		if calls++; calls == 1 {
			return errBusy
		}
		return nil
	})
	// Output:
	// orders: attempt 1: busy, again in 1ms
	// orders: done after 2, success true
}

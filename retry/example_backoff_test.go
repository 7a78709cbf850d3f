package retry_test

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/paddock-zk/paddock/retry"
)

func ExampleFromBackOff() {
	p := retry.FromBackOff(func() backoff.BackOff {
		return backoff.WithMaxRetries(backoff.NewConstantBackOff(time.Millisecond), 2)
	})
	calls := 0
	_ = retry.Do(context.Background(), p, func(context.Context) error { calls++; return errBusy })
	fmt.Println(calls)
	// Output: 3
}

func ExampleToBackOff() {
	p := retry.NTimes(2, time.Millisecond)
	calls := 0
	err := backoff.Retry(func() error { calls++; return errBusy }, retry.ToBackOff(p))
	fmt.Println(calls, err)
	// Output: 3 busy
}

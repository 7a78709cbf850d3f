package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/paddock-zk/paddock/retry"
)

// A classifier says which failures are worth another attempt.
func ExampleClassifier() {
	errBusy := errors.New("busy")
	policy := retry.Forever(time.Millisecond).WithClassifier(retry.On(errBusy))

	attempts := 0
	err := retry.Do(context.Background(), policy, func(context.Context) error {
		if attempts++; attempts < 3 {
			return errBusy
		}
		return io.ErrUnexpectedEOF // is not worth one
	})
	fmt.Println(attempts, errors.Is(err, io.ErrUnexpectedEOF))
	// Output: 3 true
}

// A hook sees each attempt that failed and is followed by another.
func ExampleAttempt() {
	policy := retry.Forever(time.Millisecond).Named("load").
		WithClassifier(retry.On(io.ErrUnexpectedEOF)).
		OnRetry(func(_ context.Context, a retry.Attempt) { fmt.Println(a.Policy, a.Number, a.Err) })

	first := true
	err := retry.Do(context.Background(), policy, func(context.Context) error {
		if first {
			first = false
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// load 1 unexpected EOF
	// <nil>
}

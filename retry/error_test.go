package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

func TestErrorText(t *testing.T) {
	cases := []struct {
		err  retry.Error
		want string
	}{
		{retry.Error{Policy: "orders", Attempts: 3, Elapsed: 1234567 * time.Microsecond, Reason: retry.ErrExhausted, Last: io.EOF},
			"retry orders: attempts used up after 3 attempts in 1.235s: EOF"},
		{retry.Error{Attempts: 1, Reason: retry.ErrStopped, Last: io.EOF}, "retry: not retryable after 1 attempt in 0s: EOF"},
		{retry.Error{Reason: context.Canceled}, "retry: context canceled after 0 attempts in 0s"},
		{retry.Error{Attempts: 1, Reason: context.Canceled, Last: context.Canceled}, "retry: context canceled after 1 attempt in 0s"},
		{retry.Error{Attempts: 2, Reason: context.Canceled, Last: fmt.Errorf("%w: no answer", context.Canceled)},
			"retry: context canceled after 2 attempts in 0s: no answer"},
		{retry.Error{}, "retry: <nil> after 0 attempts in 0s"},
	}
	for _, tc := range cases {
		assert.EqualError(t, &tc.err, tc.want)
	}
}

func TestErrorMatchesReasonAndLast(t *testing.T) {
	err := retry.Do(t.Context(), retry.Policy{}, fails(&codeError{503}))
	assert.ErrorIs(t, err, retry.ErrExhausted)
	assert.NotErrorIs(t, err, retry.ErrStopped)
	var code *codeError
	require.ErrorAs(t, err, &code)
	assert.Empty(t, (&retry.Error{}).Unwrap())
}

func TestDoWithoutContextOrOp(t *testing.T) {
	p := retry.OneTime(0).Named("orders").OnDone(func(context.Context, retry.Attempt) { t.Error("hook called") })
	var none context.Context
	calls := 0
	op := func(context.Context) error { calls++; return nil }
	value := func(context.Context) (int, error) { calls++; return 1, nil }

	assert.EqualError(t, retry.Do(none, p, op), "retry orders: context is nil after 0 attempts in 0s")
	assert.EqualError(t, retry.Do(t.Context(), p, nil), "retry orders: op is nil after 0 attempts in 0s")
	_, err := retry.DoValue(none, p, value)
	assert.ErrorContains(t, err, "context is nil")
	_, err = retry.DoValue[int](t.Context(), p, nil)
	assert.ErrorContains(t, err, "op is nil")
	var e *retry.Error
	assert.ErrorAs(t, err, &e)
	assert.Zero(t, calls)
	assert.Nil(t, retry.Detach(none))
}

func TestDoValue(t *testing.T) {
	failure := errors.New("failure")
	n, err := retry.DoValue(t.Context(), retry.Policy{}, func(context.Context) (int, error) { return 7, nil })
	assert.NoError(t, err)
	assert.Equal(t, 7, n)
	n, err = retry.DoValue(t.Context(), retry.Policy{}, func(context.Context) (int, error) { return 7, failure })
	assert.ErrorIs(t, err, failure)
	assert.Zero(t, n, "a failed attempt's result is not handed out")
}

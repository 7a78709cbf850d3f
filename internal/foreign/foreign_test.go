package foreign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errMeant = errors.New("means something here")

func init() { Reserve(errMeant) }

type mine struct{ error }

func TestContextEndMatchesNothingOfTheCause(t *testing.T) {
	require.NoError(t, ContextEnd(t.Context()))
	for name, tc := range map[string]struct {
		cause error
		text  string
	}{
		"none":       {nil, "context canceled"},
		"itself":     {context.Canceled, "context canceled"},
		"a sentinel": {io.EOF, "context canceled (cause: EOF)"},
		"a type":     {&mine{io.EOF}, "context canceled (cause: EOF)"},
		"a deadline": {context.DeadlineExceeded, "context canceled (cause: context deadline exceeded)"},
		"wrapped":    {fmt.Errorf("enough: %w", context.Canceled), "context canceled (cause: enough: context canceled)"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(tc.cause)
			err := ContextEnd(ctx)
			require.ErrorIs(t, err, context.Canceled)
			require.EqualError(t, err, tc.text)
			assert.NotErrorIs(t, err, io.EOF)
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.False(t, errors.As(err, new(*mine)))
		})
	}
	late, cancel := context.WithTimeoutCause(t.Context(), 0, io.EOF)
	defer cancel()
	err := ContextEnd(late)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, context.Canceled)
	assert.EqualError(t, err, "context deadline exceeded (cause: EOF)")
}

// strange is a context that ends with an error of its own.
type strange struct {
	context.Context
	err error
}

func (c strange) Err() error { return c.err }

func TestContextOfAnotherKind(t *testing.T) {
	err := ContextEnd(strange{t.Context(), errMeant})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, errMeant)
	require.ErrorContains(t, err, errMeant.Error())
	err = ContextEnd(strange{t.Context(), fmt.Errorf("late: %w", context.DeadlineExceeded)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestWrapHidesWhatMeansSomethingHere(t *testing.T) {
	require.NoError(t, Wrap(nil))
	outer := Wrap(fmt.Errorf("dial: %w, %w, %w, %w, %w", errMeant, context.Canceled, &mine{io.EOF}, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, &net.DNSError{}))
	for _, err := range []error{outer, fmt.Errorf("not connected: %w", outer)} {
		require.ErrorContains(t, err, errMeant.Error())
		assert.NotErrorIs(t, err, errMeant)
		assert.NotErrorIs(t, err, context.Canceled)
		assert.False(t, errors.As(err, new(*mine)), "a type of this module")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		assert.ErrorAs(t, err, new(*net.OpError))
		assert.ErrorAs(t, err, new(*net.DNSError))
		assert.ErrorAs(t, err, new(interface{ Timeout() bool }))
		assert.ErrorAs(t, err, new(net.Error))
	}
}

// Errors that cannot be compared are compared with each other nowhere.
func TestErrorThatCannotBeCompared(t *testing.T) {
	assert.NotErrorIs(t, Wrap(uncomparable{[]error{io.EOF}}), uncomparable{[]error{io.EOF}})
}

type uncomparable struct{ all []error }

func (uncomparable) Error() string { return "several" }

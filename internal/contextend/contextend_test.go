package contextend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type mine struct{ error }

func TestContextEndMatchesNothingOfTheCause(t *testing.T) {
	require.NoError(t, Of(t.Context()))
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
			err := Of(ctx)
			require.ErrorIs(t, err, context.Canceled)
			require.EqualError(t, err, tc.text)
			assert.NotErrorIs(t, err, io.EOF)
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.False(t, errors.As(err, new(*mine)))
		})
	}
	late, cancel := context.WithTimeoutCause(t.Context(), 0, io.EOF)
	defer cancel()
	err := Of(late)
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
	err := Of(strange{t.Context(), io.EOF})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, io.EOF)
	require.ErrorContains(t, err, "(cause: EOF)")
	err = Of(strange{t.Context(), fmt.Errorf("late: %w", context.DeadlineExceeded)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

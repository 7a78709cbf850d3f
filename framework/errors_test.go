package framework

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

func TestClassify(t *testing.T) {
	op := func(err error) error { return &OpError{Op: "get", Path: "/a", Err: err} }
	for _, tc := range []struct {
		err  error
		want retry.Decision
	}{
		{op(ErrNoNode), retry.Stop},
		{op(ErrNotConnected), retry.Again},
		{op(ErrOutcomeUnknown), retry.Unsure},
		{op(ErrClosed), retry.Stop},
		{ErrClosed, retry.Stop},
		{op(fmt.Errorf("%w: %w", ErrOutcomeUnknown, ErrClosed)), retry.Stop},
		{errors.New("somebody else's"), retry.Pass},
	} {
		assert.Equal(t, tc.want, Classify(tc.err), "%v", tc.err)
	}
	assert.True(t, Retryable(op(ErrNotConnected)))
	assert.False(t, Retryable(op(ErrOutcomeUnknown)))
	assert.False(t, Retryable(nil))
	assert.True(t, Ambiguous(op(ErrOutcomeUnknown)))
	assert.False(t, Ambiguous(op(ErrNoNode)))
}

// What a server has said counts, although the context ended at the same moment.
// The cause of a context is told, and not matched: it is no answer of a server.
func TestContextError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	require.NoError(t, ContextError(ctx))
	cancel(ErrNoNode)
	err := ContextError(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrNoNode)
	require.ErrorContains(t, err, ErrNoNode.Error())
}

func TestWhatIsToldOfOneAttempt(t *testing.T) {
	offline := fmt.Errorf("%w: %w", context.Canceled, ErrNotConnected)
	lost := fmt.Errorf("%w: connection lost", ErrNotConnected)
	for name, tc := range map[string]struct {
		given retry.Error
		want  error // nil for all of it
	}{
		"ended before":            {retry.Error{Reason: context.Canceled}, context.Canceled},
		"an answer":               {retry.Error{Attempts: 1, Reason: retry.ErrStopped, Last: ErrNoNode}, ErrNoNode},
		"a lost reply":            {retry.Error{Attempts: 1, Reason: retry.ErrUnsure, Last: ErrOutcomeUnknown}, ErrOutcomeUnknown},
		"an answer as it ended":   {retry.Error{Attempts: 1, Reason: context.Canceled, Last: ErrNoNode}, ErrNoNode},
		"ended, and not answered": {retry.Error{Attempts: 1, Reason: context.Canceled, Last: offline}, offline},
		"lost as it ended":        {retry.Error{Attempts: 1, Reason: context.Canceled, Last: lost}, nil},
		"used up":                 {retry.Error{Attempts: 1, Reason: retry.ErrExhausted, Last: lost}, nil},
		"several":                 {retry.Error{Attempts: 2, Reason: retry.ErrStopped, Last: ErrNoNode}, nil},
	} {
		if tc.want == nil {
			tc.want = &tc.given
		}
		assert.Equal(t, tc.want, plainly(&tc.given), name)
	}
}

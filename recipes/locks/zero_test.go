package locks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// A context that is missing ends nothing but what it was to begin.
func TestNilContextOfAHold(t *testing.T) {
	hold, _ := locks.NewHold(nil, nil) //nolint:staticcheck // what nil does
	assert.Equal(t, "HELD", fmt.Sprint(hold))
	bound, cancel := hold.Bind(nil) //nolint:staticcheck // what nil does
	defer cancel()
	require.ErrorIs(t, bound.Err(), context.Canceled)
	require.ErrorIs(t, context.Cause(bound), framework.ErrNilContext)
	require.NoError(t, hold.Context().Err())
	require.NoError(t, hold.Release())
	assert.Equal(t, "RELEASED", hold.String())
	assert.Equal(t, "RELEASED", new(locks.Hold).String(), "a zero Hold is over")
}

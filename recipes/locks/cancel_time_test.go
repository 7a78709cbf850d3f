package locks_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A client that is closed is not one that is not connected: nothing can be had of it
// later.
func TestTryAcquireOfAClosedClient(t *testing.T) {
	for name, lock := range kit.Locks {
		for _, wait := range []time.Duration{-1, 0, 1, time.Second} {
			t.Run(fmt.Sprint(name, " ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
					require.NoError(t, c.Close())
					h, err := lock(c).TryAcquire(t.Context(), wait)
					require.ErrorIs(t, err, framework.ErrClosed)
					require.NotErrorIs(t, err, framework.ErrNotConnected)
					assert.False(t, framework.Retryable(err))
					assert.Nil(t, h)
				})
			})
		}
	}
}

// A context can end for any reason: an errgroup's ends with the first error of
// the group, and a hold's says how it was lost. No call may take the reason for
// what a server has said, nor tell it to its caller as that.
func TestEndOfAContextIsNoAnswer(t *testing.T) {
	t.Parallel()
	tried, missing, wrong := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(endables)) {
		e := endables[name]
		for _, when := range []string{"before", "in flight", "not connected"} {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for cause, err := range e.endFor(t, when) {
						tried++
						if !assert.Error(t, err, "cause %s", cause) {
							missing++
							continue
						}
						assert.ErrorIs(t, err, context.Canceled)
						for target, one := range meant {
							if errors.Is(err, one) && !e.mayMatch(when, one) {
								wrong++
								assert.Fail(t, "wrong match", "cause %s: %v matches %s", cause, err, target)
							}
						}
						for _, typ := range []any{new(*carrier), new(*locks.LostError), new(*framework.TransactionError), new(*framework.ConfigError)} {
							if errors.As(err, typ) {
								wrong++
								assert.Fail(t, "wrong type", "cause %s: %v is a %T", cause, err, typ)
							}
						}
						assert.ErrorContains(t, err, "(cause: "+meant[cause].Error()+")")
					}
				})
			})
		}
	}
	t.Logf("%d calls, %d causes, before, in flight and not connected: %d ends; %d without an error, %d wrong matches",
		len(endables), len(meant), tried, missing, wrong)
}

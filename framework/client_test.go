package framework_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
)

func endsAtOnce[E any](t *testing.T, source listeners.Source[E]) {
	t.Helper()
	sub := source.Subscribe()
	defer sub.Stop()
	select {
	case _, more := <-sub.C:
		assert.False(t, more)
	default:
		t.Error("it does not end")
	}
}

// Zero values do nothing, and say so.
func TestZeroValues(t *testing.T) {
	new(framework.Watch).Stop()
	(*framework.Watch)(nil).Stop()
	assert.Equal(t, "LATENT session 0x0", fmt.Sprint(new(framework.Client)))
	assert.Equal(t, "LATENT session 0x0", (*framework.Client)(nil).String())
	for _, c := range []*framework.Client{new(framework.Client), nil} {
		require.ErrorIs(t, c.Close(), framework.ErrClosed)
		assert.Equal(t, listeners.Latent, c.State())
		assert.Zero(t, c.SessionID())
		assert.Zero(t, c.SessionTimeout())
		assert.Nil(t, c.Conn())
		require.ErrorIs(t, c.BlockUntilConnected(t.Context()), framework.ErrClosed)
		endsAtOnce(t, c.States())
		endsAtOnce(t, c.Errors())
		tx := c.UsingNamespace("x").Transaction()
		tx.Delete("/a", 0)
		_, err := tx.Commit(t.Context())
		require.ErrorIs(t, err, framework.ErrClosed)
	}
	var breaker framework.CircuitBreaker
	breaker.Close()
	endsAtOnce(t, breaker.States())
	var none context.Context
	_, err := framework.Connect(none, framework.Config{ConnectString: "127.0.0.1:1"})
	require.ErrorIs(t, err, framework.ErrNilContext)
}

// go vet finds copies of what has a Locker in it.
func TestCopiesAreFound(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[framework.Client](), reflect.TypeFor[framework.Transaction]()} {
		assert.True(t, reflect.PointerTo(of.Field(0).Type).Implements(reflect.TypeFor[sync.Locker]()), of)
	}
}

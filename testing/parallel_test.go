package zktest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A hundred tests side by side, each with a server of its own.
func TestServersInParallel(t *testing.T) {
	for i := range 100 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			var opts []zktest.Option
			if i%2 == 1 {
				opts = append(opts, zktest.InMemory())
			}
			srv := zktest.Start(t, opts...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			owner, next := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)
			first := owner.create("/lock-", wire.FlagEphemeralSequence)
			second := next.create("/lock-", wire.FlagEphemeralSequence)
			next.must(wire.OpGetData, watch(first), nil)
			require.NoError(t, srv.WaitWatch(ctx, first))
			rule := srv.On(zktest.Match{Op: "setData"}, zktest.CutAfter())
			_, err := owner.call(wire.OpSetData, &wire.SetDataRequest{Path: second, Data: []byte("x"), Version: -1}, nil)
			require.Error(t, err)
			assert.Equal(t, 1, rule.Fired())
			again, err := owner.again(srv)
			require.NoError(t, err)
			require.Equal(t, owner.session, again.session)
			require.NoError(t, srv.ExpireSession(owner.session))
			require.NoError(t, srv.WaitSessionGone(ctx, owner.session))
			assert.True(t, next.exists(second))
			require.Len(t, next.events, 1)
			require.NoError(t, srv.Restart())
			back, err := next.again(srv)
			require.NoError(t, err)
			assert.True(t, back.exists(second))
		})
	}
}

package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A write of a term that is over is refused.
func TestATransactionOfATermThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		term, err := leader.NewLatch(c, "/e").Await(t.Context())
		require.NoError(t, err)
		tx := term.Transaction()
		tx.Create("/written", nil, framework.Persistent)
		_, err = tx.Commit(t.Context())
		require.NoError(t, err)
		tx = term.Transaction()
		require.NoError(t, kit.Connect(t, srv).Delete(t.Context(), term.Path(), framework.AnyVersion))
		tx.Create("/late", nil, framework.Persistent)
		_, err = tx.Commit(t.Context())
		require.ErrorIs(t, err, locks.ErrFenced)
		there, _, err := c.Exists(t.Context(), "/late")
		require.NoError(t, err)
		assert.False(t, there)
		require.ErrorIs(t, term.Release(), locks.ErrLockLost)
	})
}

// A lock that is held under a term does not keep the term's context.
func TestALockUnderATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		term, err := leader.NewLatch(c, "/e", leader.ReleaseWait(kit.SessionTimeout)).Await(t.Context())
		require.NoError(t, err)
		hold, err := locks.NewInterProcessMutex(c, "/l").Acquire(term.Context())
		require.NoError(t, err)
		next := stands(t.Context(), t, leader.NewLatch(kit.Connect(t, srv), "/e"))
		time.Sleep(time.Second)
		// The reply comes late, so that the next leader begins before Release returns.
		srv.On(zktest.Match{Session: c.SessionID(), Op: "delete", Nth: 1}, zktest.CutAfter())
		released := make(chan error, 1)
		go func() { released <- term.Release() }()
		second := <-next
		require.ErrorIs(t, context.Cause(term.Context()), locks.ErrReleased)
		require.Error(t, hold.Context().Err())
		require.NoError(t, <-released)
		require.NoError(t, second.Release())
		require.NoError(t, hold.Release())
	})
}

// A Term that is none is over.
func TestZeroTerm(t *testing.T) {
	for _, term := range []*leader.Term{nil, {}} {
		assert.Equal(t, locks.Released, term.State())
		require.ErrorIs(t, term.Err(), locks.ErrReleased)
		require.ErrorIs(t, term.Release(), locks.ErrReleased)
		require.Error(t, term.Context().Err())
		assert.Zero(t, term.Number())
		assert.Empty(t, term.Path())
		assert.Equal(t, "term 0 RELEASED", term.String())
		term.GiveWay(time.Second)
		_, err := term.Transaction().Commit(t.Context())
		require.ErrorIs(t, err, locks.ErrReleased)
	}
}

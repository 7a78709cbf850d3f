package session

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Children that cannot be seen are not checked.
func TestParents_LookPassesOverWhatCannotBeSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := opened(t, zktest.Start(t, zktest.InMemory()))
		created(t.Context(), t, s, "/a")
		list := NewList("/")
		require.NoError(t, s.Send(t.Context(), c, list))
		require.NoError(t, s.Await(t.Context(), c, list, false))
		errFull := errors.New("somebody is there")
		checked := ""
		p := &Parents{Check: func(of string, children wire.Names) error {
			checked = of
			for _, name := range children.All() {
				if string(name) == "a" {
					return errFull
				}
			}
			return nil
		}}
		require.Equal(t, errFull, p.Look("/", list, nil))
		assert.Equal(t, "/", checked)
		checked = ""
		for _, err := range []error{zk.ErrNoNode, zk.ErrNoAuth, ErrReplyTooLarge} {
			require.NoError(t, p.Look("/", list, err))
		}
		require.ErrorIs(t, p.Look("/", list, ErrNotConnected), ErrNotConnected)
		assert.Empty(t, checked)
	})
}

func TestGuardError(t *testing.T) {
	err := error(&GuardError{Path: "/l/a", Err: zk.ErrNoNode})
	assert.EqualError(t, err, "/l/a: zk: node does not exist")
	assert.ErrorIs(t, err, zk.ErrNoNode)
}

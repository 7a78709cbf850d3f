package conformance

import (
	"errors"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/wire"
)

func transactionApplied(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.Namespace = "ns" })
	_, err := c.Create(e.soon(), "/a", []byte("0"), framework.Persistent)
	require.NoError(e, err)
	_, err = c.Create(e.soon(), "/b", nil, framework.Persistent)
	require.NoError(e, err)
	tx := c.Transaction()
	tx.Check("/a", 0)
	tx.Set("/a", []byte("1"), 0)
	tx.Create("/s-", []byte("x"), framework.EphemeralSequential)
	tx.Create("/n", nil, framework.Persistent)
	tx.Delete("/b", 0)
	tx.Create("/c", nil, framework.Container)
	results, err := tx.Commit(e.soon())
	require.NoError(e, err)
	require.Len(e, results, 6)
	assert.Equal(e, "/c", results[5].Path)
	assert.Equal(e, int32(1), results[1].Stat.Version)
	assert.Regexp(e, `^/s-\d{10}$`, results[2].Path)
	assert.Equal(e, "/n", results[3].Path)
	data, _, err := c.Get(e.soon(), "/n")
	require.NoError(e, err)
	assert.Equal(e, "127.0.0.1", string(data), "the default data")
	there, _, err := c.Exists(e.soon(), "/b")
	require.NoError(e, err)
	assert.False(e, there)
}

func transactionRefused(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", []byte("0"), framework.Persistent)
	require.NoError(e, err)
	tx := c.Transaction()
	tx.Create("/b", nil, framework.Persistent)
	tx.Set("/a", []byte("1"), 7)
	tx.Delete("/x", 0)
	results, err := tx.Commit(e.soon())
	assert.Nil(e, results)
	var refused *framework.TransactionError
	require.ErrorAs(e, err, &refused)
	assert.Equal(e, 1, refused.Index)
	assert.Equal(e, e.chroot+"/a", refused.Path)
	require.ErrorIs(e, err, framework.ErrBadVersion)
	assert.Equal(e, []string{"a"}, e.children(""), "nothing was applied")

	for _, tc := range []struct {
		add  func(*framework.Transaction)
		want error
	}{
		{func(*framework.Transaction) {}, framework.ErrInvalidArgument},
		{func(tx *framework.Transaction) { tx.Create("/c", nil, framework.Mode(77)) }, framework.ErrInvalidArgument},
		{func(tx *framework.Transaction) { tx.Create("c", nil, framework.Persistent) }, framework.ErrInvalidPath},
		{func(tx *framework.Transaction) { tx.Set("/a", nil, -5) }, framework.ErrInvalidArgument},
		{func(tx *framework.Transaction) { tx.Delete("/a/", 0) }, framework.ErrInvalidPath},
		{func(tx *framework.Transaction) { tx.Check("//", 0) }, framework.ErrInvalidPath},
	} {
		tx := c.Transaction()
		tx.Set("/a", []byte("never"), framework.AnyVersion)
		if errors.Is(tc.want, framework.ErrInvalidArgument) {
			tx = c.Transaction()
		}
		tc.add(tx)
		_, err := tx.Commit(e.soon())
		require.ErrorIs(e, err, tc.want)
	}
	data, _, err := c.Get(e.soon(), "/a")
	require.NoError(e, err)
	assert.Equal(e, "0", string(data))
}

func transactionReplyLost(e *env) {
	c := e.client()
	c.net.LoseReply(wire.OpMulti, 1)
	tx := c.Transaction()
	tx.Create("/a", nil, framework.Persistent)
	_, err := tx.Commit(e.soon())
	require.ErrorIs(e, err, framework.ErrOutcomeUnknown)
	assert.Equal(e, []string{"a"}, e.children(""))

	for _, version := range []int32{0, 1} { // checks leave nothing open
		c.net.LoseReply(wire.OpMulti, 1)
		tx = c.Transaction()
		tx.Check("/a", version)
		_, err = tx.Commit(e.soon())
		if version == 0 {
			require.NoError(e, err)
			continue
		}
		require.ErrorIs(e, err, framework.ErrBadVersion)
		require.NotErrorIs(e, err, framework.ErrOutcomeUnknown)
	}
}

func transactionIdempotent(e *env) {
	c := e.client()
	for _, fault := range []func(wire.Op, int) any{
		func(op wire.Op, n int) any { return c.net.LoseReply(op, n) },
		func(op wire.Op, n int) any { return c.net.CutBefore(op, n) },
	} {
		_, err := c.Create(e.soon(), "/a", []byte("0"), framework.Persistent)
		require.NoError(e, err)
		_, err = c.Create(e.soon(), "/b", nil, framework.Persistent)
		require.NoError(e, err)
		fault(wire.OpMulti, 1)
		tx := c.Transaction()
		tx.Check("/a", 0)
		tx.Set("/a", []byte("1"), 0)
		tx.Create("/e", []byte("x"), framework.Ephemeral)
		tx.Delete("/b", 0)
		results, err := tx.Commit(e.soon(), framework.Idempotent())
		require.NoError(e, err)
		assert.Equal(e, int32(1), results[1].Stat.Version)
		assert.Equal(e, "/e", results[2].Path)
		assert.ElementsMatch(e, []string{"a", "e"}, e.children(""))
		for _, path := range []string{"/a", "/e"} {
			require.NoError(e, c.Delete(e.soon(), path, framework.AnyVersion))
		}
	}

	for _, add := range []func(*framework.Transaction){
		func(tx *framework.Transaction) { tx.Set("/a", nil, framework.AnyVersion) },
		func(tx *framework.Transaction) { tx.Create("/a", nil, framework.PersistentSequential) },
	} {
		tx := c.Transaction()
		add(tx)
		_, err := tx.Commit(e.soon(), framework.Idempotent())
		require.ErrorIs(e, err, framework.ErrInvalidArgument, "cannot be told afterwards")
	}
}

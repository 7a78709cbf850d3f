package conformance

import (
	"bytes"
	"context"
	"strconv"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/retry"
)

func getSetExists(e *env) {
	c := e.client()
	there, stat, err := c.Exists(e.soon(), "/a")
	require.NoError(e, err)
	assert.False(e, there)
	assert.Nil(e, stat)
	_, _, err = c.Get(e.soon(), "/a")
	require.ErrorIs(e, err, framework.ErrNoNode)
	_, err = c.Set(e.soon(), "/a", nil, framework.AnyVersion)
	require.ErrorIs(e, err, framework.ErrNoNode)
	_, _, err = c.Children(e.soon(), "/a")
	require.ErrorIs(e, err, framework.ErrNoNode)

	_, err = c.Create(e.soon(), "/a", []byte("1"), framework.Persistent)
	require.NoError(e, err)
	stat, err = c.Set(e.soon(), "/a", []byte("22"), 0)
	require.NoError(e, err)
	assert.Equal(e, int32(1), stat.Version)
	assert.Equal(e, int32(2), stat.DataLength)
	_, err = c.Set(e.soon(), "/a", []byte("3"), 0)
	require.ErrorIs(e, err, framework.ErrBadVersion)
	_, err = c.Set(e.soon(), "/a", nil, framework.AnyVersion)
	require.NoError(e, err)
	data, stat, err := c.Get(e.soon(), "/a")
	require.NoError(e, err)
	assert.Empty(e, data)
	assert.Equal(e, int32(2), stat.Version)
	_, err = c.Set(e.soon(), "/a", nil, -2)
	require.ErrorIs(e, err, framework.ErrInvalidArgument)

	for i := range 3 {
		_, err = c.Create(e.soon(), "/a/"+strconv.Itoa(i), nil, framework.Persistent)
		require.NoError(e, err)
	}
	names, stat, err := c.Children(e.soon(), "/a")
	require.NoError(e, err)
	assert.ElementsMatch(e, []string{"0", "1", "2"}, names)
	assert.Equal(e, int32(3), stat.NumChildren)
	there, _, err = c.Exists(e.soon(), "/")
	require.NoError(e, err)
	assert.True(e, there)
}

func readLarge(e *env) {
	c := e.client()
	data := bytes.Repeat([]byte("0123456789abcdef"), 60_000) // 960 kB
	_, err := c.Create(e.soon(), "/a", data, framework.Persistent)
	require.NoError(e, err)
	got, _, err := c.Get(e.soon(), "/a")
	require.NoError(e, err)
	assert.True(e, bytes.Equal(data, got))

	small := e.client(func(cfg *framework.Config) { cfg.MaxReply, cfg.Retry = 64<<10, retry.None() })
	_, _, err = small.current().Get(e.soon(), "/a")
	require.ErrorIs(e, err, framework.ErrReplyTooLarge)
	assert.ErrorContains(e, err, "65536 are allowed")
	session, requests := small.SessionID(), small.net.Requests()
	_, _, err = small.Exists(e.soon(), "/a")
	require.NoError(e, err)
	assert.Equal(e, session, small.SessionID())
	assert.Equal(e, requests[wire.OpExists]+1, small.net.Requests()[wire.OpExists], "on the same connection")
}

func writeTooLarge(e *env) {
	c := e.client()
	id := c.SessionID()
	_, err := c.Create(e.soon(), "/a", make([]byte, 1<<20), framework.Persistent)
	require.ErrorIs(e, err, framework.ErrTooLarge)
	_, err = c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err, "the connection is not hurt")
	assert.Equal(e, id, c.SessionID())
}

func setIdempotent(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", []byte("0"), framework.Persistent)
	require.NoError(e, err)
	c.net.LoseReply(wire.OpSetData, 1)
	stat, err := c.Set(e.soon(), "/a", []byte("1"), 0, framework.Idempotent())
	require.NoError(e, err)
	assert.Equal(e, int32(1), stat.Version)
	stat, err = c.Set(e.soon(), "/a", []byte("1"), 0, framework.Idempotent())
	require.NoError(e, err, "what is as intended counts as success")
	assert.Equal(e, int32(1), stat.Version)
	_, err = c.Set(e.soon(), "/a", []byte("2"), 0, framework.Idempotent())
	require.ErrorIs(e, err, framework.ErrBadVersion)
	c.net.LoseReply(wire.OpSetData, 1)
	stat, err = c.Set(e.soon(), "/a", []byte("3"), framework.AnyVersion, framework.Idempotent())
	require.NoError(e, err)
	assert.Equal(e, int32(3), stat.Version, "written twice")
}

func setReplyLost(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", []byte("0"), framework.Persistent)
	require.NoError(e, err)
	c.net.LoseReply(wire.OpSetData, 1)
	_, err = c.Set(e.soon(), "/a", []byte("1"), 0)
	require.ErrorIs(e, err, framework.ErrOutcomeUnknown)
	data, _, err := c.current().Get(e.soon(), "/a") // the server that it is at now may not have it yet
	require.NoError(e, err)
	assert.Equal(e, "1", string(data))
}

func deleteOptions(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a/b", nil, framework.Persistent, framework.Parents())
	require.NoError(e, err)
	require.ErrorIs(e, c.Delete(e.soon(), "/a", framework.AnyVersion), framework.ErrNotEmpty)
	require.ErrorIs(e, c.Delete(e.soon(), "/a/b", 7), framework.ErrBadVersion)
	require.ErrorIs(e, c.Delete(e.soon(), "/x", framework.AnyVersion), framework.ErrNoNode)
	require.ErrorIs(e, c.Delete(e.soon(), "/x", framework.AnyVersion, framework.Guaranteed()), framework.ErrNoNode)
	require.NoError(e, c.Delete(e.soon(), "/x", framework.AnyVersion, framework.IfExists()))
	require.NoError(e, c.Delete(e.soon(), "/x", framework.AnyVersion, framework.Idempotent()))
	require.ErrorIs(e, c.Delete(e.soon(), "/a/b", -3), framework.ErrInvalidArgument)
	require.ErrorIs(e, c.Delete(e.soon(), "/a/b", 0, nil), framework.ErrInvalidArgument)
	assert.Equal(e, []string{"b"}, e.children("/a"), "nothing changed")
	require.NoError(e, c.Delete(e.soon(), "/a/b", 0))
	assert.Empty(e, e.children("/a"))
	whole := e.client(func(cfg *framework.Config) { cfg.ConnectString = e.b.hosts() })
	require.ErrorIs(e, whole.Delete(e.soon(), "/", framework.AnyVersion, framework.Recursive()), framework.ErrInvalidPath)
}

func deleteRecursive(e *env) {
	c := e.client()
	for i := range 30 {
		for _, below := range []string{"/x", "/y/z"} {
			_, err := c.Create(e.soon(), "/a/"+strconv.Itoa(i)+below, nil, framework.Persistent, framework.Parents())
			require.NoError(e, err)
		}
	}
	require.ErrorIs(e, c.Delete(e.soon(), "/a", 99, framework.Recursive()), framework.ErrBadVersion)
	// Two at once, and one who creates meanwhile.
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_, _ = c.Create(e.soon(), "/a/new"+strconv.Itoa(i), nil, framework.Persistent)
			if i == 5 {
				return
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			assert.NoError(e, c.Delete(e.soon(), "/a", framework.AnyVersion, framework.Recursive(), framework.IfExists()))
		})
	}
	wg.Wait()
	close(stop)
	require.NoError(e, c.Delete(e.soon(), "/a", framework.AnyVersion, framework.Recursive(), framework.IfExists()))
	assert.Empty(e, e.children(""))
	require.ErrorIs(e, c.Delete(e.soon(), "/a", framework.AnyVersion, framework.Recursive()), framework.ErrNoNode)
}

func deleteGuaranteed(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.Retry = retry.None() })
	_, err := e.client().Create(e.soon(), "/a/b", nil, framework.Persistent, framework.Parents())
	require.NoError(e, err)
	_, err = c.Create(e.soon(), "/c", nil, framework.Persistent)
	require.NoError(e, err)

	c.net.CutBefore(wire.OpDelete, 1)
	err = c.Delete(e.soon(), "/c", framework.AnyVersion)
	require.ErrorIs(e, err, framework.ErrOutcomeUnknown)
	assert.Contains(e, e.children(""), "c", "a plain one leaves it")

	c.net.CutBefore(wire.OpDelete, 1)
	err = c.Delete(e.soon(), "/c", framework.AnyVersion, framework.Guaranteed())
	require.ErrorIs(e, err, framework.ErrOutcomeUnknown, "the error says so")
	kit.Until(e, "it goes in the background", func() bool { return len(e.children("")) == 1 })

	c.net.Freeze()
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	err = c.Delete(ctx, "/a", framework.AnyVersion, framework.Guaranteed(), framework.Recursive())
	require.ErrorIs(e, err, context.Canceled)
	c.net.Thaw()
	kit.Eventually(e, "with all below", func() error { return emptyOr(e.children("")) })
}

func deleteReplyLost(e *env) {
	c := e.client()
	for _, tc := range []struct {
		opts []framework.DeleteOption
		want error
	}{
		{nil, framework.ErrOutcomeUnknown},
		{[]framework.DeleteOption{framework.Idempotent()}, nil},
		{[]framework.DeleteOption{framework.IfExists()}, nil},
	} {
		_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
		require.NoError(e, err)
		c.net.LoseReply(wire.OpDelete, 1)
		require.ErrorIs(e, c.Delete(e.soon(), "/a", 0, tc.opts...), tc.want)
		assert.Empty(e, e.children(""))
	}
}

func setACL(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err)
	_, _, err = c.GetACL(e.soon(), "/x")
	require.ErrorIs(e, err, framework.ErrNoNode)
	c.net.LoseReply(wire.OpSetACL, 1)
	stat, err := c.SetACL(e.soon(), "/a", zk.WorldACL(zk.PermAdmin|zk.PermRead), 0, framework.Idempotent())
	require.NoError(e, err)
	assert.Equal(e, int32(1), stat.Aversion)
	acl, _, err := c.GetACL(e.soon(), "/a")
	require.NoError(e, err)
	assert.Equal(e, zk.WorldACL(zk.PermAdmin|zk.PermRead), acl)
	_, err = c.SetACL(e.soon(), "/a", zk.WorldACL(1), 0)
	require.ErrorIs(e, err, framework.ErrBadVersion)
	_, err = c.SetACL(e.soon(), "/a", nil, framework.AnyVersion)
	require.ErrorIs(e, err, framework.ErrInvalidACL)
	_, err = c.Set(e.soon(), "/a", nil, framework.AnyVersion)
	require.ErrorIs(e, err, framework.ErrNoAuth)
	_, err = c.Create(e.soon(), "/a/b", nil, framework.Persistent)
	require.ErrorIs(e, err, framework.ErrNoAuth)
}

func digestAuth(e *env) {
	c := e.client(withoutSASL, func(cfg *framework.Config) {
		cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("user:secret")}}
	})
	_, err := c.Create(e.soon(), "/a", []byte("x"), framework.Persistent, framework.ACLs(zk.AuthACL(zk.PermAll)...))
	require.NoError(e, err)
	acl, _, err := c.GetACL(e.soon(), "/a")
	require.NoError(e, err)
	assert.Equal(e, zk.DigestACL(zk.PermAll, "user", "secret"), acl)
	c.net.CutAll()
	_, _, err = c.Get(e.soon(), "/a")
	require.NoError(e, err, "presented again after a reconnect")
	c.expire()
	_, _, err = c.Get(e.soon(), "/a")
	require.NoError(e, err, "and in a new session")

	_, _, err = e.client().current().Get(e.soon(), "/a")
	require.ErrorIs(e, err, framework.ErrNoAuth)
	nobody := e.client(withoutSASL, func(cfg *framework.Config) { cfg.Auth = []framework.Auth{} })
	_, err = nobody.Create(e.soon(), "/b", nil, framework.Persistent, framework.ACLs(zk.AuthACL(zk.PermAll)...))
	require.ErrorIs(e, err, framework.ErrInvalidACL, "nobody to give the rights to")
	require.NoError(e, c.Delete(e.soon(), "/a", 0))
}

func wrongPassword(e *env) {
	owner := e.client(withoutSASL, func(cfg *framework.Config) {
		cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("user:secret")}}
	})
	_, err := owner.Create(e.soon(), "/a", nil, framework.Persistent, framework.ACLs(zk.AuthACL(zk.PermAll)...))
	require.NoError(e, err)
	wrong := e.client(func(cfg *framework.Config) {
		cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("user:hunter2")}}
	})
	_, _, err = wrong.current().Get(e.soon(), "/a")
	require.ErrorIs(e, err, framework.ErrNoAuth)
	assert.NotContains(e, err.Error(), "hunter2")
	require.NoError(e, owner.Delete(e.soon(), "/a", 0))
}

func unknownScheme(e *env) {
	c := e.start(func(cfg *framework.Config) {
		cfg.Auth = []framework.Auth{{Scheme: "nonsense", Data: []byte("hunter2")}}
	})
	told := c.Errors().Subscribe()
	defer told.Stop()
	err := c.BlockUntilConnected(e.soon())
	require.ErrorIs(e, err, framework.ErrAuthFailed, "at once, not when the context ends")
	require.NoError(e, e.Context().Err())
	assert.NotContains(e, err.Error(), "hunter2")
	_, _, err = c.Get(e.soon(), "/")
	require.ErrorIs(e, err, framework.ErrAuthFailed)
	require.ErrorIs(e, <-told.C, framework.ErrAuthFailed)
	c.gone = true
}

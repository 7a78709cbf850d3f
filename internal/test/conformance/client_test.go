package conformance

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
)

func callContext(e *env) {
	c := e.client()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(e.Context())
	c.net.Freeze()
	failed := make(chan error, 3)
	go func() { _, _, err := c.Get(ctx, "/"); failed <- err }()
	go func() { failed <- c.Sync(ctx, "/") }()
	go func() { _, _, _, err := c.ChildrenW(ctx, "/"); failed <- err }()
	kit.Until(e, "requests are on their way", func() bool { return c.net.Held() >= 3 })
	cancel(cause)
	for range 3 {
		err := <-failed
		require.ErrorIs(e, err, context.Canceled)
		require.NotErrorIs(e, err, cause, "which may be any error")
		require.ErrorContains(e, err, "context canceled (cause: enough)")
		require.NotErrorIs(e, err, framework.ErrOutcomeUnknown, "a read leaves nothing open")
	}
	c.net.Thaw()
	_, _, err := c.Get(ctx, "/")
	require.EqualError(e, err, "get "+e.chroot+": context canceled (cause: enough)", "ended before it began")
}

func callRetried(e *env) {
	var tried atomic.Int32
	c := e.client(func(cfg *framework.Config) {
		cfg.Retry = retry.NTimes(3, 10*time.Millisecond).OnRetry(func(context.Context, retry.Attempt) { tried.Add(1) })
	})
	c.net.LoseReply(wire.OpGetData, 1)
	c.net.CutBefore(wire.OpGetData, 1)
	_, _, err := c.Get(e.soon(), "/")
	require.NoError(e, err)
	assert.Equal(e, int32(2), tried.Load())
	for range 4 {
		c.net.CutBefore(wire.OpGetData, 1)
	}
	_, _, err = c.Get(e.soon(), "/")
	var r *retry.Error
	require.ErrorAs(e, err, &r)
	assert.Equal(e, 4, r.Attempts)
	require.ErrorIs(e, err, retry.ErrExhausted)
	require.ErrorIs(e, err, framework.ErrNotConnected)
}

func callNotConnected(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.Retry, cfg.ConnectTimeout = retry.None(), time.Second })
	sub := c.States().Subscribe()
	defer sub.Stop()
	c.net.Refuse()
	c.net.CutAll()
	c.awaitState(sub, listeners.Suspended)
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.ErrorIs(e, err, framework.ErrNotConnected)
	assert.ErrorContains(e, err, "refused by faultnet", "and why")
	assert.True(e, framework.Retryable(err), "nothing was left behind")
	c.net.Accept()
	require.NoError(e, c.BlockUntilConnected(e.soon()))
	assert.Empty(e, e.children(""))
}

func clientStates(e *env) {
	c := e.client()
	sub := c.States().Subscribe()
	defer sub.Stop()
	require.Equal(e, listeners.Connected, <-sub.C)
	id := c.SessionID()
	c.net.CutAll()
	require.Equal(e, listeners.Suspended, <-sub.C)
	require.Equal(e, listeners.Reconnected, <-sub.C)
	assert.Equal(e, id, c.SessionID())
	assert.Equal(e, sessionTimeout, c.SessionTimeout())
}

func clientExpired(e *env) {
	c := e.client()
	sub := c.States().Subscribe()
	defer sub.Stop()
	require.Equal(e, listeners.Connected, <-sub.C)
	_, err := c.Create(e.soon(), "/e", nil, framework.Ephemeral)
	require.NoError(e, err)
	id := c.SessionID()
	c.expire()
	require.Equal(e, listeners.Suspended, <-sub.C)
	require.Equal(e, listeners.Lost, <-sub.C)
	require.Equal(e, listeners.Reconnected, <-sub.C)
	assert.NotEqual(e, id, c.SessionID())
	there, _, err := c.Exists(e.soon(), "/e")
	require.NoError(e, err)
	assert.False(e, there)
}

// ClickHouse Keeper answers the renewal of a session with a new one.
func clientSessionReplaced(e *env) {
	c := e.client()
	hold, err := locks.NewInterProcessMutex(c.Client, "/l").Acquire(e.soon())
	require.NoError(e, err)
	sub := c.States().Subscribe()
	defer sub.Stop()
	require.True(e, (<-sub.C).IsConnected())
	c.net.HideSessions()
	cut := time.Now()
	c.net.CutAll()
	require.Equal(e, listeners.Suspended, <-sub.C)
	require.Equal(e, listeners.Lost, <-sub.C)
	require.Equal(e, listeners.Reconnected, <-sub.C)
	require.ErrorIs(e, hold.Err(), framework.ErrSessionExpired)
	assert.Less(e, time.Since(cut), c.SessionTimeout(), "no wait for the end of the session lease")
	again, err := locks.NewInterProcessMutex(c.Client, "/l").Acquire(e.soon())
	require.NoError(e, err, "once the servers have ended the former session")
	require.NoError(e, again.Release())
}

func clientSilence(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.SessionTimeout = time.Second })
	timeout := c.SessionTimeout()
	sub := c.States().Subscribe()
	defer sub.Stop()
	require.Equal(e, listeners.Connected, <-sub.C)
	_, err := c.Create(e.soon(), "/e", nil, framework.Ephemeral)
	require.NoError(e, err)
	id := c.SessionID()
	frozen := time.Now()
	c.net.Freeze()
	require.Equal(e, listeners.Suspended, <-sub.C)
	require.Equal(e, listeners.Lost, <-sub.C)
	assert.LessOrEqual(e, time.Since(frozen), timeout+200*time.Millisecond)
	assert.Zero(e, c.SessionID())
	c.net.Thaw()
	require.Equal(e, listeners.Reconnected, <-sub.C)
	assert.NotEqual(e, id, c.SessionID())
	kit.Eventually(e, "the old session is closed", func() error { return emptyOr(e.ephemerals(e.chroot)) })
}

func clientChroot(e *env) {
	require.NoError(e, e.client().EnsurePath(e.soon(), "/deep/er"))
	c := e.client(func(cfg *framework.Config) { cfg.ConnectString += "/deep/er" })
	path, err := c.Create(e.soon(), "/a/b", nil, framework.Persistent, framework.Parents())
	require.NoError(e, err)
	assert.Equal(e, "/a/b", path)
	assert.Equal(e, []string{"b"}, e.children("/deep/er/a"))
	names, _, err := c.Children(e.soon(), "/")
	require.NoError(e, err)
	assert.Equal(e, []string{"a"}, names)
	_, _, err = c.Get(e.soon(), "/x")
	assert.ErrorContains(e, err, e.chroot+"/deep/er/x", "errors name paths in full")
}

func clientMissingChroot(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.ConnectString += "/nowhere" })
	_, err := c.Create(e.soon(), "/a/b", nil, framework.Persistent, framework.Parents())
	errs := []error{err, c.Delete(e.soon(), "/a", 0, framework.IfExists())}
	_, _, err = c.Get(e.soon(), "/a")
	errs = append(errs, err)
	_, _, _, err = c.ExistsW(e.soon(), "/a")
	errs = append(errs, err)
	tx := c.Transaction()
	tx.Create("/a", nil, framework.Persistent)
	_, err = tx.Commit(e.soon())
	for _, err := range append(errs, err) {
		require.ErrorIs(e, err, framework.ErrNoNode)
		assert.ErrorContains(e, err, ": chroot "+e.chroot+"/nowhere: ")
	}
	assert.Empty(e, e.children(""), "it is not ours to make")
}

func clientOneBadName(e *env) {
	c := e.client(func(cfg *framework.Config) {
		cfg.ConnectString = "no-such-host.invalid:2181," + cfg.ConnectString
		dial := cfg.DialContext
		cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "no-such-host.invalid:2181" {
				return nil, &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}
			}
			return dial(ctx, network, addr)
		}
	})
	for range 5 {
		c.net.CutAll()
		require.NoError(e, c.Sync(e.soon(), "/"))
	}
}

func clientNeverAnswers(e *env) {
	// A server that accepts and never answers, beside one that works.
	c := e.start(func(cfg *framework.Config) {
		cfg.ConnectTimeout = 200 * time.Millisecond
		cfg.ConnectString = "silent:1," + cfg.ConnectString
		dial := cfg.DialContext
		cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != "silent:1" {
				return dial(ctx, network, addr)
			}
			near, far := net.Pipe()
			go func() {
				buf := make([]byte, 1024)
				for {
					if _, err := far.Read(buf); err != nil {
						return
					}
				}
			}()
			return near, nil
		}
	})
	require.NoError(e, c.BlockUntilConnected(e.soon()))
	require.NoError(e, c.Sync(e.soon(), "/"))
}

func clientRawConnection(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", []byte("x"), framework.Persistent)
	require.NoError(e, err)
	raw := c.Conn()
	data, _, events, err := raw.GetW(e.chroot + "/a")
	require.NoError(e, err)
	assert.Equal(e, "x", string(data))
	assert.Equal(e, c.SessionID(), raw.SessionID())
	_, _, w, err := c.GetW(e.soon(), "/a")
	require.NoError(e, err)
	_, err = c.Set(e.soon(), "/a", nil, 0)
	require.NoError(e, err)
	assert.Equal(e, e.chroot+"/a", (<-events).Path, "both get the event")
	assert.Equal(e, framework.NodeDataChanged, e.event(w).Type)
}

func clientSync(e *env) {
	a, b := e.client(), e.client()
	for i := range 20 {
		_, err := a.Create(e.soon(), "/a", []byte{byte(i)}, framework.Persistent, framework.OrSet())
		require.NoError(e, err)
		require.NoError(e, b.Sync(e.soon(), "/a"))
		data, _, err := b.Get(e.soon(), "/a")
		require.NoError(e, err)
		if !bytes.Equal(data, []byte{byte(i)}) {
			// The leader answers before it has applied what a follower has.
			assert.Equal(e, []byte{byte(i - 1)}, data)
			_, err := b.Create(e.soon(), "/b", nil, framework.Persistent, framework.OrSet())
			require.NoError(e, err)
			data, _, err = b.Get(e.soon(), "/a")
			require.NoError(e, err)
			assert.Equal(e, []byte{byte(i)}, data, "behind a write of one's own")
		}
	}
}

package conformance

import (
	"context"
	"errors"
	"maps"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// badPaths is what no path may be, with what the error says about it.
var badPaths = map[string]string{
	"":                                "it is empty",
	"a":                               "does not begin with a slash",
	"a/b":                             "does not begin with a slash",
	"./a":                             "does not begin with a slash",
	"/a/":                             "ends with a slash",
	"//":                              "ends with a slash",
	"//a":                             "empty element",
	"/a//b":                           "empty element",
	"/.":                              "relative element",
	"/..":                             "relative element",
	"/a/./b":                          "relative element",
	"/a/../b":                         "relative element",
	"/a\x00b":                         "U+0000",
	"/a\nb":                           "U+000A",
	"/a\x1b[2Jb":                      "U+001B",
	"/a\x7f":                          "U+007F",
	"/a\u0085":                        "U+0085",
	"/a\ufff0":                        "U+FFF0",
	"/a\xff":                          "not UTF-8",
	"/a\xc0\xaf":                      "not UTF-8",
	"/" + strings.Repeat("x", 4<<10):  "longer than 4095 bytes",
	strings.Repeat("/x", 2<<10) + "x": "longer than 4095 bytes",
}

// calls is every call on a path.
var calls = map[string]func(ctx context.Context, c *framework.Client, path string) error{
	"create": func(ctx context.Context, c *framework.Client, path string) error {
		_, err := c.Create(ctx, path, []byte("x"), framework.Persistent, framework.Parents())
		return err
	},
	"create, protected": func(ctx context.Context, c *framework.Client, path string) error {
		_, err := c.Create(ctx, path, []byte("x"), framework.Ephemeral, framework.Protected())
		return err
	},
	"create, or set": func(ctx context.Context, c *framework.Client, path string) error {
		_, err := c.Create(ctx, path, []byte("x"), framework.Persistent, framework.OrSet())
		return err
	},
	"ensure path": func(ctx context.Context, c *framework.Client, path string) error { return c.EnsurePath(ctx, path) },
	"get": func(ctx context.Context, c *framework.Client, path string) error {
		_, _, err := c.Get(ctx, path)
		return err
	},
	"get and watch": func(ctx context.Context, c *framework.Client, path string) error {
		_, _, _, err := c.GetW(ctx, path)
		return err
	},
	"exists": func(ctx context.Context, c *framework.Client, path string) error {
		_, _, err := c.Exists(ctx, path)
		return err
	},
	"exists and watch": func(ctx context.Context, c *framework.Client, path string) error {
		_, _, _, err := c.ExistsW(ctx, path)
		return err
	},
	"children": func(ctx context.Context, c *framework.Client, path string) error {
		_, _, err := c.Children(ctx, path)
		return err
	},
	"children and watch": func(ctx context.Context, c *framework.Client, path string) error {
		_, _, _, err := c.ChildrenW(ctx, path)
		return err
	},
	"get access list": func(ctx context.Context, c *framework.Client, path string) error {
		_, _, err := c.GetACL(ctx, path)
		return err
	},
	"sync": func(ctx context.Context, c *framework.Client, path string) error { return c.Sync(ctx, path) },
	"revoke": func(ctx context.Context, c *framework.Client, path string) error {
		return locks.AttemptRevoke(ctx, c, path)
	},
	"set": func(ctx context.Context, c *framework.Client, path string) error {
		return set(ctx, c, path, framework.AnyVersion)
	},
	"set access list": func(ctx context.Context, c *framework.Client, path string) error {
		return setAccessList(ctx, c, path, framework.AnyVersion)
	},
	"delete": func(ctx context.Context, c *framework.Client, path string) error {
		return c.Delete(ctx, path, framework.AnyVersion)
	},
	"delete, with all below": func(ctx context.Context, c *framework.Client, path string) error {
		return c.Delete(ctx, path, framework.AnyVersion, framework.Recursive(), framework.IfExists())
	},
	"transaction: create": func(ctx context.Context, c *framework.Client, path string) error {
		return commit(ctx, c, func(tx *framework.Transaction) { tx.Create(path, nil, framework.Persistent) })
	},
	"transaction: set": func(ctx context.Context, c *framework.Client, path string) error {
		return commit(ctx, c, func(tx *framework.Transaction) { tx.Set(path, nil, framework.AnyVersion) })
	},
	"transaction: delete": func(ctx context.Context, c *framework.Client, path string) error {
		return commit(ctx, c, func(tx *framework.Transaction) { tx.Delete(path, framework.AnyVersion) })
	},
	"transaction: check": func(ctx context.Context, c *framework.Client, path string) error {
		return commit(ctx, c, func(tx *framework.Transaction) { tx.Check(path, framework.AnyVersion) })
	},
}

func set(ctx context.Context, c *framework.Client, path string, version int32) error {
	_, err := c.Set(ctx, path, []byte("y"), version)
	return err
}

func setAccessList(ctx context.Context, c *framework.Client, path string, version int32) error {
	_, err := c.SetACL(ctx, path, zk.WorldACL(zk.PermRead), version)
	return err
}

// commit puts a good operation before the one that is tried.
func commit(ctx context.Context, c *framework.Client, add func(*framework.Transaction)) error {
	tx := c.Transaction()
	tx.Create("/made", nil, framework.Persistent)
	add(tx)
	_, err := tx.Commit(ctx)
	return err
}

// sent counts the requests that a client has sent, without its pings.
func (c *client) sent() map[wire.Op]int {
	counts := c.net.Requests()
	delete(counts, wire.OpPing)
	return counts
}

func callBadPaths(e *env) {
	c := e.client()
	before := c.sent()
	for name, call := range calls {
		for path, want := range badPaths {
			for where, client := range map[string]*framework.Client{"": c.Client, " in a namespace": c.UsingNamespace("space")} {
				err := call(e.soon(), client, path)
				require.ErrorIs(e, err, framework.ErrInvalidPath, "%s %.20q%s", name, path, where)
				require.ErrorContains(e, err, want)
				assert.False(e, framework.Retryable(err))
				if path == "" || len(path) > 100 || strconv.Quote(path) != `"`+path+`"` {
					continue // not shown as it is
				}
				require.ErrorContains(e, err, path)
			}
		}
		for _, namespace := range []string{"/", "a/", "a//b", "..", "a\x00"} {
			err := call(e.soon(), c.UsingNamespace(namespace), "/a")
			require.ErrorIs(e, err, framework.ErrInvalidPath, "%s in %q", name, namespace)
			require.ErrorContains(e, err, "namespace")
		}
	}
	require.ErrorIs(e, c.Delete(e.soon(), "/a/", 0, framework.Guaranteed()), framework.ErrInvalidPath, "nor later")
	assert.Equal(e, before, c.sent(), "nothing was sent")
	assert.Empty(e, e.children(""))
}

func callBadArguments(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/a", []byte("x"), framework.Persistent)
	require.NoError(e, err)
	before := c.sent()
	for _, version := range []int32{-2, math.MinInt32} {
		for name, err := range map[string]error{
			"set":             set(e.soon(), c.Client, "/a", version),
			"set access list": setAccessList(e.soon(), c.Client, "/a", version),
			"delete":          c.Delete(e.soon(), "/a", version),
			"transaction":     commit(e.soon(), c.Client, func(tx *framework.Transaction) { tx.Check("/a", version) }),
		} {
			require.ErrorIs(e, err, framework.ErrInvalidArgument, name)
			require.ErrorContains(e, err, "version -2")
		}
	}
	_, err = c.Set(e.soon(), "/a", nil, 0, nil)
	require.ErrorIs(e, err, framework.ErrInvalidArgument)
	require.ErrorIs(e, c.Delete(e.soon(), "/a", 0, nil), framework.ErrInvalidArgument)
	_, err = c.Transaction().Commit(e.soon())
	require.ErrorIs(e, err, framework.ErrInvalidArgument, "an empty transaction")
	_, err = c.Transaction().Commit(e.soon(), nil)
	require.ErrorIs(e, err, framework.ErrInvalidArgument)

	ended, cancel := context.WithCancelCause(e.Context())
	cancel(framework.ErrNoNode)
	late, stop := context.WithDeadline(e.Context(), time.Now().Add(-time.Second))
	defer stop()
	var none context.Context
	for name, call := range calls {
		require.ErrorIs(e, call(none, c.Client, "/a"), framework.ErrNilContext, name)
		err := call(ended, c.Client, "/a")
		require.ErrorIs(e, err, context.Canceled, name)
		require.NotErrorIs(e, err, framework.ErrNoNode, "%s: nobody was asked", name)
		require.ErrorIs(e, call(late, c.Client, "/a"), context.DeadlineExceeded, name)
	}
	assert.Equal(e, before, c.sent(), "nothing was sent")
	data, stat, err := c.Get(e.soon(), "/a")
	require.NoError(e, err)
	assert.Equal(e, "x", string(data))
	assert.Zero(e, stat.Version)
	assert.Zero(e, stat.Aversion)
	assert.Equal(e, []string{"a"}, e.children(""))

	unborn := e.start(func(cfg *framework.Config) {
		cfg.ConnectTimeout = 50 * time.Millisecond
		cfg.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
	})
	unborn.gone = true
	for name, call := range calls {
		err := call(e.within(20*time.Millisecond), unborn.Client, "/a")
		require.ErrorIs(e, err, framework.ErrNotConnected, name)
		require.ErrorIs(e, err, context.DeadlineExceeded, name)
	}
	require.NoError(e, c.Close())
	require.NoError(e, c.Close(), "a second time")
	before = c.sent()
	for name, call := range calls {
		require.ErrorIs(e, call(e.soon(), c.Client, "/a"), framework.ErrClosed, name)
		require.ErrorIs(e, call(e.soon(), c.UsingNamespace("x"), "/a"), framework.ErrClosed, name)
		require.ErrorIs(e, call(e.soon(), nil, "/a"), framework.ErrClosed, name)
	}
	assert.Equal(e, before, c.sent())
	assert.Equal(e, []string{"a"}, e.children(""))
}

func lockBadPaths(e *env) {
	c := e.client()
	before := c.sent()
	bad := maps.Clone(badPaths)
	bad["/"] = "the root"
	for path, want := range bad {
		both := locks.NewInterProcessReadWriteLock(c.Client, path)
		for name, lock := range map[string]locks.Lock{
			"mutex": locks.NewInterProcessMutex(c.Client, path), "read": both.ReadLock(), "write": both.WriteLock(),
			"semaphore": locks.NewInterProcessSemaphore(c.Client, path, 3), "semaphore-mutex": locks.NewInterProcessSemaphoreMutex(c.Client, path),
			"multi": locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c.Client, path)),
		} {
			_, err := lock.Acquire(e.soon())
			require.ErrorIs(e, err, locks.ErrInvalidLock, "%s %.20q", name, path)
			require.ErrorContains(e, err, want)
			require.ErrorIs(e, locks.Do(e.soon(), lock, nil), locks.ErrInvalidLock)
			require.ErrorIs(e, locks.TryDo(e.soon(), lock, time.Second, nil), locks.ErrInvalidLock)
			if p, ok := lock.(interface {
				Participants(context.Context) ([]locks.Participant, error)
			}); ok {
				_, err = p.Participants(e.soon())
				require.ErrorIs(e, err, locks.ErrInvalidLock)
			}
		}
	}
	assert.Equal(e, before, c.sent(), "nothing was sent")

	for _, k := range exclusive {
		hold, err := k.make(c, "/"+k.name).TryAcquire(e.soon(), -time.Hour)
		require.NoError(e, err, "no wait is not no lock")
		require.NoError(e, hold.Release())
		after := c.sent()
		require.ErrorIs(e, hold.Release(), locks.ErrReleased)
		require.ErrorIs(e, hold.Err(), locks.ErrReleased)
		require.ErrorIs(e, context.Cause(hold.Context()), locks.ErrReleased)
		assert.Zero(e, hold.FencingToken())
		assert.Equal(e, after, c.sent(), "releasing twice asks nobody")
		e.empties(k.paths("/" + k.name)...)
	}
	require.NoError(e, c.Close())
	for _, k := range exclusive {
		_, err := k.make(c, "/"+k.name).Acquire(e.soon())
		require.ErrorIs(e, err, framework.ErrClosed, k.name)
		_, err = k.make(c, "/"+k.name).TryAcquire(e.soon(), time.Second)
		require.ErrorIs(e, err, framework.ErrClosed, k.name)
	}
}

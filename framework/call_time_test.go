package framework_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The time for one attempt ends a context as well, which is not the caller's.
func TestTimeForOneAttemptIsNotTheCallers(t *testing.T) {
	for name, tc := range map[string]struct {
		call func(ctx context.Context, c *framework.Client) error
		want error
	}{
		"get": {func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Get(ctx, "/a")
			return err
		}, framework.ErrNotConnected},
		"exists": {func(ctx context.Context, c *framework.Client) error {
			_, _, err := c.Exists(ctx, "/a")
			return err
		}, framework.ErrNotConnected},
		"set": {func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/a", nil, 0)
			return err
		}, framework.ErrOutcomeUnknown},
		"set, idempotent": {func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/a", nil, 0, framework.Idempotent())
			return err
		}, framework.ErrOutcomeUnknown},
	} {
		for _, connected := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					c := kit.Connect(t, srv, func(cfg *framework.Config) {
						cfg.Retry = retry.NTimes(2, time.Millisecond).WithAttemptTimeout(time.Second)
					})
					_, err := c.Create(t.Context(), "/a", []byte("x"), framework.Persistent)
					require.NoError(t, err)
					want := tc.want
					if connected {
						srv.Stall(c.SessionID(), zktest.FromClient)
						defer srv.Unstall(c.SessionID())
					} else {
						srv.Refuse()
						srv.DisconnectAll()
						synctest.Wait()
						want = framework.ErrNotConnected
					}
					err = tc.call(t.Context(), c)
					require.ErrorIs(t, err, want)
					require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's has no deadline")
					require.NotErrorIs(t, err, context.Canceled)
				})
			})
		}
	}
}

// A call that ends with its context says why it was not answered, and nothing twice.
func TestTextsOfCallsThatEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		addr := srv.ConnectString()
		c := kit.Connect(t, srv)
		within := func(d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			_, _, err := c.Get(ctx, "/x")
			return err
		}
		home, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("user went home"))
		_, _, err := c.Get(home, "/x")
		require.EqualError(t, err, "get /x: context canceled (cause: user went home)")

		srv.Stall(0, zktest.FromClient)
		require.EqualError(t, within(500*time.Millisecond), "get /x: context deadline exceeded")
		srv.Refuse()
		srv.DisconnectAll()
		srv.Unstall(0)
		synctest.Wait()
		time.Sleep(time.Second)
		err = within(500 * time.Millisecond)
		require.EqualError(t, err, "get /x: context deadline exceeded: not connected for 500ms: "+addr+": dial mem "+addr+": connect: connection refused")
		require.ErrorIs(t, err, framework.ErrNotConnected)

		err = within(15 * time.Second)
		require.ErrorIs(t, err, framework.ErrNotConnected)
		assert.Regexp(t, `^get /x: retry: context deadline exceeded after 2 attempts in 15s: not connected for 4\.\d*s: 127[0-9.:]*: dial mem 127[0-9.:]*: connect: connection refused$`, err.Error())
	})
}

// Servers bound the requests that are on their way. Calls beyond that wait for
// their turn, and end with their context and with the client.
func TestCallsWaitForTheirTurn(t *testing.T) {
	const most = 4096
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		srv.Freeze()
		get := func(ctx context.Context) <-chan error {
			failed := make(chan error, 1)
			go func() {
				_, _, err := c.Get(ctx, "/")
				failed <- err
			}()
			return failed
		}
		var sent []<-chan error
		for range most {
			sent = append(sent, get(t.Context()))
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, <-get(ctx), context.DeadlineExceeded, "no turn in time")
		later := get(t.Context())
		created := make(chan error, 1)
		go func() {
			_, err := c.Create(ctx, "/a", nil, framework.Persistent)
			created <- err
		}()
		err := <-created
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, framework.ErrOutcomeUnknown, "it was not sent")
		srv.Thaw()
		for _, failed := range append(sent, later) {
			require.NoError(t, <-failed)
		}
		assert.Equal(t, most+1, srv.Requests()["getData"])

		srv.Freeze()
		sent = sent[:0]
		for range most + 1 {
			sent = append(sent, get(t.Context()))
		}
		synctest.Wait()
		go func() { _ = c.Close() }()
		for _, failed := range sent {
			require.ErrorIs(t, <-failed, framework.ErrClosed)
		}
		srv.Thaw()
	})
}

// A call that waits for a connection goes on as soon as there is one.
func TestCallsGoOnAtOnceWhenConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		require.NoError(t, srv.Stop())
		c, err := framework.Start(kit.Config(srv, func(cfg *framework.Config) {
			cfg.SessionTimeout, cfg.ConnectTimeout, cfg.Retry = time.Hour, time.Hour, retry.NTimes(1, time.Hour)
		}))
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		began := time.Now()
		time.AfterFunc(time.Minute, func() { _ = srv.Restart() })
		require.NoError(t, c.EnsurePath(t.Context(), "/a/b/c"))
		assert.Less(t, time.Since(began), time.Minute+12*time.Second) // the longest pause, and more
		states(t, c)(connected)                                       // and no other state before it
	})
}

func TestCallsFromAListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		done := make(chan error, 10)
		c.States().Listen(func(s listeners.State) {
			if s != reconnected {
				return
			}
			// Calls one in another, from where Curator's users have deadlocked.
			_, err := c.Create(t.Context(), "/a", nil, framework.Persistent)
			if err == nil {
				_, _, _, err = c.GetW(t.Context(), "/a")
			}
			if err == nil {
				err = c.BlockUntilConnected(t.Context())
			}
			done <- err
		})
		require.NoError(t, srv.Disconnect(c.SessionID()))
		require.NoError(t, <-done)
	})
}

// A call that waits for a connection ends with the client.
func TestWaitForAConnectionEndsWithTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.CloseTimeout = time.Second })
		require.NoError(t, srv.Stop())
		failed := make(chan error, 1)
		go func() {
			_, _, err := c.Get(t.Context(), "/")
			failed <- err
		}()
		time.Sleep(time.Second)
		began := time.Now()
		go func() { _ = c.Close() }()
		require.ErrorIs(t, <-failed, framework.ErrClosed)
		assert.Zero(t, time.Since(began))
		time.Sleep(time.Minute)
	})
}

// callsOn are all calls on a path.
var callsOn = map[string]func(path string, version int32) func(ctx context.Context, c *framework.Client) error{
	"create": func(path string, _ int32) func(context.Context, *framework.Client) error {
		return creates(path, framework.Persistent, framework.Parents())
	},
	"create, protected": func(path string, _ int32) func(context.Context, *framework.Client) error {
		return creates(path, framework.Ephemeral, framework.Protected())
	},
	"create, or set": func(path string, _ int32) func(context.Context, *framework.Client) error {
		return creates(path, framework.Persistent, framework.OrSet())
	},
	"ensure path": func(path string, _ int32) func(context.Context, *framework.Client) error {
		return func(ctx context.Context, c *framework.Client) error { return c.EnsurePath(ctx, path) }
	},
	"get": reading(func(ctx context.Context, c *framework.Client, path string) error {
		_, _, err := c.Get(ctx, path)
		return err
	}),
	"get and watch": reading(func(ctx context.Context, c *framework.Client, path string) error {
		_, _, _, err := c.GetW(ctx, path)
		return err
	}),
	"exists": reading(func(ctx context.Context, c *framework.Client, path string) error {
		_, _, err := c.Exists(ctx, path)
		return err
	}),
	"exists and watch": reading(func(ctx context.Context, c *framework.Client, path string) error {
		_, _, _, err := c.ExistsW(ctx, path)
		return err
	}),
	"children": reading(func(ctx context.Context, c *framework.Client, path string) error {
		_, _, err := c.Children(ctx, path)
		return err
	}),
	"children and watch": reading(func(ctx context.Context, c *framework.Client, path string) error {
		_, _, _, err := c.ChildrenW(ctx, path)
		return err
	}),
	"get the list": reading(func(ctx context.Context, c *framework.Client, path string) error {
		_, _, err := c.GetACL(ctx, path)
		return err
	}),
	"sync": reading(func(ctx context.Context, c *framework.Client, path string) error { return c.Sync(ctx, path) }),
	"set": func(path string, version int32) func(context.Context, *framework.Client) error {
		return func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, path, nil, version)
			return err
		}
	},
	"set the list": func(path string, version int32) func(context.Context, *framework.Client) error {
		return func(ctx context.Context, c *framework.Client) error {
			_, err := c.SetACL(ctx, path, zk.WorldACL(zk.PermRead), version)
			return err
		}
	},
	"delete": func(path string, version int32) func(context.Context, *framework.Client) error {
		return deletes(path, version)
	},
	"delete all below": func(path string, version int32) func(context.Context, *framework.Client) error {
		return deletes(path, version, framework.Recursive(), framework.IfExists())
	},
	"transaction: create": committing(func(tx *framework.Transaction, path string, _ int32) { tx.Create(path, nil, framework.Persistent) }),
	"transaction: set":    committing(func(tx *framework.Transaction, path string, version int32) { tx.Set(path, nil, version) }),
	"transaction: delete": committing((*framework.Transaction).Delete),
	"transaction: check":  committing((*framework.Transaction).Check),
}

func reading(read func(context.Context, *framework.Client, string) error) func(string, int32) func(context.Context, *framework.Client) error {
	return func(path string, _ int32) func(context.Context, *framework.Client) error {
		return func(ctx context.Context, c *framework.Client) error { return read(ctx, c, path) }
	}
}

// committing puts a good operation before the one that is tried.
func committing(add func(*framework.Transaction, string, int32)) func(string, int32) func(context.Context, *framework.Client) error {
	return func(path string, version int32) func(context.Context, *framework.Client) error {
		return func(ctx context.Context, c *framework.Client) error {
			tx := c.Transaction()
			tx.Create("/made", nil, framework.Persistent)
			add(tx, path, version)
			_, err := tx.Commit(ctx)
			return err
		}
	}
}

// What no server could do anything with is refused by each call, and nothing is sent,
// neither then nor later. TestValidatePath has all that is wrong with paths.
func TestCalls_BadArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv)
		_, err := c.Create(t.Context(), "/a", []byte("x"), framework.Persistent)
		require.NoError(t, err)
		before := srv.Requests()
		for name, call := range callsOn {
			for path, want := range map[string]string{
				"": "it is empty", "a/b": "does not begin with a slash", "/a/": "ends with a slash", "/a//b": "empty element",
				"/a/../b": "relative element", "/a\x00b": "U+0000", "/a\xff": "not UTF-8", "/" + strings.Repeat("x", 4<<10): "longer than 4095 bytes",
			} {
				for _, client := range []*framework.Client{c, c.UsingNamespace("space")} {
					err := call(path, framework.AnyVersion)(t.Context(), client)
					require.ErrorIs(t, err, framework.ErrInvalidPath, "%s %.20q", name, path)
					require.ErrorContains(t, err, want, name)
					assert.False(t, framework.Retryable(err), name)
				}
			}
			for _, namespace := range []string{"/", "a/", "a//b", "..", "a\x00"} {
				err := call("/a", framework.AnyVersion)(t.Context(), c.UsingNamespace(namespace))
				require.ErrorIs(t, err, framework.ErrInvalidPath, "%s in %q", name, namespace)
				require.ErrorContains(t, err, "namespace", name)
			}
			if strings.HasPrefix(name, "set") || strings.HasPrefix(name, "delete") || strings.HasPrefix(name, "transaction: ") && name != "transaction: create" {
				err := call("/a", -2)(t.Context(), c)
				require.ErrorIs(t, err, framework.ErrInvalidArgument, name)
				require.ErrorContains(t, err, "version -2", name)
			}
			var none context.Context
			require.ErrorIs(t, call("/a", 0)(none, c), framework.ErrNilContext, name)
			late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
			require.ErrorIs(t, call("/a", 0)(late, c), context.DeadlineExceeded, name)
			cancel()
		}
		require.ErrorIs(t, c.Delete(t.Context(), "/a/", 0, framework.Guaranteed()), framework.ErrInvalidPath)
		_, err = c.Set(t.Context(), "/a", nil, 0, nil)
		require.ErrorIs(t, err, framework.ErrInvalidArgument)
		require.ErrorIs(t, c.Delete(t.Context(), "/a", 0, nil), framework.ErrInvalidArgument)
		_, err = c.Transaction().Commit(t.Context())
		require.ErrorIs(t, err, framework.ErrInvalidArgument, "an empty transaction")
		_, err = c.Transaction().Commit(t.Context(), nil)
		require.ErrorIs(t, err, framework.ErrInvalidArgument)
		assert.Equal(t, before, srv.Requests())
		require.NoError(t, c.Close())
		require.NoError(t, c.Close(), "a second time")
		for name, call := range callsOn {
			for _, client := range []*framework.Client{c, c.UsingNamespace("x"), nil} {
				require.ErrorIs(t, call("/a", 0)(t.Context(), client), framework.ErrClosed, name)
			}
		}
	})
}

// Each call below a chroot that does not exist says so, and asks for the chroot until it
// is there.
func TestMissingChrootIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		admin := kit.Connect(t, srv)
		for _, namespace := range []string{"", "space"} {
			c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.ConnectString, cfg.Namespace = cfg.ConnectString+"/app", namespace })
			for name, call := range callsOn {
				err := call("/a", framework.AnyVersion)(t.Context(), c)
				if name == "sync" { // which needs no node
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, framework.ErrNoNode, name)
				require.ErrorContains(t, err, "chroot /app: ", name)
				assert.Equal(t, 1, strings.Count(err.Error(), "chroot"), err)
				var op *framework.OpError
				require.ErrorAs(t, err, &op, name)
			}
			tx := c.Transaction()
			tx.Check("/a", 0)
			_, err := tx.Commit(t.Context())
			var refused *framework.TransactionError
			require.ErrorAs(t, err, &refused)
			assert.Empty(t, srv.Watches(), "of a call that failed")
		}
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.ConnectString += "/app" })
		there, _, err := c.Exists(t.Context(), "/")
		require.NoError(t, err, "whether the chroot exists may be asked")
		assert.False(t, there)
		require.NoError(t, c.Delete(t.Context(), "/", framework.AnyVersion, framework.IfExists()))
		_, _, err = c.Get(t.Context(), "/")
		require.EqualError(t, err, "get /app: chroot /app: zk: node does not exist")

		require.NoError(t, admin.EnsurePath(t.Context(), "/app"))
		before := srv.Requests()["exists"]
		for range 3 {
			_, _, err = c.Get(t.Context(), "/a")
			require.EqualError(t, err, "get /app/a: zk: node does not exist")
		}
		assert.Equal(t, before+1, srv.Requests()["exists"], "once it has been there, no more")
	})
}

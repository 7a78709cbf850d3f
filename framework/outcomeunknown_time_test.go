package framework_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The reply to a write is lost, another client writes, and the servers refuse the
// second sending. The caller cannot know whether the first one was applied, as it
// was here.
func TestRefusedAfterALostReply(t *testing.T) {
	for name, tc := range map[string]struct {
		op        string
		call      func(ctx context.Context, c *framework.Client) error
		meanwhile func(ctx context.Context, c *framework.Client) error
		refusal   error
	}{
		"set": {"setData", func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/a", []byte("mine"), 0, framework.Idempotent())
			return err
		}, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/a", []byte("theirs"), 1)
			return err
		}, framework.ErrBadVersion},
		"set, and deleted": {"setData", func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/a", []byte("mine"), 0, framework.Idempotent())
			return err
		}, func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, "/a", 1) }, framework.ErrNoNode},
		"set ACL": {"setACL", func(ctx context.Context, c *framework.Client) error {
			_, err := c.SetACL(ctx, "/a", []framework.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, 0, framework.Idempotent())
			return err
		}, func(ctx context.Context, c *framework.Client) error {
			_, err := c.SetACL(ctx, "/a", []framework.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, 1)
			return err
		}, framework.ErrBadVersion},
		"create": {"create", func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, "/b", []byte("mine"), framework.Persistent, framework.Idempotent())
			return err
		}, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/b", []byte("theirs"), 0)
			return err
		}, framework.ErrNodeExists},
		"delete": {"delete", func(ctx context.Context, c *framework.Client) error {
			return c.Delete(ctx, "/a", 0, framework.IfExists())
		}, func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, "/a", nil, framework.Persistent)
			if err == nil {
				_, err = c.Set(ctx, "/a", nil, 0)
			}
			return err
		}, framework.ErrBadVersion},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c, other := kit.Connect(t, srv), kit.Connect(t, srv)
				_, err := c.Create(t.Context(), "/a", []byte("x"), framework.Persistent)
				require.NoError(t, err)
				srv.On(zktest.Match{Op: tc.op, Session: c.SessionID(), Nth: 1}, zktest.CutAfter())
				srv.On(zktest.Match{Op: "connect"}, zktest.Delay(time.Second))
				time.AfterFunc(100*time.Millisecond, func() { assert.NoError(t, tc.meanwhile(t.Context(), other)) })
				err = tc.call(t.Context(), c)
				require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
				require.NotErrorIs(t, err, tc.refusal, "which would mean that nothing was written")
				require.ErrorContains(t, err, tc.refusal.Error())
				assert.True(t, framework.Ambiguous(err))
				var attempts *retry.Error
				require.ErrorAs(t, err, &attempts)
				assert.Equal(t, 2, attempts.Attempts)

				err = tc.call(t.Context(), c) // nothing is in doubt about this one
				require.ErrorIs(t, err, tc.refusal)
				assert.False(t, framework.Ambiguous(err))
			})
		})
	}
}

// The reply is lost, and the attempts that follow cannot even be sent.
func TestUnansweredAfterALostReply(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *framework.Client) error{
		"set": func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/a", []byte("mine"), 0, framework.Idempotent())
			return err
		},
		"set ACL": func(ctx context.Context, c *framework.Client) error {
			_, err := c.SetACL(ctx, "/a", []framework.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, 0, framework.Idempotent())
			return err
		},
		"delete": func(ctx context.Context, c *framework.Client) error {
			return c.Delete(ctx, "/a", 0, framework.Idempotent())
		},
		"create": func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, "/b", nil, framework.Persistent, framework.Idempotent())
			return err
		},
		"transaction": func(ctx context.Context, c *framework.Client) error {
			tx := c.Transaction()
			tx.Set("/a", []byte("mine"), 0)
			_, err := tx.Commit(ctx, framework.Idempotent())
			return err
		},
	} {
		for how, limit := range map[string]time.Duration{"cancelled": time.Second, "given up": time.Hour} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
					c := kit.Connect(t, srv)
					_, err := c.Create(t.Context(), "/a", []byte("x"), framework.Persistent)
					require.NoError(t, err)
					for _, op := range []string{"setData", "setACL", "delete", "create", "create2", "multi"} {
						srv.On(zktest.Match{Op: op, Session: c.SessionID()}, zktest.Call(func(zktest.Request) { srv.Refuse() }))
						srv.On(zktest.Match{Op: op, Session: c.SessionID()}, zktest.CutAfter())
					}
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					err = call(ctx, c)
					require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
					var op *framework.OpError
					require.ErrorAs(t, err, &op)
					require.NotErrorIs(t, err, framework.ErrNotConnected, "which would mean that nothing was written")
					require.Equal(t, how == "cancelled", errors.Is(err, ctx.Err()))
				})
			})
		}
	}
}

// A caller may have writes repeated that may have been applied. If the repetition
// is refused, the error says so: the refusal may be the work of the write itself.
func TestRepeatedByAClassifierOfTheCaller(t *testing.T) {
	all := retry.NTimes(3, time.Millisecond).WithClassifier(func(error) retry.Decision { return retry.Again })
	for name, tc := range map[string]struct {
		op   string
		call func(ctx context.Context, c *framework.Client) error
	}{
		"create": {"create", func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, "/b", nil, framework.Persistent)
			return err
		}},
		"delete": {"delete", func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, "/a", 0) }},
		"set": {"setData", func(ctx context.Context, c *framework.Client) error {
			_, err := c.Set(ctx, "/a", nil, 0)
			return err
		}},
		"transaction": {"multi", func(ctx context.Context, c *framework.Client) error {
			tx := c.Transaction()
			tx.Set("/a", nil, 0)
			_, err := tx.Commit(ctx)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = all })
				_, err := c.Create(t.Context(), "/a", nil, framework.Persistent)
				require.NoError(t, err)
				srv.On(zktest.Match{Op: tc.op, Session: c.SessionID(), Nth: 1}, zktest.CutAfter())
				err = tc.call(t.Context(), c)
				require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
				for _, refusal := range []error{framework.ErrNodeExists, framework.ErrNoNode, framework.ErrBadVersion} {
					require.NotErrorIs(t, err, refusal)
				}
			})
		})
	}
}

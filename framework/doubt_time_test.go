package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The reply is lost, somebody else writes, and what is sent again is refused: by
// what the caller knows, his write may have been there in between, as it was here.
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
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c, other := connect(t, config(srv)), connect(t, config(srv))
				_, err := c.Create(t.Context(), "/a", []byte("x"), framework.Persistent)
				require.NoError(t, err)
				srv.On(zktest.Match{Op: tc.op, Session: c.SessionID(), Nth: 1}, zktest.CutAfter())
				srv.On(zktest.Match{Op: "connect"}, zktest.Delay(time.Second))
				time.AfterFunc(100*time.Millisecond, func() { assert.NoError(t, tc.meanwhile(t.Context(), other)) })
				err = tc.call(t.Context(), c)
				require.ErrorIs(t, err, framework.ErrOutcomeUnknown)
				require.ErrorIs(t, err, tc.refusal)
				assert.True(t, framework.Ambiguous(err))

				err = tc.call(t.Context(), c) // nothing is in doubt about this one
				require.ErrorIs(t, err, tc.refusal)
				assert.False(t, framework.Ambiguous(err))
			})
		})
	}
}

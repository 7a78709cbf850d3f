package framework_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// swept is a call on nodes below /s, where /s/old has data "old" and children
// a and b, of which a has a child.
type swept struct {
	call func(ctx context.Context, c *framework.Client) error
	// done looks whether it has had its effect.
	done func(ctx context.Context, admin *framework.Client) bool
	// settles says that the call finds out by itself what a lost reply meant.
	settles bool
	// parts says that it may be done in part.
	parts bool
	// reads says that it changes nothing.
	reads bool
}

var everyCall = map[string]swept{
	"create":                      {call: creates("/s/new", framework.Ephemeral), done: there("/s/new")},
	"create with parents":         {call: creates("/s/x/y/new", framework.Persistent, framework.Parents()), done: there("/s/x/y/new")},
	"create a container":          {call: creates("/s/new", framework.Container), done: there("/s/new")},
	"create with a time to live":  {call: creates("/s/new", framework.Persistent, framework.TTL(time.Hour)), done: there("/s/new")},
	"create, idempotent":          {call: creates("/s/new", framework.Ephemeral, framework.Idempotent()), done: there("/s/new"), settles: true},
	"create or set":               {call: creates("/s/old", framework.Persistent, framework.OrSet(), framework.Idempotent()), done: has("/s/old", "new"), settles: true},
	"create, protected":           {call: creates("/s/p/new", framework.EphemeralSequential, framework.Protected(), framework.Parents()), done: one("/s/p"), settles: true},
	"create, protected, lasting":  {call: creates("/s/p/new", framework.Persistent, framework.Protected(), framework.Parents()), done: one("/s/p"), settles: true},
	"ensure path":                 {call: func(ctx context.Context, c *framework.Client) error { return c.EnsurePath(ctx, "/s/x/y/z") }, done: there("/s/x/y/z"), settles: true, parts: true},
	"set":                         {call: sets(framework.AnyVersion), done: has("/s/old", "new")},
	"set, idempotent":             {call: sets(0, framework.Idempotent()), done: has("/s/old", "new"), settles: true},
	"set the list":                {call: setsList(framework.AnyVersion), done: listed},
	"set the list, idempotent":    {call: setsList(0, framework.Idempotent()), done: listed, settles: true},
	"delete":                      {call: deletes("/s/old/b", 0), done: gone("/s/old/b")},
	"delete if it exists":         {call: deletes("/s/old/b", 0, framework.IfExists()), done: gone("/s/old/b"), settles: true},
	"delete all below":            {call: deletes("/s/old", framework.AnyVersion, framework.Recursive(), framework.IfExists()), done: gone("/s/old"), settles: true, parts: true},
	"delete all below, a version": {call: deletes("/s/old", 0, framework.Recursive(), framework.IfExists()), done: gone("/s/old"), settles: true, parts: true},
	"transaction":                 {call: commits(), done: has("/s/old", "new")},
	"transaction, idempotent":     {call: commits(framework.Idempotent()), done: has("/s/old", "new"), settles: true},
	"get": {call: func(ctx context.Context, c *framework.Client) error {
		data, _, err := c.Get(ctx, "/s/old")
		return expect(err, string(data) == "old")
	}, reads: true, settles: true},
	"exists": {call: func(ctx context.Context, c *framework.Client) error {
		there, _, err := c.Exists(ctx, "/s/old")
		return expect(err, there)
	}, reads: true, settles: true},
	"children": {call: func(ctx context.Context, c *framework.Client) error {
		names, _, err := c.Children(ctx, "/s/old")
		return expect(err, len(names) == 2)
	}, reads: true, settles: true},
	"get the list": {call: func(ctx context.Context, c *framework.Client) error {
		acl, _, err := c.GetACL(ctx, "/s/old")
		return expect(err, len(acl) == 1)
	}, reads: true, settles: true},
	"sync": {call: func(ctx context.Context, c *framework.Client) error { return c.Sync(ctx, "/s") }, reads: true, settles: true},
	"watches": {call: func(ctx context.Context, c *framework.Client) error {
		_, _, data, err := c.GetW(ctx, "/s/old")
		if err != nil {
			return err
		}
		defer data.Stop()
		_, _, children, err := c.ChildrenW(ctx, "/s/old")
		if err != nil {
			return err
		}
		defer children.Stop()
		_, _, created, err := c.ExistsW(ctx, "/s/none")
		if err != nil {
			return err
		}
		created.Stop()
		return nil
	}, reads: true, settles: true},
}

var errUnexpected = errors.New("another answer than was expected")

func expect(err error, ok bool) error {
	if err == nil && !ok {
		return errUnexpected
	}
	return err
}

func creates(path string, mode framework.Mode, opts ...framework.CreateOption) func(context.Context, *framework.Client) error {
	return func(ctx context.Context, c *framework.Client) error {
		_, err := c.Create(ctx, path, []byte("new"), mode, opts...)
		return err
	}
}

func sets(version int32, opts ...framework.SetOption) func(context.Context, *framework.Client) error {
	return func(ctx context.Context, c *framework.Client) error {
		_, err := c.Set(ctx, "/s/old", []byte("new"), version, opts...)
		return err
	}
}

func setsList(version int32, opts ...framework.SetOption) func(context.Context, *framework.Client) error {
	return func(ctx context.Context, c *framework.Client) error {
		_, err := c.SetACL(ctx, "/s/old", append(zk.WorldACL(zk.PermAll), zk.DigestACL(zk.PermRead, "u", "p")...), version, opts...)
		return err
	}
}

func deletes(path string, version int32, opts ...framework.DeleteOption) func(context.Context, *framework.Client) error {
	return func(ctx context.Context, c *framework.Client) error { return c.Delete(ctx, path, version, opts...) }
}

func commits(opts ...framework.CommitOption) func(context.Context, *framework.Client) error {
	return func(ctx context.Context, c *framework.Client) error {
		tx := c.Transaction()
		tx.Check("/s", 0)
		tx.Create("/s/new", nil, framework.Ephemeral)
		tx.Set("/s/old", []byte("new"), 0)
		tx.Delete("/s/old/b", framework.AnyVersion)
		results, err := tx.Commit(ctx, opts...)
		return expect(err, len(results) == 4)
	}
}

func there(path string) func(context.Context, *framework.Client) bool {
	return func(ctx context.Context, admin *framework.Client) bool {
		found, _, err := admin.Exists(ctx, path)
		return err == nil && found
	}
}

func gone(path string) func(context.Context, *framework.Client) bool {
	return func(ctx context.Context, admin *framework.Client) bool {
		found, _, err := admin.Exists(ctx, path)
		return err == nil && !found
	}
}

func has(path, data string) func(context.Context, *framework.Client) bool {
	return func(ctx context.Context, admin *framework.Client) bool {
		got, _, err := admin.Get(ctx, path)
		return err == nil && string(got) == data
	}
}

func one(parent string) func(context.Context, *framework.Client) bool {
	return func(ctx context.Context, admin *framework.Client) bool {
		names, _, err := admin.Children(ctx, parent)
		return err == nil && len(names) == 1
	}
}

func listed(ctx context.Context, admin *framework.Client) bool {
	acl, _, err := admin.GetACL(ctx, "/s/old")
	return err == nil && len(acl) == 2
}

// Each request of each call in turn is cut before or after it was applied, or
// refused. What the call returns must be true: no error means that it was done,
// an error that is not about a lost reply means that it was not.
func TestEachRequestOfEachCallFails(t *testing.T) {
	const busy, forbidden = -7, -102
	faults := map[string]zktest.Fault{
		"cut before": zktest.CutBefore(), "cut after": zktest.CutAfter(), "busy": zktest.Fail(busy), "forbidden": zktest.Fail(forbidden),
	}
	policies := map[string]retry.Policy{"once": retry.None(), "retried": retry.NTimes(5, time.Millisecond)}
	for name, s := range everyCall {
		t.Run(name, func(t *testing.T) {
			for kind, fault := range faults {
				for often, policy := range policies {
					for nth := 1; ; nth++ {
						hit := false
						synctest.Test(t, func(t *testing.T) {
							hit = sweepCall(t, s, policy, nth, fault, kind == "forbidden", often == "once")
						})
						require.False(t, t.Failed(), "%s, %s, at request %d", kind, often, nth)
						require.Less(t, nth, 50)
						if !hit {
							require.Greater(t, nth, 1)
							break
						}
					}
				}
			}
		})
	}
}

func sweepCall(t *testing.T, s swept, policy retry.Policy, nth int, fault zktest.Fault, final, once bool) (hit bool) {
	srv := zktest.Start(t, zktest.InMemory())
	admin := connect(t, config(srv))
	for _, path := range []string{"/s", "/s/old", "/s/old/a", "/s/old/a/c", "/s/old/b"} {
		_, err := admin.Create(t.Context(), path, []byte("old"), framework.Persistent)
		require.NoError(t, err)
	}
	c := connect(t, config(srv, func(cfg *framework.Config) { cfg.Retry = policy }))
	// What begins the next connection is not part of the call.
	counts := func(r zktest.Request) bool { return r.Op != "connect" && r.Op != "setWatches" }
	rule := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: counts}, fault)
	err := s.call(t.Context(), c)
	rule.Remove()
	hit = rule.Fired() > 0

	done := s.done == nil || s.done(t.Context(), admin)
	switch {
	case !hit:
		require.NoError(t, err)
		assert.True(t, done)
	case err == nil:
		assert.True(t, done, "it says so")
	case final:
		require.ErrorIs(t, err, framework.ErrNoAuth)
		assert.False(t, done && !s.reads)
	case framework.Ambiguous(err):
		assert.False(t, s.reads)
		assert.True(t, once || !s.settles, "%v", err)
	default:
		require.True(t, once, "may be repeated: %v", err)
		require.True(t, framework.Retryable(err), "%v", err)
		assert.False(t, done && !s.reads && !s.parts, "%v", err)
	}
	require.NoError(t, c.Close())
	assert.Empty(t, srv.Watches())
	assert.Empty(t, srv.Ephemerals(0))
	return hit
}

func TestErrorsSayWhatTheyAreAbout(t *testing.T) {
	for want, err := range map[string]error{
		"operation 3 on /a: zk: node does not exist": &framework.TransactionError{Index: 3, Path: "/a", Err: framework.ErrNoNode},
		"get /a: zk: node does not exist":            &framework.OpError{Op: "get", Path: "/a", Err: framework.ErrNoNode},
		"config: Auth zk: node does not exist":       &framework.ConfigError{Field: "Auth", Err: framework.ErrNoNode},
	} {
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, framework.ErrNoNode)
	}
	assert.Equal(t, "NodeDeleted", framework.NodeDeleted.String())
	assert.Equal(t, "EventType(0)", framework.EventType(0).String())
	assert.Equal(t, "EventType(9)", framework.EventType(9).String())
}

package framework_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
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
	// inSession says that it finds that out only while the session lives.
	inSession bool
	// parts says that it may be done in part.
	parts bool
	// goes says that what it makes goes with the session.
	goes bool
	// reads says that it changes nothing.
	reads bool
}

var everyCall = map[string]swept{
	"create":                      {call: creates("/s/new", framework.Ephemeral), done: there("/s/new"), goes: true},
	"create with parents":         {call: creates("/s/x/y/new", framework.Persistent, framework.Parents()), done: there("/s/x/y/new")},
	"create a container":          {call: creates("/s/new", framework.Container), done: there("/s/new")},
	"create with a time to live":  {call: creates("/s/new", framework.Persistent, framework.TTL(time.Hour)), done: there("/s/new")},
	"create, idempotent":          {call: creates("/s/new", framework.Ephemeral, framework.Idempotent()), done: there("/s/new"), settles: true, goes: true},
	"create or set":               {call: creates("/s/old", framework.Persistent, framework.OrSet(), framework.Idempotent()), done: has("/s/old", "new"), settles: true},
	"create, protected":           {call: creates("/s/p/new", framework.EphemeralSequential, framework.Protected(), framework.Parents()), done: one("/s/p"), settles: true, goes: true},
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
	"transaction, receipt":        {call: commits(framework.Receipt("/s")), done: has("/s/old", "new"), settles: true, inSession: true},
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

const noNode, forbidden, exists, busy = -101, -102, -110, -7

// sweepFailures are all that can happen at a request of a call. That an operator deletes
// nodes is not among them: they are no nodes of the call.
func sweepFailures() map[string]kit.Failure {
	all := kit.Failures()
	delete(all, "nodes deleted")
	return all
}

// everySweep has tests try every failure and every seed.
var everySweep = flag.Bool("sweeps", false, "sweep all calls for all failures, and not only what is picked")

// picked is what is swept each time.
func picked(failure, often string) bool {
	switch failure {
	case "cut before", "cut after", "no reply", fmt.Sprint("code ", busy), fmt.Sprint("code ", forbidden):
		return true
	case "cancelled", "closed", "expired":
		return often == "once"
	}
	return false
}

// Everything that can happen at a request happens at each request of each call
// in turn, until there is none left. What the call returns must be true: no error
// means that it was done, an error that is not about a lost reply means that it
// was not.
func TestEachRequestOfEachCallFails(t *testing.T) {
	policies := map[string]retry.Policy{"once": retry.None(), "retried": retry.NTimes(5, time.Millisecond)}
	awaits, tried := make(map[[2]string]int), make(map[[2]string]int)
	for name, s := range everyCall {
		t.Run(name, func(t *testing.T) {
			for kind, happens := range sweepFailures() {
				for often, policy := range policies {
					if !*everySweep && !picked(kind, often) {
						continue
					}
					nth := 1
					for ; ; nth++ {
						hit := false
						synctest.Test(t, func(t *testing.T) {
							hit = sweepCall(t, s, policy, nth, kind, happens, often == "once")
						})
						require.False(t, t.Failed(), "%s, %s, at request %d", kind, often, nth)
						require.Less(t, nth, 50)
						if !hit {
							break
						}
					}
					require.Greater(t, nth, 1)
					tried[[2]string{kind, often}] += nth - 1
					if kind == "cut before" && often == "once" {
						awaits[[2]string{"a request", name}] += nth - 1
					}
				}
			}
		})
	}
	kit.Tried(t, "calls, awaits", awaits)
	kit.Tried(t, "calls, failed", tried)
}

func sweepCall(t *testing.T, s swept, policy retry.Policy, nth int, kind string, happens kit.Failure, once bool) (hit bool) {
	srv := zktest.Start(t, zktest.InMemory())
	admin := kit.Connect(t, srv, kit.SmallBuffers)
	for _, path := range []string{"/s", "/s/old", "/s/old/a", "/s/old/a/c", "/s/old/b"} {
		_, err := admin.Create(t.Context(), path, []byte("old"), framework.Persistent)
		require.NoError(t, err)
	}
	c := kit.Connect(t, srv, kit.SmallBuffers, func(cfg *framework.Config) { cfg.Retry = policy })
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	// What begins the next connection is not part of the call.
	tries := func(r zktest.Request) bool { return r.Op != "connect" && r.Op != "setWatches" }
	rule := srv.On(zktest.Match{Session: c.SessionID(), Nth: nth, Func: tries}, happens(t, srv, c, func() { cancel(errors.New("given up")) }))
	err := s.call(ctx, c)
	rule.Remove()
	hit = rule.Fired() > 0
	time.Sleep(time.Second) // what is on its way arrives

	done := s.done == nil || s.done(t.Context(), admin)
	s.judge(t, hit, done, err, kind, once)
	if kind == "cancelled" && hit && err != nil {
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "given up")
	}
	require.NoError(t, c.Close())
	kit.NothingLeft(t, srv)
	return hit
}

// judge says whether what a caller was told is true.
func (s swept) judge(t *testing.T, hit, done bool, err error, kind string, once bool) {
	t.Helper()
	gone := s.goes && (kind == "expired" || kind == "closed")
	switch {
	case !hit:
		require.NoError(t, err)
		assert.True(t, done)
	case kind == fmt.Sprint("code ", noNode), kind == fmt.Sprint("code ", exists):
		// The server says what is not true, and so may the call.
	case kind == fmt.Sprint("code ", forbidden) && err == nil:
		// So it does here: no server refuses to say that a node is not there.
	case err == nil:
		assert.True(t, done || gone, "it says so")
	case kind == fmt.Sprint("code ", forbidden):
		require.ErrorIs(t, err, framework.ErrNoAuth)
		assert.False(t, done && !s.reads)
	case framework.Ambiguous(err):
		assert.False(t, s.reads)
		assert.True(t, once || !s.settles || kind == "cancelled" || kind == "closed" || kind == "expired" && s.inSession, "%v", err)
	default:
		assert.False(t, done && !s.reads && !s.parts, "%v", err)
		if strings.HasPrefix(kind, "cut") || kind == "part of the reply" || kind == fmt.Sprint("code ", busy) {
			require.True(t, once, "may be repeated: %v", err)
			require.True(t, framework.Retryable(err), "%v", err)
		}
	}
}

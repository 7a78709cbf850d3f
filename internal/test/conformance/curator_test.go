package conformance

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// Cases that Curator's tests have and ours had not, and some that Curator's have
// not either; docs/curator.md has the table.

const guid = `_c_[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`

// lockNames: what Java sorts by, and what it knows its own nodes by.
func lockNames(e *env) {
	c := e.client()
	rw := locks.NewInterProcessReadWriteLock(c.Client, "/rw")
	for _, tc := range []struct {
		lock locks.Lock
		want string
	}{
		{locks.NewInterProcessMutex(c.Client, "/m"), "/m/" + guid + `lock-\d{10}`},
		{rw.WriteLock(), "/rw/" + guid + `__WRIT__\d{10}`},
		{rw.ReadLock(), "/rw/" + guid + `__READ__\d{10}`},
		{locks.NewInterProcessSemaphore(c.Client, "/s", 2), "/s/leases/" + guid + `lease-\d{10}`},
		{locks.NewInterProcessSemaphoreMutex(c.Client, "/sm"), "/sm/leases/" + guid + `lease-\d{10}`},
	} {
		h, err := tc.lock.Acquire(e.soon())
		require.NoError(e, err)
		assert.Regexp(e, regexp.MustCompile("^"+tc.want+"$"), h.Path())
		there, stat, err := c.Exists(e.soon(), h.Path())
		require.NoError(e, err)
		require.True(e, there)
		assert.Equal(e, c.SessionID(), stat.EphemeralOwner, "ephemeral, ours")
		require.NoError(e, h.Release())
	}
	assert.ElementsMatch(e, []string{"locks", "leases"}, e.children("/s"))
	e.empties("/m", "/rw", "/s/locks", "/s/leases", "/sm/locks", "/sm/leases")
}

func lockNamespace(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.Namespace = "app" })
	whole := e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(c, path).Acquire(e.soon())
		require.NoError(e, err)
		if h.Path() != "" {
			assert.True(e, strings.HasPrefix(h.Path(), path+"/"), "as the client knows paths: %s", h.Path())
		}
		_, err = k.make(whole, "/app"+path).TryAcquire(e.soon(), 0)
		require.ErrorIs(e, err, locks.ErrNotAcquired, "the same lock")
		elsewhere, err := k.make(whole, path).TryAcquire(e.soon(), 0)
		require.NoError(e, err, "another one")
		require.NoError(e, elsewhere.Release())
		require.NoError(e, h.Release())
		e.empties("/app" + k.paths(path)[0])
	})
}

func lockAccessLists(e *env) {
	// Parents and nodes get different lists by their paths.
	c := e.client(withoutSASL, func(cfg *framework.Config) {
		cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("user:secret")}}
		cfg.ACL = func(path string) []framework.ACL {
			if strings.Contains(path, "lock-") {
				return zk.WorldACL(zk.PermRead)
			}
			return zk.AuthACL(zk.PermAll)
		}
	})
	stranger := e.client()
	h, err := locks.NewInterProcessMutex(c.Client, "/deep/er").Acquire(e.soon())
	require.NoError(e, err)
	_, _, err = stranger.current().Get(e.soon(), h.Path())
	require.NoError(e, err, "the node is open")
	acl, _, err := stranger.current().GetACL(e.soon(), h.Path())
	require.NoError(e, err)
	assert.Equal(e, zk.WorldACL(zk.PermRead), acl, "for reading alone")
	for _, path := range []string{"/deep", "/deep/er"} {
		_, _, err = stranger.Children(e.soon(), path)
		require.ErrorIs(e, err, framework.ErrNoAuth, "%s is not", path)
		acl, _, err := c.GetACL(e.soon(), path)
		require.NoError(e, err)
		assert.Equal(e, "digest", acl[0].Scheme)
	}
	_, err = locks.NewInterProcessMutex(stranger.Client, "/deep/er").Acquire(e.soon())
	require.ErrorIs(e, err, framework.ErrNoAuth)
	require.NoError(e, h.Release())
	require.NoError(e, c.Delete(e.soon(), "/deep", framework.AnyVersion, framework.Recursive())) // e's own client has no rights there
}

// lockFirstError: the caller is told why it failed, and not why the cleaning up
// after that failed.
func lockFirstError(e *env) {
	c := e.client()
	_, err := c.Create(e.soon(), "/l", nil, framework.Persistent, framework.ACLs(zk.ACL{Scheme: "world", ID: "anyone", Perms: zk.PermCreate | zk.PermAdmin}))
	require.NoError(e, err)
	told := c.Errors().Subscribe()
	defer told.Stop()
	_, err = locks.NewInterProcessMutex(c.Client, "/l").Acquire(e.soon())
	require.ErrorIs(e, err, framework.ErrNoAuth)
	assert.ErrorContains(e, err, "acquire ", "it is about the lock")
	assert.NotContains(e, err.Error(), "delete")
	assert.ErrorContains(e, <-told.C, "delete ", "and this is told elsewhere")
	_, err = c.SetACL(e.soon(), "/l", zk.WorldACL(zk.PermAll), 0)
	require.NoError(e, err)
}

// lockTryLeavesNoWatch: Curator's stays until the node ahead goes.
func lockTryLeavesNoWatch(e *env) {
	holder, c := e.client(), e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(holder, path).Acquire(e.soon())
		require.NoError(e, err)
		// A hold that lasts gets a watch on its own node after a while.
		own := max(1, len(h.Members()))
		kit.Until(e, "the holder's watches are there", func() bool { return len(e.b.watches(e, e.chroot+path)) == own })
		for _, wait := range []time.Duration{0, 300 * time.Millisecond, 400 * time.Millisecond} {
			e.refused(k.make(c, path), wait)
		}
		ctx, cancel := context.WithTimeout(e.Context(), 50*time.Millisecond)
		_, err = k.make(c, path).Acquire(ctx)
		cancel()
		require.ErrorIs(e, err, context.DeadlineExceeded)
		kit.Until(e, "no watch is left, while the holder goes on", func() bool { return len(e.b.watches(e, e.chroot+path)) == own })
		require.NoError(e, h.Err())
		require.NoError(e, h.Release())
	})
}

// lockRevocationShared: many goroutines with one lock object are asked each for
// itself, and giving back by one takes nothing from the others.
func lockRevocationShared(e *env) {
	a, b := e.client(), e.client()
	lock := locks.NewInterProcessMutex(a.Client, "/l", locks.Revocable())
	var mu sync.Mutex
	var asked []string
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			h, err := lock.Acquire(e.soon())
			if !assert.NoError(e, err) {
				return
			}
			select {
			case <-h.Revoked():
			case <-time.After(patience):
				assert.Fail(e, "nobody asked")
			}
			mu.Lock()
			asked = append(asked, h.Path())
			mu.Unlock()
			assert.NoError(e, h.Release())
		})
	}
	for i := range 5 {
		var first locks.Participant
		kit.Eventually(e, "somebody holds it who was not asked yet", func() error {
			all, err := locks.NewInterProcessMutex(b.Client, "/l").Participants(e.soon())
			if err != nil || len(all) == 0 {
				return errors.New("nobody")
			}
			mu.Lock()
			defer mu.Unlock()
			for _, path := range asked {
				if path == all[0].Path {
					return errors.New("the one before")
				}
			}
			first = all[0]
			return nilIf(len(asked) == i)
		})
		require.NoError(e, locks.AttemptRevoke(e.soon(), b.Client, first.Path))
		kit.Until(e, "it gives way", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(asked) > i
		})
	}
	wg.Wait()
	e.empties("/l")
}

// lockFormerNode: a node with the name that ours had in a session that is over
// (as a server that is behind still lists it) is not taken for ours
// (CURATOR-604).
func lockFormerNode(e *env) {
	holder, c, ghost := e.client(), e.client(), e.client()
	h, err := locks.NewInterProcessMutex(holder.Client, "/l").Acquire(e.soon())
	require.NoError(e, err)
	got := kit.Acquire(e, locks.NewInterProcessMutex(c.Client, "/l"))
	e.queued("/l", 2)
	former := ""
	for _, name := range e.children("/l") {
		if "/l/"+name != h.Path() {
			former = name
		}
	}
	old := c.SessionID()
	c.net.Refuse()
	c.end(old)
	e.queued("/l", 1)
	_, err = ghost.Create(e.soon(), "/l/"+former, nil, framework.Ephemeral)
	require.NoError(e, err)
	c.net.Accept()
	e.queued("/l", 3)
	require.NoError(e, h.Release())
	select {
	case <-got.Done():
		require.Fail(e, "a node of another session was taken for ours", "%v", got.Soon().Path())
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(e, ghost.Delete(e.soon(), "/l/"+former, framework.AnyVersion))
	h = got.Soon()
	_, stat, err := c.Exists(e.soon(), h.Path())
	require.NoError(e, err)
	assert.Equal(e, c.SessionID(), stat.EphemeralOwner)
	require.NoError(e, h.Release())
	e.empties("/l")
}

func deleteGuaranteedNamespace(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.Namespace = "app" })
	_, err := c.Create(e.soon(), "/a", nil, framework.Persistent)
	require.NoError(e, err)
	require.NoError(e, e.client().EnsurePath(e.soon(), "/a"))
	c.net.Freeze()
	ctx, cancel := context.WithTimeout(e.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(e, c.Delete(ctx, "/a", framework.AnyVersion, framework.Guaranteed()), context.DeadlineExceeded)
	c.net.Thaw()
	kit.Eventually(e, "it goes", func() error { return emptyOr(e.children("/app")) })
	assert.Contains(e, e.children(""), "a", "and not another one")

	kit.Until(e, "it was tried a second time, in the background", func() bool { return c.net.Requests()[wire.OpDelete] >= 2 })
	before := c.net.Requests()[wire.OpDelete]
	require.ErrorIs(e, c.Delete(e.soon(), "/none", framework.AnyVersion, framework.Guaranteed()), framework.ErrNoNode)
	require.NoError(e, c.Sync(e.soon(), "/"))
	assert.Equal(e, before+1, c.net.Requests()[wire.OpDelete], "what is not there is not tried again")
}

// semaphoreNestedOwners: a caller of AcquireN gives way to an owner that takes
// leases one after another, as Curator does, when each waits for the other.
func semaphoreNestedOwners(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	semaphore := func(c *client) *locks.InterProcessSemaphore {
		return locks.NewInterProcessSemaphore(c.Client, "/s", 3)
	}
	firstOfA, err := semaphore(a).Acquire(e.soon())
	require.NoError(e, err)
	firstOfB, err := semaphore(b).Acquire(e.soon())
	require.NoError(e, err)
	e.queued("/s/locks", 0) // their turns are over
	both := kit.Begin(e, func() (*locks.Hold, error) { return semaphore(c).AcquireN(e.soon(), 2) })
	e.queued("/s/locks", 1)
	secondOfA := kit.Acquire(e, semaphore(a))
	e.queued("/s/locks", 2)
	secondOfB := kit.Acquire(e, semaphore(b))

	h := secondOfA.Soon()
	require.True(e, both.Pending(), "four leases of three")
	require.NoError(e, h.Release())
	require.NoError(e, firstOfA.Release())
	require.NoError(e, secondOfB.Soon().Release())
	require.NoError(e, firstOfB.Release())
	require.NoError(e, both.Soon().Release())
	e.empties("/s/locks", "/s/leases")
}

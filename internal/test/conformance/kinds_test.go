package conformance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// participant is one of all kinds that can stand at a path.
type participant struct {
	name    string
	queue   string // those of one queue wait for each other
	acquire func(ctx context.Context, c *client, path string) (release func() error, err error)
	look    func(ctx context.Context, c *client, path string) error // Participants and Observe, nil for none
}

func lockAs(name, queue string, lock func(c *client, path string) locks.Lock) participant {
	p := participant{name: name, queue: queue}
	p.acquire = func(ctx context.Context, c *client, path string) (func() error, error) {
		hold, err := lock(c, path).Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return hold.Release, nil
	}
	p.look = func(ctx context.Context, c *client, path string) error {
		listing, can := lock(c, path).(interface {
			Participants(ctx context.Context) ([]locks.Participant, error)
		})
		if !can {
			return nil
		}
		_, err := listing.Participants(ctx)
		return err
	}
	return p
}

// standing is a Latch or a Selector.
type standing interface {
	candidate
	Observe(ctx context.Context) iter.Seq2[leader.Observation, error]
}

func electionAs(name, queue string, stand func(c *client, path string) standing) participant {
	return participant{
		name, queue,
		func(ctx context.Context, c *client, path string) (func() error, error) {
			term, err := stand(c, path).Await(ctx)
			if err != nil {
				return nil, err
			}
			return term.Release, nil
		},
		func(ctx context.Context, c *client, path string) error {
			candidate := stand(c, path)
			_, err := candidate.Participants(ctx)
			for _, observed := range candidate.Observe(ctx) {
				if (observed == nil) != (err == nil) {
					return fmt.Errorf("Participants says %w, and Observe %w", err, observed)
				}
				break
			}
			return err
		},
	}
}

// allKinds are all kinds of participants. A new one belongs here.
var allKinds = []participant{
	lockAs("mutex", "mutex", func(c *client, path string) locks.Lock { return locks.NewInterProcessMutex(c.Client, path) }),
	lockAs("read", "read-write", func(c *client, path string) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c.Client, path).ReadLock()
	}),
	lockAs("write", "read-write", func(c *client, path string) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c.Client, path).WriteLock()
	}),
	lockAs("semaphore", "semaphore", func(c *client, path string) locks.Lock { return locks.NewInterProcessSemaphore(c.Client, path, 1) }),
	lockAs("semaphore-mutex", "semaphore", func(c *client, path string) locks.Lock {
		return locks.NewInterProcessSemaphoreMutex(c.Client, path)
	}),
	lockAs("multi", "mutex", func(c *client, path string) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c.Client, path), locks.NewInterProcessMutex(c.Client, path+"-other"))
	}),
	electionAs("latch", "latch", func(c *client, path string) standing { return leader.NewLatch(c.Client, path) }),
	electionAs("selector", "mutex", func(c *client, path string) standing { return leader.NewSelector(c.Client, path) }),
}

// lockKinds: of each two kinds at one path, the second waits for the first if they stand in
// one queue, and is refused otherwise.
func lockKinds(e *env) {
	a, b := e.client(), e.client()
	for _, first := range allKinds {
		for _, second := range allKinds {
			for clients, other := range map[string]*client{"one client": a, "two clients": b} {
				kindsAt(e, fmt.Sprintf("%s, then %s, %s", first.name, second.name, clients), first, second, a, other)
			}
		}
	}
}

func kindsAt(e *env, what string, first, second participant, a, b *client) {
	path := fmt.Sprintf("/%s-%s-%t", first.name, second.name, a == b)
	release, err := first.acquire(e.soon(), a, path)
	require.NoError(e, err, what)
	if first.queue != second.queue {
		_, err := second.acquire(e.soon(), b, path)
		require.ErrorIs(e, err, locks.ErrInvalidLock, what)
		require.ErrorContains(e, err, path, what)
		if second.name != "multi" { // which lists nobody
			require.ErrorIs(e, second.look(e.soon(), b, path), locks.ErrInvalidLock, what)
		}
		require.NoError(e, release(), what)
		return
	}
	require.NoError(e, second.look(e.soon(), b, path), what)
	if first.name == "read" && second.name == "read" {
		giveBack, err := second.acquire(e.soon(), b, path)
		require.NoError(e, err, what)
		require.NoError(e, giveBack(), what)
		require.NoError(e, release(), what)
		return
	}
	ctx, cancel := context.WithTimeout(e.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = second.acquire(ctx, b, path)
	require.ErrorIs(e, err, context.DeadlineExceeded, what)
	require.False(e, errors.Is(err, locks.ErrInvalidLock), what)
	require.NoError(e, release(), what)
	giveBack, err := second.acquire(e.soon(), b, path)
	require.NoError(e, err, what)
	require.NoError(e, giveBack(), what)
}

// lockMissingChroot: a chroot that does not exist is named by all, also by those who only
// look.
func lockMissingChroot(e *env) {
	c := e.client(func(cfg *framework.Config) { cfg.ConnectString += "/nowhere" })
	for _, k := range allKinds {
		_, err := k.acquire(e.soon(), c, "/l")
		require.ErrorIs(e, err, framework.ErrNoNode, k.name)
		require.ErrorContains(e, err, "chroot "+e.chroot+"/nowhere", k.name)
		if k.name != "multi" {
			err := k.look(e.soon(), c, "/l")
			require.ErrorIs(e, err, framework.ErrNoNode, k.name)
			require.ErrorContains(e, err, "chroot "+e.chroot+"/nowhere", k.name)
		}
	}
	require.Empty(e, e.children(""), "it is not ours to make")
}

// lockForeignKinds: the nodes of other languages' locks count, of Curator's and of kazoo's.
func lockForeignKinds(e *env) {
	peer, c := e.client(), e.client()
	for i, foreign := range []struct{ node, queue string }{
		{"lock-", "mutex"}, {"__READ__", "read-write"}, {"__WRIT__", "read-write"}, {"leases/lease-", "semaphore"},
		{"latch-", "latch"}, {"__lock__", "kazoo"}, {"__rlock__", "kazoo"},
	} {
		for _, ours := range allKinds {
			if ours.queue == foreign.queue {
				continue
			}
			path, what := fmt.Sprintf("/foreign-%d-%s", i, ours.name), foreign.node+", then "+ours.name
			node := kit.Put(e, peer.Client, path+"/"+foreign.node)
			_, err := ours.acquire(e.soon(), c, path)
			require.ErrorIs(e, err, locks.ErrInvalidLock, what)
			if ours.name != "multi" {
				require.ErrorIs(e, ours.look(e.soon(), c, path), locks.ErrInvalidLock, what)
			}
			require.NoError(e, peer.Delete(e.Context(), node, framework.AnyVersion), what) // which nobody has touched
		}
	}
}

package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// candidate is a Latch or a Selector.
type candidate interface {
	Await(ctx context.Context) (*leader.Term, error)
	Participants(ctx context.Context) ([]leader.Participant, error)
	Run(ctx context.Context, lead func(ctx context.Context, term *leader.Term) error) error
}

// elections runs a part of a case on either layout.
func elections(fn func(stand func(c *client, id string) candidate, path, kind string)) {
	fn(func(c *client, id string) candidate { return leader.NewLatch(c.Client, "/latch", leader.ID(id)) }, "/latch", "latch-")
	fn(func(c *client, id string) candidate { return leader.NewSelector(c.Client, "/selector", leader.ID(id)) }, "/selector", "lock-")
}

// awaits stands in a goroutine.
func awaits(e *env, c candidate) <-chan *leader.Term {
	got := make(chan *leader.Term, 1)
	ctx := e.soon()
	go func() {
		term, err := c.Await(ctx)
		assert.NoError(e, err)
		got <- term
	}()
	return got
}

func (e *env) elected(ch <-chan *leader.Term) *leader.Term {
	e.Helper()
	select {
	case term := <-ch:
		require.NotNil(e, term)
		return term
	case <-time.After(patience):
		require.FailNow(e, "nobody leads in time")
		return nil
	}
}

// leaderTerms: one leads after the other, with Curator's nodes and rising numbers.
func leaderTerms(e *env) {
	a, b := e.client(), e.client()
	elections(func(stand func(*client, string) candidate, path, kind string) {
		first, err := stand(a, "a").Await(e.soon())
		require.NoError(e, err)
		assert.Regexp(e, "^"+path+"/_c_[-0-9a-f]{36}-"+kind+"[0-9]{10}$", first.Path())
		data, stat, err := a.Get(e.soon(), first.Path())
		require.NoError(e, err)
		assert.Equal(e, "a", string(data))
		assert.Equal(e, stat.Czxid, first.Number())
		next := awaits(e, stand(b, "b"))
		e.queued(path, 2)
		all, err := stand(a.current(), "x").Participants(e.soon())
		require.NoError(e, err)
		require.Len(e, all, 2)
		assert.Equal(e, []string{"a", "b"}, []string{all[0].ID, all[1].ID})
		assert.True(e, all[0].Leads && !all[1].Leads)
		require.NoError(e, first.Release())
		second := e.elected(next)
		assert.Less(e, first.Number(), second.Number())
		require.NoError(e, second.Release())
		e.empties(path)
	})
}

// leaderLost: the session or the node goes, and the next candidate leads.
func leaderLost(e *env) {
	for _, fault := range []struct {
		end   func(c, other *client, term *leader.Term)
		cause error
	}{
		{func(c, _ *client, _ *leader.Term) { c.expire() }, framework.ErrSessionExpired},
		{func(_, other *client, term *leader.Term) {
			require.NoError(e, other.Delete(e.soon(), term.Path(), framework.AnyVersion))
		}, locks.ErrNodeDeleted},
	} {
		c, other := e.client(), e.client()
		elections(func(stand func(*client, string) candidate, path, _ string) {
			first, err := stand(c, "a").Await(e.soon())
			require.NoError(e, err)
			next := awaits(e, stand(other, "b"))
			e.queued(path, 2)
			fault.end(c, other, first)
			e.done(first.Context().Done(), "the work ends")
			require.ErrorIs(e, context.Cause(first.Context()), locks.ErrLockLost)
			kit.Until(e, "why", func() bool { return errors.Is(first.Err(), fault.cause) })
			second := e.elected(next)
			assert.Less(e, first.Number(), second.Number())
			tx := first.Transaction()
			tx.Create("/late", nil, framework.Persistent)
			_, err = tx.Commit(e.soon())
			require.ErrorIs(e, err, locks.ErrFenced)
			require.ErrorIs(e, first.Release(), locks.ErrLockLost)
			require.NoError(e, second.Release())
			e.empties(path)
		})
	}
}

// leaderReplyLost: the reply to the creation of a candidate's node is lost.
func leaderReplyLost(e *env) {
	c := e.client()
	elections(func(stand func(*client, string) candidate, path, _ string) {
		require.NoError(e, c.EnsurePath(e.soon(), path))
		rule := c.net.LoseReply(wire.OpCreate2, 1)
		term, err := stand(c, "a").Await(e.soon())
		require.NoError(e, err)
		e.fired(rule)
		assert.Len(e, e.children(path), 1, "one node")
		require.NoError(e, term.Err())
		if err := term.Release(); err != nil {
			require.ErrorIs(e, err, locks.ErrReleasePending)
		}
		e.empties(path)
	})
}

// leaderRun: functions run one after the other, in one election.
func leaderRun(e *env) {
	const candidates, each = 3, 5
	elections(func(stand func(*client, string) candidate, path, _ string) {
		ran := make(chan error, candidates)
		inside := make(chan struct{}, 1) // has room for one leader
		for range candidates {
			c, terms := e.client(), 0
			ctx := e.soon()
			go func() {
				ran <- stand(c, "x").Run(ctx, func(context.Context, *leader.Term) error {
					select {
					case inside <- struct{}{}:
						defer func() { <-inside }()
					default:
						assert.Fail(e, "another one leads")
					}
					if terms++; terms == each {
						return leader.ErrLeave
					}
					return nil
				})
			}()
		}
		for range candidates {
			require.NoError(e, <-ran)
		}
		e.empties(path)
	})
}

// leaderObserved: an observer hears of each leader, and of nobody.
func leaderObserved(e *env) {
	c, other := e.client(), e.client()
	ctx, cancel := context.WithCancel(e.soon())
	defer cancel()
	seen := make(chan string)
	over := make(chan error, 1)
	go func() {
		for now, err := range leader.NewLatch(c.Client, "/latch").Observe(ctx) {
			if err != nil {
				over <- err
				return
			}
			if now.Known {
				id := "nobody"
				if now.Leader != nil {
					id = now.Leader.ID
				}
				seen <- id
			}
		}
	}()
	next := func() string {
		select {
		case id := <-seen:
			return id
		case <-time.After(patience):
			return "nothing"
		}
	}
	assert.Equal(e, "nobody", next())
	a, err := leader.NewLatch(other.Client, "/latch", leader.ID("a")).Await(e.soon())
	require.NoError(e, err)
	assert.Equal(e, "a", next())
	b := awaits(e, leader.NewLatch(other.Client, "/latch", leader.ID("b")))
	e.queued("/latch", 2)
	require.NoError(e, a.Release())
	assert.Equal(e, "b", next())
	require.NoError(e, e.elected(b).Release())
	assert.Equal(e, "nobody", next())
	cancel()
	require.ErrorIs(e, <-over, context.Canceled)
	e.empties("/latch")
}

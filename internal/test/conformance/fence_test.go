package conformance

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/faultnet"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// account makes a node that writes go to.
func (e *env) account(c *client) {
	e.Helper()
	_, err := c.Create(e.soon(), "/account", []byte("0"), framework.Persistent, framework.OrSet())
	require.NoError(e, err)
}

func (e *env) balance(c *client) string {
	e.Helper()
	data, _, err := c.current().Get(e.soon(), "/account")
	require.NoError(e, err)
	return string(data)
}

func fenceCommit(e *env) {
	c := e.client()
	each(e, func(k kind, path string) {
		e.account(c)
		h, err := k.make(c, path).Acquire(e.soon())
		require.NoError(e, err)
		tx := h.Transaction()
		tx.Set("/account", []byte("1"), framework.AnyVersion)
		tx.Create("/"+k.name+"-made", nil, framework.Persistent)
		results, err := tx.Commit(e.soon())
		require.NoError(e, err, k.name)
		require.Len(e, results, 2)
		assert.NotNil(e, results[0].Stat)
		assert.Equal(e, "/"+k.name+"-made", results[1].Path)
		assert.Equal(e, "1", e.balance(c))
		_, err = h.Transaction().Commit(e.soon())
		require.NoError(e, err, "nothing but the proof")

		tx = h.Transaction()
		tx.Check("/account", framework.AnyVersion)
		tx.Set("/account", []byte("2"), 77)
		_, err = tx.Commit(e.soon())
		var own *framework.TransactionError
		require.ErrorAs(e, err, &own, "the caller's own conflict")
		assert.Equal(e, 1, own.Index)
		require.NotErrorIs(e, err, locks.ErrFenced)
		require.NoError(e, h.Err())

		tx = h.Transaction()
		tx.Delete("account", 0)
		_, err = tx.Commit(e.soon())
		require.ErrorIs(e, err, framework.ErrInvalidPath)
		assert.Contains(e, err.Error(), "operation 0 of the transaction")

		tx = h.Transaction()
		tx.Set("/account", []byte("2"), 77)
		_, err = tx.CommitAndRelease(e.soon())
		require.ErrorAs(e, err, &own)
		require.ErrorContains(e, err, "the hold is released")
		require.ErrorIs(e, h.Err(), locks.ErrReleased)
		require.ErrorIs(e, h.Release(), locks.ErrReleased)
		require.NoError(e, locks.Do(e.soon(), k.make(c, path), func(context.Context) error { return nil }))
		tx = h.Transaction()
		tx.Set("/account", []byte("3"), framework.AnyVersion)
		_, err = tx.Commit(e.soon())
		require.ErrorIs(e, err, locks.ErrReleased)
		_, err = tx.CommitAndRelease(e.soon())
		require.ErrorIs(e, err, locks.ErrReleased)
		assert.Equal(e, "1", e.balance(c))
	})
}

// The node is gone and the client does not know it yet.
func fenceStale(e *env) {
	c, other := e.client(), e.client()
	each(e, func(k kind, path string) {
		for i, commit := range []func(*locks.Transaction) ([]framework.Result, error){
			func(tx *locks.Transaction) ([]framework.Result, error) { return tx.CommitAndRelease(e.soon()) },
			func(tx *locks.Transaction) ([]framework.Result, error) { return tx.Commit(e.soon()) },
			func(tx *locks.Transaction) ([]framework.Result, error) {
				return tx.Commit(e.soon(), framework.Idempotent())
			},
		} {
			e.account(other)
			h, err := k.make(c, path).Acquire(e.soon())
			require.NoError(e, err)
			node := h.Path()
			if members := h.Members(); members != nil {
				node = members[1].Path()
			}
			_, stat, err := other.current().Get(e.soon(), "/account")
			require.NoError(e, err)
			tx := h.Transaction()
			tx.Set("/account", []byte("stale"), stat.Version)
			// The node of a hold that has lasted is watched, so it goes while the transaction is on its way.
			c.net.BeforeTransaction(wire.OpSetData, func() { assert.NoError(e, other.Delete(e.soon(), node, framework.AnyVersion)) })
			_, err = commit(tx)
			require.ErrorIs(e, err, locks.ErrFenced, k.name)
			require.ErrorIs(e, err, locks.ErrLockLost)
			assert.Equal(e, "0", e.balance(other))
			if i == 0 { // CommitAndRelease ends it before the client hears of the loss
				require.ErrorIs(e, context.Cause(h.Context()), locks.ErrReleased)
				require.ErrorIs(e, h.Release(), locks.ErrReleased)
				continue
			}
			assert.Equal(e, locks.Lost, h.State(), "and the hold knows now")
			require.ErrorIs(e, context.Cause(h.Context()), locks.ErrLockLost)
			_, err = h.Transaction().Commit(e.soon())
			require.ErrorIs(e, err, locks.ErrFenced)
			require.ErrorIs(e, h.Release(), locks.ErrLockLost)
		}
	})
}

func fenceRelease(e *env) {
	c, other := e.client(), e.client()
	each(e, func(k kind, path string) {
		e.account(c)
		lock := k.make(c, path)
		h, err := lock.Acquire(e.soon())
		require.NoError(e, err)
		waiting := kit.Acquire(e, k.make(other, path))
		if k.reentrant {
			inner, err := lock.Acquire(h.Context())
			require.NoError(e, err)
			tx := inner.Transaction()
			tx.Set("/account", []byte("1"), framework.AnyVersion)
			_, err = tx.CommitAndRelease(e.soon())
			require.NoError(e, err)
			require.ErrorIs(e, inner.Release(), locks.ErrReleased)
			require.NoError(e, h.Err(), "the outer hold keeps the lock")
		}
		tx := h.Transaction()
		tx.Set("/account", []byte("2"), framework.AnyVersion)
		results, err := tx.CommitAndRelease(e.soon())
		require.NoError(e, err)
		require.Len(e, results, 1)
		assert.Equal(e, locks.Released, h.State())
		require.ErrorIs(e, context.Cause(h.Context()), locks.ErrReleased)
		require.ErrorIs(e, h.Release(), locks.ErrReleased)
		require.NoError(e, waiting.Soon().Release())
		assert.Equal(e, "2", e.balance(c))
	})
}

// A long hold has a watch on its own node, whose event comes before the reply
// to the transaction that deletes it.
func fenceReleaseWatched(e *env) {
	c := e.client()
	each(e, func(k kind, path string) {
		h, err := k.make(c, path).Acquire(e.soon())
		require.NoError(e, err)
		var states []locks.HoldState
		told := make(chan struct{})
		h.Listen(func(s locks.HoldState) {
			if states = append(states, s); s == locks.Released || s == locks.Lost {
				close(told)
			}
		})
		kit.Eventually(e, "its node is watched", func() error {
			if len(e.b.watches(e, e.chroot+path)) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		_, err = h.Transaction().CommitAndRelease(e.soon())
		require.NoError(e, err)
		e.done(told, "the last state")
		assert.Equal(e, []locks.HoldState{locks.Held, locks.Released}, states)
	})
}

func fenceReplyLost(e *env) {
	c, other := e.client(), e.client()
	each(e, func(k kind, path string) {
		for name, fault := range map[string]func(wire.Op) *faultnet.Rule{"lost": c.net.LoseReplyOfTransaction, "cut": c.net.CutBeforeTransaction} {
			for _, release := range []bool{false, true} {
				for _, idempotent := range []bool{false, true} {
					e.account(other)
					_, stat, err := other.current().Get(e.soon(), "/account")
					require.NoError(e, err)
					h, err := k.make(c, path).Acquire(e.soon())
					require.NoError(e, err)
					var opts []framework.CommitOption
					if idempotent {
						opts = append(opts, framework.Idempotent())
					}
					asks := fault(wire.OpCheck)
					_, err = h.Transaction().Commit(e.soon())
					require.NoError(e, err, "%s %s: it only asks", k.name, name)
					asks.Remove()
					tx := h.Transaction()
					tx.Set("/account", []byte("1"), stat.Version)
					fault(wire.OpSetData)
					commit := tx.Commit
					if release {
						commit = tx.CommitAndRelease
					}
					_, err = commit(e.soon(), opts...)
					if idempotent && (!release || name != "lost") { // then the node that would tell is gone
						require.NoError(e, err, "%s %s", k.name, name)
						assert.Equal(e, "1", e.balance(other))
					} else {
						require.ErrorIs(e, err, framework.ErrOutcomeUnknown, "%s %s", k.name, name)
						require.NotErrorIs(e, err, locks.ErrFenced)
						require.NotErrorIs(e, err, locks.ErrLockLost)
					}
					if release {
						assert.ErrorIs(e, h.Err(), locks.ErrReleased, "over, whatever the outcome")
					} else if err := h.Release(); err != nil {
						require.ErrorIs(e, err, locks.ErrReleasePending)
					}
					require.NoError(e, locks.Do(e.soon(), k.make(other, path), func(context.Context) error { return nil }))
				}
			}
		}
	})
}

func fenceNone(e *env) {
	a, b := e.client(), e.client()
	foreign, _ := locks.NewHold(e.Context(), func() error { return nil })
	tx := foreign.Transaction()
	_, err := tx.Commit(e.soon())
	require.ErrorIs(e, err, locks.ErrNoFence)
	require.NoError(e, foreign.Err())

	h, err := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(a.Client, "/a"), locks.NewInterProcessMutex(b.Client, "/b")).
		Acquire(e.soon())
	require.NoError(e, err)
	_, err = h.Transaction().Commit(e.soon())
	require.ErrorIs(e, err, locks.ErrNoFence, "two clients")
	require.NoError(e, h.Members()[1].Release(), "early")
	_, err = h.Transaction().Commit(e.soon())
	require.NoError(e, err, "one client is left")
	_, err = h.Transaction().CommitAndRelease(e.soon())
	require.NoError(e, err)
	e.empties("/a", "/b")

	var zero locks.Hold
	_, err = zero.Transaction().Commit(e.soon())
	require.ErrorIs(e, err, locks.ErrReleased)
	_, err = (&locks.Transaction{}).Commit(e.soon())
	require.ErrorIs(e, err, locks.ErrReleased)
}

// Many add to one number, which is written with no other condition than the
// lock.
func fenceExact(e *env) {
	e.account(e.client())
	const rounds = 20
	var applied atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		c := e.client()
		wg.Go(func() {
			lock := locks.NewInterProcessMutex(c.Client, "/l")
			for range rounds {
				h, err := lock.Acquire(e.soon())
				if !assert.NoError(e, err) {
					return
				}
				data, _, err := c.Get(h.Context(), "/account")
				if !assert.NoError(e, err) {
					return
				}
				n, err := strconv.Atoi(string(data))
				if !assert.NoError(e, err) {
					return
				}
				tx := h.Transaction()
				tx.Set("/account", []byte(strconv.Itoa(n+1)), framework.AnyVersion)
				if _, err = tx.CommitAndRelease(e.soon()); !assert.NoError(e, err) {
					return
				}
				applied.Add(1)
			}
		})
	}
	wg.Wait()
	assert.Equal(e, strconv.Itoa(4*rounds), e.balance(e.client()))
	assert.Equal(e, int32(4*rounds), applied.Load())
	e.empties("/l")
}

// A MultiLock's nodes are made in one transaction, whose token they share, and
// which rises also among other writes.
func multiToken(e *env) {
	noise, stop := context.WithCancel(e.Context())
	var wg, busy sync.WaitGroup
	for range 2 {
		c := e.client()
		busy.Go(func() {
			for noise.Err() == nil {
				_, err := c.Create(noise, "/noise-", nil, framework.EphemeralSequential)
				assert.True(e, err == nil || noise.Err() != nil, "%v", err)
			}
		})
	}
	var mu sync.Mutex
	var last int64
	for range 3 {
		c := e.client()
		wg.Go(func() {
			lock := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c.Client, "/a"),
				locks.NewInterProcessReadWriteLock(c.Client, "/b").WriteLock())
			for range 30 {
				err := locks.Do(e.soon(), lock, func(context.Context) error { return nil })
				assert.NoError(e, err)
				h, err := lock.Acquire(e.soon())
				if !assert.NoError(e, err) {
					return
				}
				token := h.FencingToken()
				mu.Lock()
				assert.Greater(e, token, last)
				last = token
				mu.Unlock()
				for _, m := range h.Members() {
					_, stat, err := c.Exists(e.soon(), m.Path())
					if assert.NoError(e, err) && assert.NotNil(e, stat) {
						assert.Equal(e, stat.Czxid, token)
					}
				}
				assert.NoError(e, h.Release())
			}
		})
	}
	wg.Wait()
	stop()
	busy.Wait()
	e.empties("/a", "/b")
}

package locks_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// laptop is a clock whose machine sleeps when it is told to: then no timer of
// the process runs, while the servers' go on.
type laptop struct{ slept atomic.Int64 }

func (l *laptop) Now() time.Time { return time.Now().Add(time.Duration(l.slept.Load())) }

func (l *laptop) Since(t time.Time) time.Duration { return l.Now().Sub(t) }

func (l *laptop) sleep(d time.Duration) { l.slept.Add(int64(d)) }

// config is a configuration of a client on it.
func (l *laptop) config(cfg *framework.Config) {
	*cfg = cfg.WithSeams(session.Key{}, session.Seams{Clock: l})
}

func TestLeaseEndsWhileTheMachineSleeps(t *testing.T) {
	for name, change := range map[string]func(*framework.Config){"by server": byServer, "by quorum": func(*framework.Config) {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				machine := new(laptop)
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(20*time.Millisecond))
				c := connect(t, srv, change, machine.config)
				asked, err := locks.NewInterProcessMutex(c, "/asked").Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(time.Minute)

				machine.sleep(5 * time.Second)
				assert.Equal(t, locks.Held, asked.State(), "a nap")
				time.Sleep(time.Minute)
				require.NoError(t, asked.Err())
				require.NoError(t, asked.Context().Err())

				machine.sleep(30 * time.Second)
				require.ErrorIs(t, asked.Err(), locks.ErrLockLost, "who asks is told at once")
				waited, err := locks.NewInterProcessMutex(c, "/waited").Acquire(t.Context())
				require.NoError(t, err, "in a new session")
				time.Sleep(time.Minute)
				require.NoError(t, waited.Err())

				machine.sleep(time.Hour)
				woke := time.Now()
				<-waited.Context().Done()
				assert.LessOrEqual(t, time.Since(woke), time.Second, "who waits, soon")
				require.ErrorIs(t, context.Cause(waited.Context()), locks.ErrLockLost)
			})
		})
	}
}

// No timer has told of the deadline yet when the machine wakes up.
func TestNobodyEntersAgainAfterSleep(t *testing.T) {
	for name, lock := range map[string]func(*framework.Client) locks.Lock{
		"mutex": mutexAt("/l"),
		"read side": func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessReadWriteLock(c, "/l").ReadLock()
		},
		"MultiLock": multiAt("/l"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				machine := new(laptop)
				c := connect(t, zktest.Start(t, zktest.InMemory()), machine.config)
				l := lock(c)
				h, err := l.Acquire(t.Context())
				require.NoError(t, err)
				again, err := l.Acquire(h.Context())
				require.NoError(t, err)

				machine.sleep(time.Minute)
				_, err = l.Acquire(again.Context())
				require.ErrorIs(t, err, locks.ErrLockLost)
				require.ErrorIs(t, again.Release(), locks.ErrLockLost)
				require.ErrorIs(t, h.Release(), locks.ErrLockLost)
			})
		})
	}
}

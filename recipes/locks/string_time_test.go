package locks_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Locks print as what they are, without the data of their nodes.
func TestLocksPrintWhatTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Namespace = "app" })
		own := locks.NodeData([]byte("secret"))
		m, rw := locks.NewInterProcessMutex(c, "/l/m", own), locks.NewInterProcessReadWriteLock(c, "/l/rw", own)
		hold := kit.Hold(t, m)
		tx := hold.Transaction()
		tx.Set("/x", []byte("secret"), framework.AnyVersion)
		for want, lock := range map[string]any{
			"mutex /app/l/m":                        m,
			"read/write lock /app/l/rw":             rw,
			"read lock /app/l/rw":                   rw.ReadLock(),
			"write lock /app/l/rw":                  rw.WriteLock(),
			"semaphore /app/l/s":                    locks.NewInterProcessSemaphore(c, "/l/s", 3, own),
			"semaphore mutex /app/l/s":              locks.NewInterProcessSemaphoreMutex(c, "/l/s", own),
			"multilock /app/l/a, /app/z":            locks.NewInterProcessMultiLock(locks.NewInterProcessSemaphoreMutex(c, "/z"), taken{hold}, locks.NewInterProcessMutex(c, "/l/a", own)),
			"latch /l/e":                            leader.NewLatch(c, "/l/e", leader.ID("secret")),
			"selector /l/e":                         leader.NewSelector(c, "/l/e", leader.ID("secret")),
			"mutex /bad/":                           locks.NewInterProcessMutex(c, "/bad/"),
			"write lock /bad/":                      locks.NewInterProcessReadWriteLock(c, "/bad/").WriteLock(),
			"semaphore /s":                          locks.NewInterProcessSemaphore(nil, "/s", 1),
			"latch /e":                              leader.NewLatch(nil, "/e"),
			"transaction under HELD " + hold.Path(): tx,
			"mutex without a constructor":           &locks.InterProcessMutex{},
			"read/write lock without a constructor": (*locks.InterProcessReadWriteLock)(nil),
			"semaphore without a constructor":       &locks.InterProcessSemaphore{},
			"semaphore mutex without a constructor": &locks.InterProcessSemaphoreMutex{},
			"multilock without a constructor":       &locks.InterProcessMultiLock{},
			"candidate without a constructor":       &leader.Latch{},
			"RELEASED":                              (*locks.Hold)(nil),
			"transaction under RELEASED":            (*locks.Hold)(nil).Transaction(),
		} {
			for _, verb := range []string{"%v", "%+v", "%s"} {
				assert.Equal(t, want, fmt.Sprintf(verb, lock), verb)
			}
		}
	})
}

// A nil Hold is over, as a zero Hold is.
func TestNilHold(t *testing.T) {
	for name, hold := range map[string]*locks.Hold{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorIs(t, hold.Release(), locks.ErrReleased)
			assert.ErrorIs(t, hold.Err(), locks.ErrReleased)
			assert.Equal(t, locks.Released, hold.State())
			assert.Error(t, hold.Context().Err())
			bound, cancel := hold.Bind(t.Context())
			assert.Error(t, bound.Err())
			cancel()
			hold.Listen(func(locks.HoldState) { t.Error("it has no states") })()
			assert.Nil(t, hold.Revoked())
			assert.Empty(t, hold.Path())
			assert.Empty(t, hold.Members())
			assert.Zero(t, hold.FencingToken())
			_, err := hold.Transaction().Commit(t.Context())
			assert.ErrorIs(t, err, locks.ErrReleased)
			_, err = hold.Transaction().CommitAndRelease(t.Context())
			assert.ErrorIs(t, err, locks.ErrReleased)
		})
	}
}

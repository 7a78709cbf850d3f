package locks_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The right that is missing for a release is that of the node's parent, for each node its
// own. It was told as "DELETE on /", or as that of another member of a MultiLock.
func TestRefusedReleasesNameTheMissingRight(t *testing.T) {
	mutex, semaphore := locks.NewInterProcessMutex, locks.NewInterProcessSemaphoreMutex
	for name, tc := range map[string]struct {
		lock func(c *framework.Client) locks.Lock
		want []string // the texts that the error has
	}{
		"mutex":           {kit.MutexAt("/app/l"), []string{"DELETE on /app/l is needed"}},
		"read":            {kit.ReadAt("/app/l"), []string{"DELETE on /app/l is needed"}},
		"semaphore mutex": {func(c *framework.Client) locks.Lock { return semaphore(c, "/app/l") }, []string{"DELETE on /app/l/leases is needed"}},
		"MultiLock": {func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(mutex(c, "/app/l"), mutex(c, "/app/m"))
		}, []string{"DELETE on /app/l is needed", "DELETE on /app/m is needed"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				owner := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("o:o")}} })
				acl := append(zk.AuthACL(zk.PermAll), zk.WorldACL(zk.PermCreate|zk.PermRead)...)
				for _, p := range []string{"/app", "/app/l", "/app/l/locks", "/app/l/leases", "/app/m"} {
					if name != "semaphore mutex" && len(p) > len("/app/l") {
						continue
					}
					_, err := owner.Create(t.Context(), p, nil, framework.Persistent, framework.ACLs(acl...))
					require.NoError(t, err)
				}
				c := kit.Connect(t, srv)
				h := kit.Hold(t, tc.lock(c))
				err := h.Release()
				require.ErrorIs(t, err, framework.ErrNoAuth)
				for _, want := range tc.want {
					assert.ErrorContains(t, err, want)
				}
				time.Sleep(time.Minute)
				assert.NotEmpty(t, srv.Ephemerals(c.SessionID()))
			})
		})
	}
}

// So it is with releases that leave in one transaction.
func TestRefusedReleasesThatLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		c := kit.Connect(t, srv)
		var holds []*locks.Hold
		paths := []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"}
		for _, path := range paths {
			holds = append(holds, kit.Hold(t, locks.NewInterProcessMutex(c, path)))
			_, err := c.SetACL(t.Context(), path, zk.WorldACL(zk.PermAll&^zk.PermDelete), framework.AnyVersion)
			require.NoError(t, err)
		}
		var wg sync.WaitGroup
		for i, h := range holds {
			wg.Go(func() {
				err := h.Release()
				assert.ErrorIs(t, err, framework.ErrNoAuth)
				assert.ErrorContains(t, err, "DELETE on "+paths[i]+" is needed")
			})
		}
		wg.Wait()
	})
}

// The servers may refuse to end the session. Close returned nil.
func TestRefusedClose(t *testing.T) {
	for name, refusals := range map[string]int{"for ever": 0, "once": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := kit.Connect(t, srv)
				kit.Hold(t, locks.NewInterProcessMutex(c, "/l"))
				rule := srv.On(zktest.Match{Op: "closeSession", Nth: refusals}, zktest.Fail(-4))
				began := time.Now()
				err := c.Close()
				if refusals == 1 {
					require.NoError(t, err)
					assert.Empty(t, srv.Ephemerals(0))
					return
				}
				require.ErrorContains(t, err, "session not closed")
				assert.ErrorContains(t, err, "the server refused: connection loss")
				assert.NotEmpty(t, srv.Ephemerals(0))
				assert.LessOrEqual(t, time.Since(began), 6*time.Second)
				assert.Greater(t, rule.Fired(), 10, "tried again")
				assert.Less(t, rule.Fired(), 100)
			})
		})
	}
}

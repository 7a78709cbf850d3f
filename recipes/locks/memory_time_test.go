package locks_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A client that only reads for hours, and one that is idle between its locks, need as much
// memory after three hours as after the first one. So does the server. What grows would show
// in a day.
func TestMemoryOfADay(t *testing.T) {
	for name, every := range map[string]struct {
		read, lock time.Duration
	}{
		"reads": {read: 10 * time.Second},
		"idle":  {lock: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
				c := kit.Connect(t, srv)
				_, err := c.Create(t.Context(), "/x", nil, framework.Persistent)
				require.NoError(t, err)
				m := locks.NewInterProcessMutex(c, "/l")
				during := func(d time.Duration) {
					for passed := time.Duration(0); passed < d; passed += 10 * time.Second {
						time.Sleep(10 * time.Second)
						if every.read > 0 && passed%every.read == 0 {
							_, _, err := c.Get(t.Context(), "/x")
							require.NoError(t, err)
						}
						if every.lock > 0 && passed%every.lock == 0 {
							h, err := m.Acquire(t.Context())
							require.NoError(t, err)
							require.NoError(t, h.Release())
						}
					}
				}
				during(time.Hour)
				before := heap()
				during(2 * time.Hour)
				after := heap()
				t.Logf("heap after an hour %d KiB, after three %d KiB, %d requests", before>>10, after>>10, srv.Requests()["getData"]+srv.Requests()["ping"])
				assert.Less(t, after, before+64<<10)
			})
		})
	}
}

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Whoever binds a long hold to many short requests need not call cancel.
func TestMemoryOfBoundContexts(t *testing.T) {
	for name, end := range map[string]func(parent, cancel context.CancelFunc){
		"parent":   func(parent, _ context.CancelFunc) { parent() },
		"cancel":   func(parent, cancel context.CancelFunc) { cancel(); parent() },
		"deadline": func(_, _ context.CancelFunc) { time.Sleep(2 * time.Second) },
	} {
		for _, ended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ended before: %t", name, ended), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					hold := kit.Hold(t, locks.NewInterProcessMutex(kit.Connect(t, srv), "/l"))
					serve := func(n int) {
						for range n {
							parent, stop := context.WithTimeout(t.Context(), time.Second)
							if ended {
								stop()
							}
							bound, cancel := hold.Bind(parent)
							end(stop, cancel)
							synctest.Wait()
							require.Error(t, bound.Err())
						}
					}
					const many = 2000
					serve(many)
					before := heap()
					serve(many)
					assert.Less(t, heap(), before+40*many)
					require.NoError(t, hold.Release())
				})
			})
		}
	}
}

package locks_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// BenchmarkLocalHandover lets goroutines of one client take one lock in turn.
func BenchmarkLocalHandover(b *testing.B) {
	for _, bound := range []int{16, 1 << 30} {
		for _, n := range []int{2, 8, 10_000} {
			b.Run(fmt.Sprintf("bound=%d/goroutines=%d", bound, n), func(b *testing.B) {
				srv := zktest.Start(b)
				m := locks.NewInterProcessMutex(kit.Connect(b, srv), "/l", locks.LocalHandovers(bound))
				left := new(atomic.Int64)
				left.Store(int64(b.N))
				b.ResetTimer()
				b.ReportAllocs()
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							h, err := m.Acquire(b.Context())
							if err != nil {
								b.Error(err)
								return
							}
							_ = h.Release()
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "holds/s")
			})
		}
	}
}

// BenchmarkLocalWaiter shows what a goroutine takes that waits in the local queue.
func BenchmarkLocalWaiter(b *testing.B) {
	srv := zktest.Start(b)
	m := locks.NewInterProcessMutex(kit.Connect(b, srv), "/l")
	for b.Loop() {
		const n = 10_000
		h, err := m.Acquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		before := inUse()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if h, err := m.Acquire(b.Context()); err == nil {
					_ = h.Release()
				}
			})
		}
		<-time.After(300 * time.Millisecond)
		b.ReportMetric(float64(inUse()-before)/n, "bytes/waiter")
		_ = h.Release()
		wg.Wait()
	}
}

func inUse() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

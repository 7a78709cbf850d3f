package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// memory measures what a held lock and a waiter take, each on a lock of its own,
// of one session: of the heap and of stacks, after a collection. The servers are
// in other processes, or their share would be counted.
func memory(ctx context.Context, p plan, s server) ([]result, error) {
	held := result{server: s.name, group: "memory", name: "held lock", unit: "B"}
	waiter := result{server: s.name, group: "memory", name: "waiter", unit: "B"}
	conn := result{server: s.name, group: "memory", name: "client", unit: "B"}
	for range min(p.rounds, 3) {
		if err := memoryRound(ctx, p, s, &held, &waiter, &conn); err != nil {
			return nil, err
		}
	}
	return []result{held, waiter, conn}, nil
}

func memoryRound(ctx context.Context, p plan, s server, held, waiter, conn *result) (err error) {
	var clients closers
	defer func() { err = clients.close(err) }()
	empty := inUse()
	holder, err := connect(ctx, s)
	if err != nil {
		return err
	}
	clients = append(clients, holder.Close)
	queuer, err := connect(ctx, s)
	if err != nil {
		return err
	}
	clients = append(clients, queuer.Close)
	n := p.locks
	// Locks are made before and kept, so that holds alone are counted.
	lockSet, behind := make([]locks.Lock, n), make([]locks.Lock, n)
	for i := range n {
		path := fmt.Sprintf("/bench/memory/%d", i)
		lockSet[i] = locks.NewInterProcessMutex(holder, path, patient)
		behind[i] = locks.NewInterProcessMutex(queuer, path, patient)
	}
	holds := make([]*locks.Hold, n)
	for range 2 { // the first time makes the parents, and room in maps
		for i, l := range lockSet {
			if holds[i], err = l.Acquire(ctx); err != nil {
				return err
			}
			if err := holds[i].Release(); err != nil {
				return err
			}
		}
	}
	clear(holds)
	idle := inUse()
	conn.values = append(conn.values, float64(idle-empty)/2)
	for i, l := range lockSet {
		if holds[i], err = l.Acquire(ctx); err != nil {
			return err
		}
	}
	if err := pause(ctx, settling); err != nil {
		return err
	}
	withHolds := inUse()
	held.values = append(held.values, float64(withHolds-idle)/float64(n))

	waits, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, l := range behind {
		wg.Go(func() {
			if h, err := l.Acquire(waits); err == nil {
				_ = h.Release()
			}
		})
	}
	err = pause(ctx, settling)
	withWaiters := inUse()
	cancel()
	wg.Wait()
	waiter.values = append(waiter.values, float64(withWaiters-withHolds)/float64(n))
	runtime.KeepAlive(lockSet)
	for _, h := range holds {
		if releaseErr := h.Release(); releaseErr != nil {
			return releaseErr
		}
	}
	return err
}

func connect(ctx context.Context, s server) (*framework.Client, error) {
	return framework.Connect(ctx, framework.Config{ConnectString: s.addr, SessionTimeout: sessionTimeout, DialContext: s.dial})
}

// settling is how long what goes on in the background is waited for: watches on
// what lasts.
const settling = 2 * time.Second

// inUse is the heap and stacks that are in use.
func inUse() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

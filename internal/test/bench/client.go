package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// server is where clients connect to.
type server struct {
	name string // "zookeeper" or "in process"
	addr string
	dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil for a plain one
}

const sessionTimeout = 10 * time.Second

// cycle takes a lock and gives it back. held, which may be nil, runs in between.
type cycle func(ctx context.Context, held func()) error

// candidate is one of those that are compared.
type candidate struct {
	name string
	// open connects a client. Cycles made from it share its session.
	open func(ctx context.Context, s server) (*client, error)
}

// client is one session.
type client struct {
	cycle func(path string) (cycle, error)
	close func() error
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

var world = zk.WorldACL(zk.PermAll)

func dialZK(ctx context.Context, s server) (*zk.Conn, error) {
	dialer := func(network, addr string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		if s.dial != nil {
			return s.dial(ctx, network, addr)
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	conn, events, err := zk.Connect([]string{s.addr}, sessionTimeout, zk.WithLogger(quiet{}), zk.WithDialer(dialer))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case ev := <-events:
			if ev.State == zk.StateHasSession {
				go func() {
					for range events { // until Close
					}
				}()
				return conn, nil
			}
		case <-time.After(sessionTimeout):
			conn.Close()
			return nil, fmt.Errorf("connect to %s: no session", s.addr)
		}
	}
}

// raw is what no lock can do without: a node made and deleted, in one
// goroutine. It excludes nobody.
var raw = candidate{"raw create+delete", func(ctx context.Context, s server) (*client, error) {
	conn, err := dialZK(ctx, s)
	if err != nil {
		return nil, err
	}
	return &client{
		close: func() error { conn.Close(); return nil },
		cycle: func(path string) (cycle, error) {
			if _, err := conn.Create(path, nil, 0, world); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return nil, err
			}
			return func(_ context.Context, held func()) error {
				node, err := conn.Create(path+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, world)
				if err != nil {
					return err
				}
				if held != nil {
					held()
				}
				return conn.Delete(node, -1)
			}, nil
		},
	}, nil
}}

var zkLock = candidate{"zk.Lock", func(ctx context.Context, s server) (*client, error) {
	conn, err := dialZK(ctx, s)
	if err != nil {
		return nil, err
	}
	return &client{
		close: func() error { conn.Close(); return nil },
		cycle: func(path string) (cycle, error) {
			l := zk.NewLock(conn, path, world)
			return func(_ context.Context, held func()) error {
				if err := l.Lock(); err != nil {
					return err
				}
				if held != nil {
					held()
				}
				return l.Unlock()
			}, nil
		},
	}, nil
}}

// ours is a candidate of Paddock's.
func ours(name string, lock func(c *framework.Client, path string) locks.Lock) candidate {
	return oursWith(framework.Config{}, name, lock)
}

// oursWith is ours for a client with that configuration.
func oursWith(cfg framework.Config, name string, lock func(c *framework.Client, path string) locks.Lock) candidate {
	return candidate{name, func(ctx context.Context, s server) (*client, error) {
		cfg := cfg
		cfg.ConnectString, cfg.SessionTimeout, cfg.DialContext = s.addr, sessionTimeout, s.dial
		c, err := framework.Connect(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return &client{
			close: c.Close,
			cycle: func(path string) (cycle, error) { return takes(lock(c, path)), nil },
		}, nil
	}}
}

// patient keeps a machine that does much else from ending a measurement.
var patient = locks.ReleaseWait(time.Minute)

func takes(l locks.Lock) cycle {
	return func(ctx context.Context, held func()) error {
		h, err := l.Acquire(ctx)
		if err != nil {
			return err
		}
		if held != nil {
			held()
		}
		return h.Release()
	}
}

var (
	mutex = ours("mutex", func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessMutex(c, path, patient)
	})
	unbatched = oursWith(framework.Config{NoBatches: true}, "mutex, no batches", func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessMutex(c, path, patient)
	})
	readSide = ours("read side", func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, path, patient).ReadLock()
	})
	writeSide = ours("write side", func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, path, patient).WriteLock()
	})
	semaphore = ours("semaphore", func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessSemaphore(c, path, 10, patient)
	})
	semaphoreMutex = ours("semaphore mutex", func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessSemaphoreMutex(c, path, patient)
	})
)

func multiLock(n int) candidate {
	return ours(fmt.Sprintf("MultiLock of %d", n), func(c *framework.Client, path string) locks.Lock {
		var members []locks.Lock
		for i := range n {
			members = append(members, locks.NewInterProcessMutex(c, fmt.Sprintf("%s-%d", path, i), patient))
		}
		return locks.NewInterProcessMultiLock(members...)
	})
}

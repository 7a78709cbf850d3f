package interop

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
)

// What docs/from-curator.md shows of Go, each piece between two markers, under
// the name that its counterpart has in java/Snippets.java. Go peers run them as
// Java peers run those, and TestSnippets runs all of it in process.

type work func(ctx context.Context) error

func connect(ctx context.Context, servers string) (*framework.Client, error) {
	// snippet: connect
	client, err := framework.Connect(ctx, framework.Config{
		ConnectString:  servers,
		SessionTimeout: 15 * time.Second,
		Retry:          retry.ExponentialBackoff(100*time.Millisecond, 5),
	})
	// end
	return client, err
}

func options(ctx context.Context, servers string) (*framework.Client, error) {
	// snippet: options
	creator := []framework.ACL{framework.AuthACL(framework.PermAll)}
	client, err := framework.Connect(ctx, framework.Config{
		ConnectString: servers,
		Namespace:     "shop",
		Auth:          []framework.Auth{framework.DigestAuth("shop", "secret")},
		ACL: func(path string) []framework.ACL {
			if strings.HasPrefix(path, "/shop/public") {
				return []framework.ACL{framework.WorldACL(framework.PermAll)}
			}
			return creator
		},
	})
	// end
	return client, err
}

func states(client *framework.Client, lost func()) {
	// snippet: states
	client.States().Listen(func(state listeners.State) {
		if state == listeners.Lost {
			lost()
		}
	})
	// end
}

func mutex(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: mutex
	hold, err := locks.NewInterProcessMutex(client, path).Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release()
	return work(hold.Context())
	// end
}

func timed(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: timed
	hold, err := locks.NewInterProcessMutex(client, path).TryAcquire(ctx, 10*time.Second)
	if errors.Is(err, locks.ErrNotAcquired) {
		return err // somebody else has it
	}
	if err != nil {
		return err
	}
	defer hold.Release()
	return work(hold.Context())
	// end
}

func locker(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: locker
	return locks.Do(ctx, locks.NewInterProcessMutex(client, path), work)
	// end
}

func reentrant(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: reentrant
	mutex := locks.NewInterProcessMutex(client, path)
	return locks.Do(ctx, mutex, func(ctx context.Context) error {
		return locks.Do(ctx, mutex, work) // the context of the hold
	})
	// end
}

func semaphoreMutex(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: semaphore-mutex
	mutex := locks.NewInterProcessSemaphoreMutex(client, path)
	return locks.Do(ctx, mutex, work)
	// end
}

func semaphore(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: semaphore
	semaphore := locks.NewInterProcessSemaphore(client, path, 3)
	return locks.Do(ctx, semaphore, work)
	// end
}

func leases(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: leases
	semaphore := locks.NewInterProcessSemaphore(client, path, 3)
	hold, err := semaphore.AcquireN(ctx, 2)
	if err != nil {
		return err
	}
	defer hold.Release()
	return work(hold.Context())
	// end
}

func read(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: read
	lock := locks.NewInterProcessReadWriteLock(client, path)
	return locks.Do(ctx, lock.ReadLock(), work)
	// end
}

func write(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: write
	lock := locks.NewInterProcessReadWriteLock(client, path)
	return locks.Do(ctx, lock.WriteLock(), work)
	// end
}

func downgrade(ctx context.Context, client *framework.Client, path string, change, look work) error {
	// snippet: downgrade
	lock := locks.NewInterProcessReadWriteLock(client, path)
	writing, err := lock.WriteLock().Acquire(ctx)
	if err != nil {
		return err
	}
	defer writing.Release() // for the early returns
	if err := change(writing.Context()); err != nil {
		return err
	}
	reading, err := lock.ReadLock().Acquire(writing.Context())
	if err != nil {
		return err
	}
	defer reading.Release()
	if err := writing.Release(); err != nil {
		return err
	}
	return look(reading.Context())
	// end
}

func multi(ctx context.Context, client *framework.Client, from, to string, work work) error {
	// snippet: multi
	lock := locks.NewInterProcessMultiLock(
		locks.NewInterProcessMutex(client, from),
		locks.NewInterProcessMutex(client, to))
	return locks.Do(ctx, lock, work)
	// end
}

func revocable(ctx context.Context, client *framework.Client, path string, work work) error {
	// snippet: revocable
	mutex := locks.NewInterProcessMutex(client, path, locks.Revocable())
	hold, err := mutex.Acquire(ctx)
	if err != nil {
		return err
	}
	defer hold.Release()
	if err := work(hold.Context()); err != nil {
		return err
	}
	select {
	case <-hold.Revoked(): // somebody wants it
		return nil
	case <-hold.Context().Done():
		return context.Cause(hold.Context())
	}
	// end
}

func revoke(ctx context.Context, client *framework.Client, path string) error {
	// snippet: revoke
	participants, err := locks.NewInterProcessMutex(client, path).Participants(ctx)
	if err != nil {
		return err
	}
	for _, p := range participants {
		if err := locks.AttemptRevoke(ctx, client, p.Path); err != nil {
			return err
		}
	}
	return nil
	// end
}

func lockData(ctx context.Context, client *framework.Client, path string) ([]byte, error) {
	// snippet: lock-data
	who := []byte("worker 7")
	lock := locks.NewInterProcessReadWriteLock(client, path, locks.NodeData(who))
	hold, err := lock.WriteLock().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	participants, err := lock.WriteLock().Participants(ctx)
	if err != nil {
		return nil, err
	}
	return participants[0].Data, nil
	// end
}

func nodes(ctx context.Context, client *framework.Client) (string, error) {
	// snippet: nodes
	path, err := client.Create(ctx, "/nodes/n-", []byte("v1"), framework.EphemeralSequential,
		framework.Parents(), framework.Protected())
	if err != nil {
		return "", err
	}
	_, stat, err := client.Get(ctx, path)
	if err != nil {
		return "", err
	}
	if _, err = client.Set(ctx, path, []byte("v2"), stat.Version); err != nil {
		return "", err
	}
	return path, client.Delete(ctx, path, framework.AnyVersion, framework.Guaranteed())
	// end
}

func transaction(ctx context.Context, client *framework.Client) error {
	// snippet: transaction
	eight := []byte("8")
	tx := client.Transaction()
	tx.Create("/orders/1", eight, framework.Ephemeral)
	tx.Set("/stock/apples", eight, framework.AnyVersion)
	_, err := tx.Commit(ctx)
	// end
	return err
}

func compression(ctx context.Context, client *framework.Client) ([]byte, error) {
	// snippet: compression
	text := []byte("a long text")
	_, err := client.Create(ctx, "/text", text, framework.Persistent, framework.OrSet(), framework.Compressed())
	if err != nil {
		return nil, err
	}
	data, _, err := client.Get(ctx, "/text", framework.Compressed())
	return data, err
	// end
}

func circuitBreaker(client *framework.Client, listener func(listeners.State)) *framework.CircuitBreaker {
	// snippet: circuit-breaker
	breaker := framework.NewCircuitBreaker(client.States(), retry.Forever(5*time.Second))
	breaker.States().Listen(listener)
	// end
	return breaker
}

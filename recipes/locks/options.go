package locks

import (
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/recipes/internal/acquire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// Option changes how one lock object acquires. Options are made by the functions of
// this package.
type Option func(*acquire.Queue)

// apply sets the defaults, and then the options of a lock object.
func (q *queue) apply(opts []Option) error {
	q.Kind, q.ReleaseWait, q.Handovers, q.Burst = znode.Lock, time.Second, 16, 10*time.Millisecond
	for _, opt := range opts {
		if opt == nil {
			return fmt.Errorf("%w: option is nil", ErrInvalidLock)
		}
		opt(&q.Queue)
	}
	switch {
	case q.Handovers < 0:
		return fmt.Errorf("%w: LocalHandovers is %d: it must not be negative", ErrInvalidLock, q.Handovers)
	case q.ReleaseWait < 0:
		return fmt.Errorf("%w: ReleaseWait is %v: it must not be negative", ErrInvalidLock, q.ReleaseWait)
	case 0 < q.ReleaseWait && q.ReleaseWait < time.Millisecond:
		return fmt.Errorf("%w: ReleaseWait is %v: it must be 0, or a millisecond at least (a number alone counts nanoseconds)", ErrInvalidLock, q.ReleaseWait)
	}
	return nil
}

// NodeData is written into the lock's node for others to read. It is copied.
// Defaults to framework.Config.DefaultData.
func NodeData(data []byte) Option {
	kept := append([]byte{}, data...)
	return func(q *acquire.Queue) { q.Data = kept }
}

// EndOnSuspended makes a hold lost as soon as it is uncertain, that is, when the
// connection is suspended. The client gives the lock back once it is connected.
func EndOnSuspended() Option {
	return func(q *acquire.Queue) { q.EndOnSuspended = true }
}

// FailOnSessionLoss makes a waiter whose session expires return
// framework.ErrSessionExpired: the one that the client had when the wait began, or the first
// one if it had none. By default the waiter queues again, at the end. A waiter behind another
// goroutine of its client returns when its turn comes.
func FailOnSessionLoss() Option {
	return func(q *acquire.Queue) { q.FailOnLoss = true }
}

// ReleaseWait bounds how long Release waits for the servers. Defaults to 1
// second; 0 does not wait. With less than 0 every Acquire returns ErrInvalidLock.
func ReleaseWait(d time.Duration) Option {
	return func(q *acquire.Queue) { q.ReleaseWait = d }
}

// Revocable lets other participants ask for the lock back, see AttemptRevoke and
// Hold.Revoked. NodeData is then not written, as in Curator.
func Revocable() Option { return func(q *acquire.Queue) { q.Revocable = true } }

// LocalHandovers sets how many times in a row the lock passes between goroutines of this
// client before other clients get their turn. By default it passes 16 times, or for 10 ms
// if that is longer. With 0 each goroutine has a node of its own, and the servers decide
// the order. The option is for mutexes and write sides.
//
// Goroutines of one client that want the same lock wait in one local queue behind one
// node, whichever lock object they use. They share a local queue if they would write the
// same NodeData and call Acquire under the same holds, if any. Release hands the lock to
// the next one and returns at once. After the last handover, or a second after the node
// was first in its queue, Release deletes the node. The next goroutine then makes a new
// node, at the end of the queue.
//
// Release also deletes the node in these cases:
//   - The client saw a MultiLock in the queue. There, as many of those who wait as the lock
//     would be handed to have nodes of their own, and take turns with the MultiLock.
//   - The hold has shown its FencingToken. No two holders show the same one.
//   - A transaction of the hold is on its way, or has no known outcome.
//   - A read side, or a MultiLock, was taken under the hold.
//   - The hold is uncertain, or nothing has confirmed the session lately.
//   - The hold is Revocable.
func LocalHandovers(most int) Option {
	return func(q *acquire.Queue) { q.Handovers, q.Burst = most, 0 }
}

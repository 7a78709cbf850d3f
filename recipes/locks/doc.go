// Package locks has the locks of Apache Curator, with the same nodes in ZooKeeper:
// clients in Go and in Java wait in one queue.
//
// Acquire and TryAcquire take a lock and return a *Hold: a value with a context for the
// work, which ends as soon as the lock may be lost.
//
//	hold, err := locks.NewInterProcessMutex(client, "/locks/orders").Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer hold.Release()
//	return work(hold.Context())
//
// # Ownership
//
// The owner of a lock is neither a goroutine nor a lock object: it is the hold that a
// context comes from. Acquire with the context of a hold of the same lock, anywhere down
// the call chain, re-enters without asking a server. Acquire with any other context waits
// in the queue, also in the same goroutine and with the same lock object. Two goroutines
// under a hold of A that both take B exclude each other.
//
// # What a lock promises
//
// At any point of the ensemble's history at most one owner's node is first in the queue.
// The hold's context ends before the servers can give the lock to another owner. This is
// true if the rates of clocks differ by 1 % at most, and nobody deletes the node or ends
// the session by force.
//
// A release ends the hold's contexts first, and so those of holds that were acquired under
// it. Their locks stay held until they are released themselves. Hold.Bind makes a context
// that goes on.
//
// Nothing here stops a write that is already on its way to another system. FencingToken
// lets that system refuse the write.
package locks

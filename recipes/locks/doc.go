// Package locks has Curator's locks, on Curator's node layout: Go and Java
// stand in one queue.
//
// A lock is taken with Acquire or TryAcquire and is held as a *Hold: a value
// with a context for the work, which ends as soon as the lock may be lost.
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
// The owner is the hold that a context comes from, per lock. Acquiring a lock with the
// context of a hold of it, anywhere down the call chain, re-enters without asking a server.
// Acquiring it with any other context queues, also in the same goroutine and with the same
// lock object. Two goroutines under a hold of A that both take B exclude each other.
//
// # What a lock promises
//
// At any point of the ensemble's history at most one owner's node is first in the queue.
// The hold's context ends before the servers can give the lock to another owner. This rests
// on clocks whose rates differ by 1 % at most, and on nobody who deletes the node or ends
// the session by force; a hold that is released while another one is held under it keeps
// its context until that one is released. Neither can stop a write that is already on its
// way to some other system: that takes fencing, for which FencingToken is made.
package locks

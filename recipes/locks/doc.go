// Package locks has Curator's locks, on Curator's node layout: Go and Java
// stand in one queue.
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
// The owner is the hold that a context comes from, per lock. Acquiring a lock with the
// context of a hold of it, anywhere down the call chain, re-enters without asking a server.
// Acquiring it with any other context queues, also in the same goroutine and with the same
// lock object. Two goroutines under a hold of A that both take B exclude each other.
//
// # What a lock promises
//
// At any point of the ensemble's history at most one owner's node is first in the queue.
// The hold's context ends before the servers can give the lock to another owner. This is
// true if the rates of clocks differ by 1 % at most, and nobody deletes the node or ends
// the session by force. There is one exception: a hold that is released while another one
// is held under it keeps its context until that one is released. Nothing here stops a
// write that is already on its way to another system. FencingToken lets that system
// refuse the write.
package locks

// Package tree is ZooKeeper's replicated data: nodes with their metadata, who
// owns which ephemeral node, and the transactions that change them.
//
// A write takes two steps. Prepare judges a request against the leader's tree
// and turns it into a Txn, which may be a refusal. Apply carries a Txn out on
// the tree of any replica, where it can no longer fail. It returns the result,
// and says which nodes changed. Two trees that applied the same transactions
// are the same.
//
// A tree has no clock, no goroutines, no locks and does no I/O: the time of a
// change comes in its Txn, and callers take turns.
//
// Source: ZooKeeper's PrepRequestProcessor (Prepare) and DataTree (Apply).
package tree

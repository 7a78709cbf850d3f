// Package monitor has the types by which a client shows what it does: a Tracer,
// which hears of each operation as it happens, and the snapshots that
// framework.Client returns.
//
// Both use the same words as the log, the errors and the command paddock: the kind and
// the path of a lock, its node, its token, and the participant. The participant is what
// the owner has written into the node.
package monitor

// Package framework is a managed ZooKeeper client: one session kept alive,
// calls that end with their contexts and are retried by policy, and connection
// states that tell the truth.
//
// A Client is made with Connect or Start from a Config and lives until Close.
// Its methods take full paths (below the chroot and the namespace), may be
// called from any goroutine, and end when their context does. Every error of a
// call on a path is an *OpError; the Err values of this package can be found in
// it with errors.Is.
//
// What is guaranteed: a call that returned nil was answered by the ensemble; a
// write whose reply was lost is never reported as a success or a failure but as
// ErrOutcomeUnknown, unless an option settles it; a connection state is never
// dropped, and Lost comes before the servers can have given away what the
// session held, as far as the rates of clocks differ by 1 % at most; Close joins every
// goroutine that the client has started.
//
// What is not: reads may be stale by what the server lags behind, as always in
// ZooKeeper; Sync before them makes them current.
//
// Locks are in package recipes/locks, a server for tests in package zktest.
package framework

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
// The client guarantees:
//
//   - A call that returned nil was answered by the ensemble.
//   - A write whose reply was lost is ErrOutcomeUnknown, and never a success or a
//     failure, unless an option settles it.
//   - No connection state is dropped.
//   - Lost comes before the servers can give away what the session held, as long
//     as the rates of clocks differ by 1 % at most.
//   - Close joins every goroutine that the client has started.
//
// A read may be out of date if the server that answers it lags behind, as always in
// ZooKeeper. A Sync before the read makes it current.
//
// Locks are in package recipes/locks, a server for tests in package zktest.
package framework

// Package retry runs an operation again when its failure may pass.
//
// A Policy says how often and how soon to try again, after which failures, and
// which hooks to call. It is an immutable value: keep one per dependency in a
// package variable and share it between goroutines. Do and DoValue run an
// operation under a policy and a context.
//
//	var inventory = retry.ExponentialBackoff(50*time.Millisecond, 4).
//		Named("inventory").
//		WithJitter(retry.FullJitter).
//		WithAttemptTimeout(time.Second)
//
//	err := retry.Do(ctx, inventory, func(ctx context.Context) error {
//		return stock.Reserve(ctx, item)
//	})
//
// Nothing here knows ZooKeeper. Policies have the names and formulas of Apache
// Curator's, so that a service can be tuned alike in Java and in Go.
//
// The package waits with timers and contexts only, so it works under
// testing/synctest: a test with a minute of back-off takes no time.
package retry

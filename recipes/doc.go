// Package recipes has no code. Its folders have the recipes:
//
//   - [github.com/paddock-zk/paddock/recipes/locks]: mutex, read/write lock,
//     semaphores and MultiLock.
//   - [github.com/paddock-zk/paddock/recipes/leader]: leader election, by latch and by
//     selector.
package recipes

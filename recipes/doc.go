// Package recipes has no code. Its folders have the recipes:
//
//   - [github.com/paddock-zk/paddock/recipes/locks]: mutex, read/write lock,
//     semaphores and MultiLock.
package recipes

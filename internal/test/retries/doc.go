// Package retries does the same tasks with package retry and with other libraries. What
// its tests print and compare is the table in docs/retry.md.
package retries

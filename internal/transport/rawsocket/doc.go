// Package rawsocket makes system calls on TCP connections without telling Go's
// scheduler. README.md says why, what it costs, and how to leave it out.
package rawsocket

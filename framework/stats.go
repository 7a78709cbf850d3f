package framework

import (
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
)

// Stats is a snapshot of the connection and the session. It asks no server. A client
// made by UsingNamespace shares the session of the client that it was made from, and
// so its Stats, Holds and Waiters. The snapshot of a zero Client is zero.
func (c *Client) Stats() monitor.Stats {
	if c.unusable() {
		return monitor.Stats{}
	}
	return session.Stats(c.session)
}

// Holds are the nodes that locks and elections of this client hold now, in no order. Paths
// are in full. It asks no server and takes about a millisecond for 10,000 of them.
func (c *Client) Holds() []monitor.HoldInfo {
	if c.unusable() {
		return nil
	}
	return session.Inspected(c.session).Holds()
}

// Waiters are the goroutines of this client that wait for a lock or an election now.
// Goroutines with a node come first. Those that wait for another goroutine of this client
// come last, each lock's in the order in which they asked. Waiters asks no server: what
// it says of other clients may be out of date. A MultiLock's wait has one entry for each
// lock that it waits for.
func (c *Client) Waiters() []monitor.WaiterInfo {
	if c.unusable() {
		return nil
	}
	return session.Inspected(c.session).Waiters()
}

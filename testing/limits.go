package zktest

import (
	"fmt"
	"math"
	"net"
	"time"
)

// Limits says how much clients can make a server hold. A zero field stands for
// its default, and a negative one for no limit.
type Limits struct {
	// Connections is how many connections a member has open at most. It closes any
	// further one at once. Defaults to 65,536.
	Connections int
	// ConnectionsPerHost is the same for connections from one address: ZooKeeper's
	// maxClientCnxns. Defaults to no bound.
	ConnectionsPerHost int
	// Handshake is the time from connecting to the connect request, after
	// which a connection is closed. Defaults to 10 seconds.
	Handshake time.Duration
	// Outstanding is how many requests of one connection may wait for the leader.
	// Beyond that the server does not read from the connection. Defaults to 1,000.
	Outstanding int
	// Unsent is how many bytes may wait for a client that does not read. Beyond
	// that the server disconnects the client. Defaults to 64 MiB.
	Unsent int
	// Watches is how many watches clients may have at a member. It answers a
	// request for one more with "quota exceeded", code -125. Defaults to 1,048,576.
	Watches int
	// Data is how many bytes all paths and their data may have. The server answers
	// a create or setData beyond that with "quota exceeded". Defaults to 1 GiB.
	Data int64
}

// The default limits.
const (
	defaultConnections = 1 << 16
	defaultHandshake   = 10 * time.Second
	defaultOutstanding = 1000
	defaultUnsent      = 64 << 20
	defaultWatches     = 1 << 20
	defaultData        = 1 << 30
)

// unbounded is more than there can be.
const unbounded = math.MaxInt

// WithLimits replaces the limits whose fields are not zero.
func WithLimits(l Limits) Option { return optionFunc(func(c *config) { c.limits = l }) }

func (l Limits) withDefaults() Limits {
	l.Connections = bound(l.Connections, defaultConnections)
	l.ConnectionsPerHost = bound(l.ConnectionsPerHost, unbounded)
	l.Handshake = bound(l.Handshake, defaultHandshake)
	l.Outstanding = bound(l.Outstanding, defaultOutstanding)
	l.Unsent = bound(l.Unsent, defaultUnsent)
	l.Watches = bound(l.Watches, defaultWatches)
	l.Data = bound(l.Data, defaultData)
	return l
}

func bound[T ~int | ~int64](set, otherwise T) T {
	switch {
	case set < 0:
		return unbounded
	case set == 0:
		return otherwise
	}
	return set
}

// roomLocked reports whether one more connection may be accepted.
func (m *member) roomLocked(raw net.Conn) bool {
	l := &m.e.cfg.limits
	if len(m.conns) >= l.Connections {
		return false
	}
	if l.ConnectionsPerHost == unbounded {
		return true
	}
	n, from := 0, host(raw.RemoteAddr())
	for c := range m.conns {
		if host(c.raw.RemoteAddr()) == from {
			n++
		}
	}
	return n < l.ConnectionsPerHost
}

// watchableLocked reports whether clients may set n more watches here.
func (m *member) watchableLocked(n int) bool {
	return m.watches.data.n+m.watches.child.n+n <= m.e.cfg.limits.Watches
}

func splitAddr(addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, ""
	}
	return host, port
}

// membership is the ensemble as the config node shows it. The ports that
// members would talk on are made up; clients want two that differ.
func (e *ensemble) membership() string {
	var b []byte
	for _, m := range e.members {
		host, _ := splitAddr(m.endpoint.addr)
		b = fmt.Appendf(b, "server.%d=%s:1:2:participant;%s\n", m.index+1, host, m.endpoint.addr)
	}
	return string(b) + "version=0"
}

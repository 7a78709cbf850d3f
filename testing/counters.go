package zktest

// Counters say what a server holds now and has done since its start. Those of a
// cluster are the sums over its members.
type Counters struct {
	Connections int
	Sessions    int
	Watches     int // a persistent one counts twice, as ZooKeeper counts it
	Nodes       int
	Ephemerals  int
	DataBytes   int64 // of all paths and data

	// Since the start:

	Received, Sent           int64 // frames, four-letter words and the answers to these
	BytesReceived, BytesSent int64 // with the lengths of frames, without TLS
	Notifications            int64
	Transactions             int64 // also of refused writes
	Elections                int64
}

// Counters returns the counters as they are now.
func (s *Server) Counters() Counters {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	data := s.replicaLocked()
	c := Counters{
		Sessions:     len(s.e.sessions.byID),
		Nodes:        data.Len(),
		Ephemerals:   data.EphemeralCount(),
		DataBytes:    data.Size(),
		Transactions: s.e.transactions,
		Elections:    s.e.epoch,
	}
	for _, m := range s.members {
		c.Connections += len(m.conns)
		c.Watches += m.watches.data.n + m.watches.child.n
		c.Received += m.received
		c.Sent += m.sent
		c.BytesReceived += m.bytesReceived
		c.BytesSent += m.bytesSent
		c.Notifications += m.notifications
	}
	return c
}

// receivedLocked counts a frame of n bytes.
func (c *conn) receivedLocked(n int, op string) {
	c.received++
	c.lastOp = op
	c.m.received++
	c.m.bytesReceived += int64(n)
}

package session

import "github.com/paddock-zk/paddock/internal/wire"

// MostOperations and mostInTransaction bound a transaction that may be split into
// several, since a server does nothing else meanwhile.
const (
	MostOperations    = 500
	mostInTransaction = 512 << 10
)

// MostInTransaction is the size that a transaction may have, also where a larger
// request is allowed.
func MostInTransaction(s *Session) int { return min(mostInTransaction, s.cfg.Transport.MaxRequest) }

// Room is the room left in a transaction whose operations have a path and no data.
type Room struct{ ops, bytes int }

const (
	// pathOpSize is what an operation takes that names a node, without its path: its
	// header, the length of the path, and a version.
	pathOpSize = 9 + 4 + 4
	// transactionSize is what a transaction takes without operations.
	transactionSize = 8 + 9
)

// leastInTransaction is what a transaction may have although servers end the connection at
// it: enough for the longest path of most users.
const leastInTransaction = 4 << 10

// RoomOf is that of an empty transaction: without the header of the request, and the
// end of the transaction. It is smaller where servers end the connection at large ones.
func RoomOf(s *Session) Room {
	most := MostInTransaction(s)
	most = max(s.transport.Suspects.Limit(wire.OpMulti, most), min(most, leastInTransaction))
	return Room{MostOperations, most - transactionSize}
}

// Take reports whether there is room for one more operation.
func (r *Room) Take(path string) bool {
	r.ops--
	r.bytes -= pathOpSize + len(path)
	return r.ops >= 0 && r.bytes >= 0
}

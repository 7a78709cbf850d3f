package monitor

import (
	"time"

	"github.com/paddock-zk/paddock/listeners"
)

// Stats is a snapshot of a client's connection and session: see
// framework.Client.Stats.
type Stats struct {
	// State is the state of the connection, and Since when it came to be.
	State listeners.State
	Since time.Time
	// Server is the address that the client is connected to, "" for none.
	Server string
	// Session is the id of the session, which servers log in hexadecimal; 0 without one.
	Session int64
	// Timeout is the session timeout that the servers granted.
	Timeout time.Duration
	// LeaseLeft is how long the session lasts at least if no server answers any more. 0
	// without a session.
	LeaseLeft time.Duration
	// LastError is why there is no connection, or why the last one ended. Nil if none has
	// ended.
	LastError error
	// Holds is how many nodes the locks and elections of the client hold.
	Holds int
	// Batches counts the transactions that have carried the requests of several
	// acquisitions or releases, and Batched these requests: Batched/Batches is their mean
	// size. BatchesUndone counts those transactions that the servers refused for one of the
	// requests; the others were sent again.
	Batches, Batched, BatchesUndone int64
	// Unsupported are the operations that the servers were found not to know, by the names
	// that ZooKeeper has for them, such as createContainer and createTTL. Nil for none.
	Unsupported []string
	// Certificate is the one of framework.Config.TLSFiles that the last connection had for
	// servers that ask for one, whether its server did or not. Nil for none.
	Certificate *CertificateInfo
}

// CertificateInfo is the certificate of a client.
type CertificateInfo struct {
	Subject string
	// Until is when it ends. The connection that there is outlives it.
	Until time.Time
}

// HoldInfo is a node that a lock or an election holds. A hold of several nodes, such as
// a MultiLock's, has one for each.
type HoldInfo struct {
	// Lock is the lock that the node belongs to. Of a MultiLock that is the member.
	Lock Lock
	// Since is when the owner got the node.
	Since time.Time
	// Session is the session that the node belongs to.
	Session int64
	// Holds is how many holds share the node by re-entry.
	Holds int
	// Uncertain says that the hold cannot be confirmed, as there is no connection.
	Uncertain bool
	// MultiLock says that the node belongs to a hold of several nodes.
	MultiLock bool
}

// WaiterInfo is a goroutine that waits for a lock or an election.
type WaiterInfo struct {
	Lock Lock
	// Since is when the wait began.
	Since time.Time
	// Local says that it waits for a goroutine of this client and has no node yet. The
	// next in its local queue comes first.
	Local bool
	// Ahead is how many nodes were ahead of its own when it last looked, and Behind
	// the node that it waits for, in full. 0 and "" for a local wait.
	Ahead  int
	Behind string
	// Has are the paths of the members that a MultiLock has by now, in full, and Wants those
	// of the others. It may still give way to others with what it has. A MultiLock waits in
	// several queues at once, and is a waiter in each. Both are empty for all other locks, and
	// for a member that a MultiLock takes in a step of its own.
	Has, Wants []string
}

// Entry is how something stands that a recipe keeps in a client: see framework.Client.Show.
type Entry struct {
	// Kind is what it is, such as "cache", and State how it is, such as "current". They are
	// words of the recipe's. Metrics have them as labels, so there must be few.
	Kind, State string
	// Path is that of its node, in full.
	Path string
	// Since is when State came to be, zero if that is not known.
	Since time.Time
	// Behind is what it waits for, such as another's node. "" for nothing.
	Behind string
	// Err is why it is not as it should be, nil if it is.
	Err error
	// Numbers are what can be counted, such as "nodes". Metrics add up those of one name and
	// one kind, and have the names as labels. The map must not change once entry has returned it.
	Numbers map[string]int64
	// Note says to people what else there is.
	Note string
}

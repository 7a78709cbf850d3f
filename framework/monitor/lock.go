package monitor

import "strings"

// The kinds of locks and elections, as Lock.Kind has them.
const (
	Mutex          = "mutex"
	ReadLock       = "read lock"  // the read side of a read/write lock
	WriteLock      = "write lock" // its write side
	Semaphore      = "semaphore"
	SemaphoreMutex = "semaphore mutex"
	MultiLock      = "multilock"
	Latch          = "latch"    // an election on the layout of Curator's LeaderLatch
	Selector       = "selector" // an election on the layout of Curator's LeaderSelector
)

// Lock says which lock or election something is about.
type Lock struct {
	// Kind is one of the constants of this package.
	Kind string
	// Path is the path of the lock, in full. A MultiLock has the paths of its members,
	// with ", " between them, and Members.
	Path string
	// Members are the paths of a MultiLock's members in the order in which they are
	// taken, "" for a lock of another package. Nil for other locks. They must not be
	// changed.
	Members []string
	// Node is the owner's node, in full. "" before there is one, and for a hold of
	// several nodes.
	Node string
	// Token is the czxid of Node, which is the fencing token of locks that have one.
	// It is 0 if there is no node. Owners to whom one node was handed in turn have the
	// same token.
	Token int64
	// Participant is what the owner writes into its nodes, as text. Of a MultiLock it is
	// that of the first member. It is "" if the client does not know it without a
	// connection. It is not escaped.
	Participant string
}

// String is the kind and the path.
func (l Lock) String() string { return strings.TrimSpace(l.Kind + " " + l.Path) }

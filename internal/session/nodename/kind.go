package nodename

// Kind is the kind of a participant: which part of which lock or election its node stands
// for. The name of the node is a prefix that its owner chose, the kind and ten digits.
//
// Source: Curator's StandardLockInternalsDriver, InterProcessReadWriteLock,
// InterProcessSemaphoreV2 and LeaderLatch, and kazoo's Lock, WriteLock and ReadLock. The
// names are a promise: a change takes Go out of the queue that it shares with Java.
type Kind string

// The kinds of participants. Kazoo's are never made here.
const (
	Lock      Kind = "lock-"
	Write     Kind = "__WRIT__"
	Read      Kind = "__READ__"
	Lease     Kind = "lease-"
	Latch     Kind = "latch-"
	KazooLock Kind = "__lock__"
	KazooRead Kind = "__rlock__"
)

// A semaphore has two queues, which are children of its node.
const (
	Turns  = "locks"
	Leases = "leases"
)

// The recipes that kinds belong to. Those of one recipe stand in one queue.
const (
	Mutex     = "mutex" // or the election of a Selector, which has the same nodes
	ReadWrite = "read/write lock"
	Semaphore = "semaphore" // or a semaphore mutex, which is one with one lease
	Latches   = "latch"
	Kazoo     = "kazoo lock" // of which only the names are known
)

// kinds has every kind that may stand in a queue. Each queue refuses the kinds of other
// recipes, and what shows queues to people calls them by these words. So a new kind of
// node needs no more than its line here.
var kinds = []struct {
	kind   Kind
	recipe string
}{
	{Lock, Mutex},
	{Read, ReadWrite},
	{Write, ReadWrite},
	{Lease, Semaphore},
	{Latch, Latches},
	{KazooLock, Kazoo},
	{KazooRead, Kazoo},
}

// KindOf is the kind of a node by its name, and the recipe that it belongs to. Both are ""
// for names that are no participant's.
func KindOf[N string | []byte](name N) (kind Kind, recipe string) {
	const digits = 10 // that a server puts behind a name
	at := len(name) - digits
	if at < 0 {
		return "", ""
	}
	for i := at; i < len(name); i++ {
		if name[i] < '0' || name[i] > '9' {
			return "", ""
		}
	}
	for _, k := range kinds {
		if from := at - len(k.kind); from >= 0 && string(name[from:at]) == string(k.kind) {
			return k.kind, k.recipe
		}
	}
	return "", ""
}

// RecipeOf is the recipe that a child of a lock's node belongs to, as KindOf says, or by
// the folder that only a semaphore has.
func RecipeOf(name string) string {
	if name == Leases {
		name = string(Lease) + "0000000000"
	}
	_, recipe := KindOf(name)
	return recipe
}

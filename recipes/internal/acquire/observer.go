package acquire

// Event is a turning point of an attempt.
type Event struct {
	Kind        EventKind
	Queue       *Queue    // Wait, First, Away, Yield: in which
	Position    *Position // Wait: where ours stands there; it must not be kept
	Spread      bool      // Wait: goroutines of the client need nodes of their own. Nothing is handed over beside a MultiLock, and lately nobody hid a lock
	Node        string    // Wait: ours in the queue, in full
	Predecessor string    // Yield: the name of the node that passes us, "" if it is not known
	Err         error     // Retry: what has failed
}

// EventKind is what has happened.
type EventKind int

// The turning points of an attempt.
const (
	Wait  EventKind = iota + 1 // it begins to wait for others, or goes on to
	First                      // it waits in other queues, and is first in this one
	Away                       // it waits in other queues, and will come to this one later
	Yield                      // it gives up its place in a queue
	Retry                      // a failure that may pass, such as a lost connection
	End                        // Run returns
)

// tellWait says that an attempt waits with a node in a queue. It is a separate function,
// since every waiter pays for what is on the stack while an attempt waits.
//
//go:noinline
func (a *Attempt) tellWait(q *Queue, node string, p *Position) {
	spread := a.sawMulti && !sightsOf.Of(a.session).silent.lately()
	a.host.Observe(Event{Kind: Wait, Queue: q, Node: node, Position: p, Spread: spread})
}

package monitor

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/listeners"
)

// Tracer hears what a client does, if framework.Config has one. Many goroutines call its
// methods at once. The methods must return soon, since Begin and End run in the
// goroutine of the call that they are about. Events, and the End of a lost hold, come
// from another goroutine, in the order in which they happened. So a slow tracer holds up
// neither the session nor the loss of a lock.
//
// A method must not panic. Begin and End must not call Client.Close: it waits for the client's own
// work, which the call may be part of. A tracer may embed Nothing to implement only some methods.
type Tracer interface {
	// Begin hears that an operation begins. ctx is the caller's. The operation goes on
	// with the values of the context that Begin returns, and so does the context of a
	// hold. Only the values count: both still end when ctx ends. Nil stands for ctx.
	Begin(ctx context.Context, op Operation) context.Context
	// End hears how an operation has ended. It is called once for each Begin. ctx is
	// what that Begin returned.
	End(ctx context.Context, op Operation, result Result)
	// Event hears of something that happens at one moment. ctx is that of the operation
	// that it belongs to, or context.Background.
	Event(ctx context.Context, event Event)
}

// Nothing is a Tracer that does nothing.
type Nothing struct{}

// Begin implements Tracer.
func (Nothing) Begin(ctx context.Context, _ Operation) context.Context { return ctx }

// End implements Tracer.
func (Nothing) End(context.Context, Operation, Result) {}

// Event implements Tracer.
func (Nothing) Event(context.Context, Event) {}

// OperationKind says what kind of operation it is.
type OperationKind int

// The kinds of operations.
const (
	// Acquire is a call of Acquire or TryAcquire of a lock, or the wait for a term of
	// leadership.
	Acquire OperationKind = iota + 1
	// Hold is the time from the success of Acquire until the hold is released or lost.
	Hold
	// Release is a call of Hold.Release.
	Release
	// Call is a call of a method of framework.Client that asks the servers.
	Call
)

// String is the name in one word.
func (k OperationKind) String() string {
	switch k {
	case Acquire:
		return "acquire"
	case Hold:
		return "hold"
	case Release:
		return "release"
	case Call:
		return "call"
	}
	return "unknown"
}

// Operation is something that takes time.
type Operation struct {
	Kind  OperationKind
	Began time.Time
	// Lock is what Acquire, Hold and Release are about. An Acquire has no node yet.
	Lock Lock
	// Name is the name of a Call, such as "create", and Path its path, as in
	// errors.
	Name, Path string
}

// Result is how an operation has ended.
type Result struct {
	Ended   time.Time
	Outcome Outcome
	// Err is what the caller was told, or why the lock was lost. Nil for a success.
	Err error
	// Lock is that of the operation. After an Acquire it also has the node and the
	// token.
	Lock Lock
	// Waited is whether an Acquire found others ahead. Ahead is how many nodes were
	// ahead when it first looked, 0 also if it waited for a goroutine of this client.
	Waited bool
	Ahead  int
	// Attempts is how often a Call was tried; 0 for others.
	Attempts int
}

// Outcome is how an operation has ended, in one word or two. They are few, so that a
// metric may have them as a label.
type Outcome string

// The outcomes of an Acquire.
const (
	Acquired    Outcome = "acquired"
	TakenOver   Outcome = "taken over"  // from another goroutine of this client, with its node
	Reentered   Outcome = "reentered"   // the caller held it already
	Busy        Outcome = "busy"        // somebody else had it until the wait was over
	Unreachable Outcome = "unreachable" // no server could be asked; also of a Call
	Canceled    Outcome = "canceled"    // the caller's context has ended; also of a Call
	Failed      Outcome = "failed"      // for another reason; also of a Release and a Call
)

// The outcomes of a Hold and of a Release.
const (
	Released   Outcome = "released"
	HandedOver Outcome = "handed over" // to another goroutine of this client, with the node
	Kept       Outcome = "kept"        // of a Release: another hold of the same owner keeps the lock
	Pending    Outcome = "pending"     // of a Release: deleting goes on in the background
	Lost       Outcome = "lost"        // the lock was gone before it was released
)

// The other outcomes of a Call.
const (
	Done    Outcome = "done"
	Unknown Outcome = "unknown" // the reply to a write was lost
)

// EventKind is what has happened.
type EventKind int

// The kinds of events.
const (
	// Waiting says that an Acquire waits behind Ahead others.
	Waiting EventKind = iota + 1
	// Yielded says that an Acquire gave up its place in a queue, so that an owner behind
	// it can go on. It queues again.
	Yielded
	// Retried says that something is tried again after Err, which may pass.
	Retried
	// Uncertain says that a hold cannot be confirmed, as there is no connection. It is
	// not lost.
	Uncertain
	// Confirmed says that a hold is sure again.
	Confirmed
	// Connection says that the state of the connection has changed to State.
	Connection
	// LeaseRenewed says that the session lease was confirmed by a write, and lasts for
	// Left at least. It comes only while locks are held, and not for each reply.
	LeaseRenewed
)

// String is the name in one or two words.
func (k EventKind) String() string {
	switch k {
	case Waiting:
		return "waiting"
	case Yielded:
		return "yielded"
	case Retried:
		return "retried"
	case Uncertain:
		return "uncertain"
	case Confirmed:
		return "confirmed"
	case Connection:
		return "connection"
	case LeaseRenewed:
		return "lease renewed"
	}
	return "unknown"
}

// Event is something that happens at one moment.
type Event struct {
	Kind EventKind
	At   time.Time
	// Operation is what the event belongs to: an Acquire, a Hold or a Call. It is zero
	// for Connection and LeaseRenewed.
	Operation Operation
	// Err is the failure that led to a Retried. Other kinds have none.
	Err error
	// Ahead is how many nodes are ahead of the waiter's, and Behind is the node that it
	// waits for, in full. They are 0 and "" if it waits for a goroutine of this client.
	Ahead  int
	Behind string
	// State, Server and Session are those of a Connection. Server is "" and Session 0
	// while there is none.
	State   listeners.State
	Server  string
	Session int64
	// Left is how long the session lease still lasts, after LeaseRenewed.
	Left time.Duration
}

package monitor

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/listeners"
)

// Tracer is told what a client does, if framework.Config has one. Its methods are
// called by many goroutines at once. They must return soon: Begin and End are
// called by the goroutine whose call it is. Events, and the End of a hold that was lost,
// come from a goroutine of their own, in the order in which they happened. So a slow
// tracer holds up neither the session nor the loss of a lock.
//
// A method that panics is reported to the client's error listeners, and what it was
// called for goes on. A tracer may embed Nothing to implement only some methods.
type Tracer interface {
	// Begin is told that an operation begins. ctx is the caller's. The operation, and
	// for a hold also what is done with its context, goes on with the values of the
	// context returned. Only its values: it ends when the caller's does. Nil stands for
	// ctx.
	Begin(ctx context.Context, op Operation) context.Context
	// End is told how an operation has ended that Begin was told of. ctx is what Begin
	// has returned. It is called once for each Begin.
	End(ctx context.Context, op Operation, result Result)
	// Event is told of what happens at one moment. ctx is that of the operation that it
	// belongs to, or context.Background.
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

// OperationKind is what goes on.
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
	// Name and Path are those of a Call, as errors have them, such as "create".
	Name, Path string
}

// Result is how an operation has ended.
type Result struct {
	Ended   time.Time
	Outcome Outcome
	// Err is what the caller was told, or why the lock was lost. Nil for a success.
	Err error
	// Lock has the node and the token that an Acquire has got.
	Lock Lock
	// Waited is whether an Acquire found somebody ahead, and Ahead how many nodes there
	// were when it first looked. 0 also if it waited for a goroutine of this client.
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
	// Yielded says that an Acquire gave up its place in a queue, so that somebody behind
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
	// Err is why, of Retried.
	Err error
	// Ahead is how many nodes are before that of the waiter. Behind is the one that it
	// waits for, in full. They are 0 and "" if it waits for a goroutine of this client.
	Ahead  int
	Behind string
	// State, Server and Session are those of a Connection. Server is "" and Session 0
	// while there is none.
	State   listeners.State
	Server  string
	Session int64
	// Left is for how long the session lease lasts.
	Left time.Duration
}

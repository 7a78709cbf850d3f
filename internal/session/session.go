// Package session is one client's session with an ensemble, across
// connections: its states, the session lease, the tracked nodes that rest on it, and
// its requests. It speaks of full paths only; namespaces, retries and options are the
// framework's.
//
// The transport says what happens to the connection (events.go). That decides the state,
// and whether the session counts as lost (state.go). One goroutine minds the clock
// (runloop.go). Callers wait for a connection (connection.go) and send their requests to
// it (calls.go), watches through their registry (package watch).
//
// What a hold relies on is a tracked node (tracked.go). Until when the servers cannot have
// ended the session is decided by package lease.
//
// Bytes, frames, the list of servers, reconnecting and pings are the business of package
// transport, and of go-zookeeper below it.
package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/session/lease"
	"github.com/paddock-zk/paddock/internal/session/watch"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/transport/batch"
	"github.com/paddock-zk/paddock/internal/transport/random"
	"github.com/paddock-zk/paddock/listeners"
)

// ErrSessionOver reports that the session asked for has ended, or that a node of it is gone.
var ErrSessionOver = errors.New("session is over")

// ErrTimeoutTooShort reports a tracked node that cannot be held as the session timeout
// is too short: in itself, or for the time that requests take.
var ErrTimeoutTooShort = errors.New("session timeout is too short for locks")

// Config says how to run a session.
type Config struct {
	Seams
	Transport    transport.Config // without its Logger
	NoBatches    bool             // requests of different locks do not leave together
	Lease        lease.Rule
	ServerTick   time.Duration // see lease.Terms
	CloseTimeout time.Duration
	// LostAfter ends the session lease when there has been no connection for so
	// long, if it has not ended before. 0 does not.
	LostAfter time.Duration
	Logger    *zap.Logger
	Observer  Observer // nil for none
}

// Session is safe for use by many goroutines.
//
// One mutex guards connection, session lease and tracked nodes. Changes are told without
// it.
//
// Lock order: none. mu, the registry's mutex and a connection's are never held together.
// The only exception is the registry, which queues requests under its own mutex.
type Session struct {
	cfg       Config
	clock     Clock
	opened    time.Time
	random    *random.Source
	transport *transport.Transport
	log       *zap.Logger
	aside     listeners.Hub[func()] // see Aside
	states    listeners.Hub[listeners.State]
	errors    listeners.Hub[error]
	watches   *watch.Registry
	window    *window // of requests on their way
	batches   batch.Counts
	wake      chan struct{} // wakes the run loop
	life      context.Context
	stop      context.CancelCauseFunc
	jobs      sync.WaitGroup // the run loop, and work in the background
	beside    sync.WaitGroup // see GoBeside
	slots     sync.Map       // by *Slot: what it keeps
	// heldUntil is until when all tracked nodes that are held stay so, counted from the
	// opening of the session object. It is the deadline at the time of the last question.
	// It is 0 before that, and once tracked nodes are in doubt.
	heldUntil atomic.Int64

	mu          sync.Mutex // guards the fields below
	state       listeners.State
	stateSince  time.Time
	served      bool            // a server with a majority was connected once, which no state tells
	conn        *transport.Conn // nil while not connected
	id          int64           // 0 without a session, or once it is given up
	lease       lease.Lease
	ready       bool          // see KeepReady: a wish of the user's, in any state
	warned      bool          // the log has warned of the lease on this connection: nothing else goes by it
	overdue     bool          // the deadline was seen to have passed. The state is LOST only once tracked nodes are told
	losing      chan struct{} // closed when the session has been given up; nil while nobody is about to
	givenUp     int64         // the session that was given up last
	tracked     trackedNodes
	everTracked bool // a tracked node was made since the run loop looked: only when to look next goes by it
	watching    int  // requests on their way that set watches on tracked nodes
	gone        gone
	checks      lease.Backoff // of checks that verify tracked nodes, once some were refused
	heldLook    time.Time     // when to look next for nodes that are there for long
	wakeAt      time.Time     // when the run loop will look again by itself; zero for never, and while it looks
	failure     error         // why there is no connection
	lastFailure error         // the same, kept while there is one
	outage      outage        // how long there has been none
	closed      bool          // Close has begun. The state is LOST only once tracked nodes and servers are told
	changed     chan struct{} // closed and replaced when conn, failure or closed change
	done        chan struct{} // closed when Close has finished
	closeErr    error
}

// Seams are parts that tests replace.
type Seams struct {
	Clock  Clock          // by which the session lease is counted; nil for that of the machine
	Random *random.Source // nil for what nobody can foresee
}

// Open begins to connect, in the background and for as long as it takes.
func Open(cfg Config) (*Session, error) {
	if cfg.Clock == nil {
		cfg.Clock = newMachineClock()
	}
	s := &Session{
		cfg:     cfg,
		clock:   cfg.Clock,
		random:  cfg.Random,
		log:     cfg.Logger,
		watches: watch.New(cfg.Transport.MaxRequest),
		window:  newWindow(),
		wake:    make(chan struct{}, 1),
		changed: make(chan struct{}),
		done:    make(chan struct{}),
	}
	s.opened, s.stateSince = s.clock.Now(), time.Now()
	s.outage.since = s.opened
	s.states.ReplayLast = true
	s.states.OnPanic = s.reportPanic
	s.errors.OnPanic = func(r any) { s.log.Error("error listener panicked", zap.Any("value", r)) }
	s.aside.OnPanic = s.reportPanic // of a logger
	s.aside.Listen(func(fn func()) { fn() })
	s.life, s.stop = context.WithCancelCause(context.Background())
	cfg.Transport.Logger, cfg.Transport.Now, cfg.Transport.Random = cfg.Logger, s.clock.Now, s.random
	cfg.Transport.LostAfter, cfg.Transport.Holding = cfg.LostAfter, s.holding
	if !cfg.NoBatches {
		cfg.Transport.Source = s.batches.Source
	}
	s.transport = transport.New(cfg.Transport, events{s})
	if err := s.transport.Open(); err != nil {
		s.stop(err)
		return nil, err
	}
	s.jobs.Go(s.run)
	return s, nil
}

// PanicError is what a listener panicked with.
type PanicError struct{ Value any }

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("listener panicked: %v", e.Value) }

// Report tells the log and the error listeners of a failure that has no caller. The log
// has it under a message by which one can look for it.
func (s *Session) Report(message string, err error) {
	s.log.Warn(message, zap.Error(err))
	s.errors.Publish(err)
}

// reportPanic reports what a function of the program has panicked with.
func (s *Session) reportPanic(value any) { s.Report(Panicked, &PanicError{Value: value}) }

// Panicked is the message about a panic in a listener or another function of the program.
const Panicked = "a function of the program panicked"

// States delivers every change of state, beginning with the present one.
func (s *Session) States() listeners.Source[listeners.State] { return &s.states }

// Errors delivers failures that no call can return.
func (s *Session) Errors() listeners.Source[error] { return &s.errors }

// Log is where the client logs.
func (s *Session) Log() *zap.Logger { return s.log }

// Transport is the connection underneath.
func (s *Session) Transport() *transport.Transport { return s.transport }

// ID is the session's id, 0 without one.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Timeout is the session's timeout as granted, 0 before the first connection.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.Timeout()
}

// Life ends when the session begins to close, with ErrClosed as its cause.
func (s *Session) Life() context.Context { return s.life }

// IsClosed reports whether Close was called.
func (s *Session) IsClosed() bool { return s.life.Err() != nil }

// wakeBeforeLocked wakes the run loop unless it looks by then. The caller has noted before
// what is due.
func (s *Session) wakeBeforeLocked(due time.Time) {
	if s.wakeAt.IsZero() || due.Before(s.wakeAt) {
		s.wakeLocked()
	}
}

// wakeLocked wakes the run loop.
func (s *Session) wakeLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends tracked nodes, watches, background work and the session, in this order, for
// slightly more than CloseTimeout if functions of Config return. The state is LOST then, and it waits for what GoBeside runs, without a
// limit. It returns nil if the servers were told, or have said that the session is over. An error
// matches transport.ErrNotTold: nodes of the session may be left. A second Close waits for the first and returns its error.
func (s *Session) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.done
		return s.closeErr
	}
	s.closed = true
	lost, losing := s.loseTrackedLocked(ErrClosed), s.losing
	s.wakeWaitersLocked()
	s.mu.Unlock()

	// Before anything that may end the session on the servers.
	notifyOwners(lost)
	if losing != nil {
		<-losing
	}
	s.stop(ErrClosed)
	s.watches.End(ErrClosed, true)
	s.jobs.Wait()

	s.closeErr = s.transport.Close(s.cfg.CloseTimeout)
	s.mu.Lock()
	s.id = 0
	if s.state != listeners.Latent && s.state != listeners.Lost {
		s.state, s.stateSince = listeners.Lost, time.Now() // not published: the end of the events says it
	}
	s.mu.Unlock()
	s.states.Close()

	s.beside.Wait()
	s.aside.Close()
	s.errors.Close()
	close(s.done)
	return s.closeErr
}

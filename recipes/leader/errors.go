package leader

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrLeave is what a function returns to Run in order to leave the election. Run then
	// returns nil.
	ErrLeave = errors.New("leave the election")
	// ErrSteppedDown reports a term that its own candidate ended: by GiveWay, after a
	// failed health check, or as the connection was suspended with EndOnSuspended.
	ErrSteppedDown = errors.New("stepped down")
	// ErrUnhealthy reports a term that ended because its health check failed. It comes
	// together with ErrSteppedDown and with what the check returned.
	ErrUnhealthy = errors.New("health check failed")
	// ErrExited reports a function that ended its goroutine with runtime.Goexit.
	ErrExited = errors.New("function ended its goroutine")
)

// FunctionError is a failure of a function that Run called. Run tells it to the listeners
// of framework.Client.Errors.
type FunctionError struct {
	Path   string // of the election, as it was given
	Number int64  // of the term
	Err    error  // what the function returned
}

// Error implements error.
func (e *FunctionError) Error() string {
	return fmt.Sprintf("leader function at %s, term %d: %v", e.Path, e.Number, e.Err)
}

// Unwrap gives what the function returned.
func (e *FunctionError) Unwrap() error { return e.Err }

// OverrunError says that a function goes on although the context of its term has ended.
// Run tells it to the listeners of framework.Client.Errors, once for each term.
type OverrunError struct {
	Path   string        // of the election, as it was given
	Number int64         // of the term
	Limit  time.Duration // for how long the function has gone on, see Grace
	Cause  error         // why the term ended
}

// Error implements error.
func (e *OverrunError) Error() string {
	return fmt.Sprintf("leader function at %s, term %d: still runs %v after its context ended (%v)", e.Path, e.Number, e.Limit, e.Cause)
}

// Unwrap gives why the term ended.
func (e *OverrunError) Unwrap() error { return e.Cause }

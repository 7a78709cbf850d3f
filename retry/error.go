package retry

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrExhausted reports that the policy allows no further attempt. If a limit of time
// forbids it, the text says so in place of this one: that of WithMaxElapsed or of
// UntilElapsed.
var ErrExhausted = errors.New("attempts used up")

// ErrStopped reports a failure judged Stop.
var ErrStopped = errors.New("not retryable")

// ErrUnsure reports a failure judged Unsure in a call that is not Idempotent.
var ErrUnsure = errors.New("may have taken effect")

// ErrNoBudget reports that the budget has no retry left, or that an outer loop has
// none left (see Detach). The text says why the outer loop has none.
var ErrNoBudget = errors.New("retry budget used up")

var (
	errNilContext     = errors.New("context is nil")
	errNilOp          = errors.New("op is nil")
	errNoReturn       = errors.New("panic or end of the goroutine")
	errAttemptTimeout = errors.New("attempt timed out")
)

// timeError is ErrExhausted where a limit of time is the reason.
type timeError string

// Error implements error.
func (e timeError) Error() string { return "time used up (" + string(e) + ")" }

// Is has it match ErrExhausted.
func (e timeError) Is(target error) bool { return target == ErrExhausted }

// usedUp is why a schedule allows no further attempt.
func usedUp(s delays) error {
	if s, ok := s.(untilElapsed); ok {
		return timeError(fmt.Sprintf("limit %v", s.limit))
	}
	return ErrExhausted
}

// Error is what Do returns. errors.Is and errors.As find both Reason and Last
// in it.
//
// Last may be the *Error of a loop inside op, so errors.Is(err, ErrStopped)
// also finds that loop's reason. To ask about this one, give Reason to errors.Is.
type Error struct {
	// Policy is the policy's name, or empty.
	Policy string
	// Attempts counts the calls of op.
	Attempts int
	// Elapsed is the time from the call of Do to giving up.
	Elapsed time.Duration
	// Reason is why no further attempt was made. It matches ErrExhausted, ErrStopped,
	// ErrUnsure, ErrNoBudget or the end of the caller's context. The latter
	// matches ctx.Err() and not the context's cause, which is in its text.
	// Reason wraps context.DeadlineExceeded if the next delay would have
	// outlasted the context's deadline. If ctx or op was nil, it says that.
	Reason error
	// Last is the last attempt's failure; nil if there was no attempt.
	Last error

	verdict Decision // for a loop around this one
}

// Error tells the reason, the number of attempts, the time and the last
// failure. A failure that begins with the reason is told without it.
func (e *Error) Error() string {
	text := "retry"
	if e.Policy != "" {
		text += " " + e.Policy
	}
	attempts := "attempts"
	if e.Attempts == 1 {
		attempts = "attempt"
	}
	text += fmt.Sprintf(": %v after %d %s in %v", e.Reason, e.Attempts, attempts, e.Elapsed.Round(time.Millisecond))
	if e.Last == nil {
		return text
	}
	last, reason := e.Last.Error(), fmt.Sprint(e.Reason)
	if last == reason {
		return text
	}
	return text + ": " + strings.TrimPrefix(last, reason+": ")
}

// Unwrap returns Reason and Last, as far as there are any.
func (e *Error) Unwrap() []error {
	all := make([]error, 0, 2)
	for _, err := range []error{e.Reason, e.Last} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/retry"
)

// op is one public call: what it is, on which path, and how it is repeated.
type op struct {
	*base
	name       string
	path       string // in full
	write      bool
	idempotent bool // may be repeated although it may have taken effect

	absentIsFine bool // that the node does not exist is a success
}

// begin checks what every call is given. sequential is whether digits will be
// put behind the path, which may then end in a slash.
func (c *Client) begin(ctx context.Context, name, path string, write, sequential bool) (*op, error) {
	if c.unusable() {
		return nil, &OpError{Op: name, Path: path, Err: ErrClosed}
	}
	full, err := c.full(path, sequential)
	if err != nil {
		return nil, &OpError{Op: name, Path: path, Err: err}
	}
	o := &op{base: c.base, name: name, path: full, write: write}
	if ctx == nil {
		return nil, o.fail(ErrNilContext)
	}
	return o, nil
}

func (o *op) fail(err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: o.name, Path: o.path, Err: err}
}

// do runs attempts by the client's policy.
func (o *op) do(ctx context.Context, attempt func(ctx context.Context) error) error {
	if o.plan.Tracer != nil {
		return o.traced(ctx, attempt)
	}
	return o.repeat(ctx, attempt)
}

// repeat is do without the tracer.
func (o *op) repeat(ctx context.Context, attempt func(ctx context.Context) error) error {
	var opts []retry.Option
	if o.idempotent || !o.write {
		opts = append(opts, retry.Idempotent())
	}
	return o.fail(plainly(retry.Do(ctx, o.plan.Retry, func(limited context.Context) error {
		err := attempt(limited)
		if errors.Is(err, ErrNoNode) {
			err = o.absent(limited, err)
		}
		if limited.Err() != nil && ctx.Err() == nil && ended(err) {
			return late(err)
		}
		return err
	}, opts...)))
}

// absent is what it means that a node does not exist. A chroot that is missing is a
// mistake, so it is told.
func (o *op) absent(ctx context.Context, err error) error {
	looksFor := o.absentIsFine && o.path == o.plan.chroot
	var missing *chrootError
	if !looksFor && !errors.As(err, &missing) && errors.As(o.checkChroot(ctx), &missing) {
		return &chrootError{missing.chroot, err}
	}
	if o.absentIsFine {
		return nil
	}
	return err
}

// checkChroot returns a *chrootError if the servers do not have the chroot. It asks until
// the chroot has been there once, so later calls cost no round trip.
func (o *op) checkChroot(ctx context.Context) error {
	chroot := o.plan.chroot
	if chroot == "" || o.chrootThere.Load() {
		return nil
	}
	reading := o.on(chroot)
	reading.write = false
	err := reading.round(ctx, wire.OpExists, &wire.PathWatchRequest{Path: chroot}, new(wire.StatResponse))
	switch {
	case errors.Is(err, ErrNoNode):
		return &chrootError{chroot, ErrNoNode}
	case err == nil, errors.Is(err, ErrNoAuth): // there, and may not be read
		o.chrootThere.Store(true)
		return nil
	}
	return err
}

// chrootError says that the chroot does not exist.
type chrootError struct {
	chroot string
	err    error
}

// Error implements error.
func (e *chrootError) Error() string { return "chroot " + e.chroot + ": " + e.err.Error() }

// Unwrap gives the answer to the request.
func (e *chrootError) Unwrap() error { return e.err }

// late is how an attempt ended whose own time was up. The caller's context goes
// on, so the error must not match its end.
func late(err error) error {
	what := ErrNotConnected
	if Ambiguous(err) {
		what = ErrOutcomeUnknown
	}
	return fmt.Errorf("%w: no answer within the time for one attempt", what)
}

// plainly takes off what says no more than that there was one attempt, or none.
func plainly(err error) error {
	var r *retry.Error
	if !errors.As(err, &r) {
		return err
	}
	switch {
	case r.Attempts == 0:
		return r.Reason
	case r.Attempts > 1 || r.Last == nil:
		return err
	case errors.Is(r.Reason, retry.ErrStopped), errors.Is(r.Reason, retry.ErrUnsure):
		return r.Last
	case ended(r.Reason) && (ended(r.Last) || classify(r.Last) == retry.Stop): // it says the same, or a server has answered
		return r.Last
	}
	return err
}

// conn waits for a connection, for no longer than one attempt may.
func (o *op) conn(ctx context.Context) (*transport.Conn, error) {
	began := time.Now()
	patient, cancel := context.WithTimeout(ctx, o.plan.ConnectTimeout)
	defer cancel()
	c, err := o.session.AwaitConn(patient, o.write)
	switch {
	case err == nil || !ended(err):
		return c, err
	case ctx.Err() == nil:
		return nil, o.session.NotConnected(fmt.Sprintf(" within %v", o.plan.ConnectTimeout))
	}
	waited := time.Since(began).Round(time.Millisecond)
	return nil, fmt.Errorf("%w: %w", err, o.session.NotConnected(fmt.Sprintf(" for %v", waited)))
}

// round is one attempt with one request.
func (o *op) round(ctx context.Context, code wire.Op, req, resp wire.Record) error {
	c, err := o.conn(ctx)
	if err != nil {
		return err
	}
	return o.session.Round(ctx, c, code, o.write, req, resp)
}

// on is the same operation on another path.
func (o *op) on(path string) *op {
	other := *o
	other.path = path
	return &other
}

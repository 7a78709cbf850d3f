package framework

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/listeners"
)

// tracer is the user's Tracer, as a client and its recipes use it.
type tracer struct{ monitor.Tracer }

// Begin returns the context of the operation, which ends when ctx does: one of the tracer's
// that does not is ignored.
func (t tracer) Begin(ctx context.Context, op monitor.Operation) context.Context {
	of := t.Tracer.Begin(ctx, op)
	if of == nil || of.Done() != ctx.Done() {
		return ctx
	}
	return of
}

// Connection implements session.Observer.
func (t tracer) Connection(at time.Time, state listeners.State, server string, id int64) {
	t.Event(context.Background(), monitor.Event{Kind: monitor.Connection, At: at, State: state, Server: server, Session: id})
}

// LeaseRenewed implements session.Observer.
func (t tracer) LeaseRenewed(at time.Time, left time.Duration) {
	t.Event(context.Background(), monitor.Event{Kind: monitor.LeaseRenewed, At: at, Left: left})
}

// traced runs attempts by the client's policy, and tells the tracer.
func (o *op) traced(ctx context.Context, attempt func(ctx context.Context) error) error {
	t := tracer{o.plan.Tracer}
	call := monitor.Operation{Kind: monitor.Call, Began: time.Now(), Name: o.name, Path: o.path}
	ctx = t.Begin(ctx, call)
	attempts := 0
	var last error
	err := o.repeat(ctx, func(limited context.Context) error {
		if attempts++; attempts > 1 {
			t.Event(ctx, monitor.Event{Kind: monitor.Retried, At: time.Now(), Operation: call, Err: last})
		}
		last = attempt(limited)
		return last
	})
	t.End(ctx, call, monitor.Result{Ended: time.Now(), Outcome: outcome(err), Err: err, Attempts: attempts})
	return err
}

// outcome is how a call has ended, in a word.
func outcome(err error) monitor.Outcome {
	switch {
	case err == nil:
		return monitor.Done
	case errors.Is(err, ErrOutcomeUnknown):
		return monitor.Unknown
	case ended(err):
		return monitor.Canceled
	case errors.Is(err, ErrNotConnected):
		return monitor.Unreachable
	}
	return monitor.Failed
}

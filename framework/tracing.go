package framework

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-zk/paddock/framework/monitor"
)

// traced runs attempts by the client's policy, and tells the tracer.
func (o *op) traced(ctx context.Context, attempt func(ctx context.Context) error) error {
	t := o.session.Tracing()
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

package monitor

import "context"

// Join is a Tracer that passes everything on to several, in their order. Each operation goes
// on with what all of them have put into its context. A nil one is left out.
func Join(tracers ...Tracer) Tracer {
	var all joined
	for _, t := range tracers {
		if t != nil {
			all = append(all, t)
		}
	}
	return all
}

type joined []Tracer

// Begin implements Tracer.
func (all joined) Begin(ctx context.Context, op Operation) context.Context {
	for _, t := range all {
		if its := t.Begin(ctx, op); its != nil {
			ctx = its
		}
	}
	return ctx
}

// End implements Tracer.
func (all joined) End(ctx context.Context, op Operation, result Result) {
	for _, t := range all {
		t.End(ctx, op, result)
	}
}

// Event implements Tracer.
func (all joined) Event(ctx context.Context, event Event) {
	for _, t := range all {
		t.Event(ctx, event)
	}
}

package framework

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework/monitor"
)

// strange is a tracer with a mistake.
type strange struct {
	begin func(ctx context.Context) context.Context
}

func (s strange) Begin(ctx context.Context, _ monitor.Operation) context.Context { return s.begin(ctx) }

func (strange) End(context.Context, monitor.Operation, monitor.Result) {}

func (strange) Event(context.Context, monitor.Event) {}

// An operation ends with the context of its caller, whatever a tracer returns.
func TestTracer_Strange(t *testing.T) {
	type key struct{}
	for name, tc := range map[string]struct {
		begin func(ctx context.Context) context.Context
		used  bool
	}{
		"a value":     {func(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, 1) }, true},
		"another end": {func(context.Context) context.Context { return context.WithValue(context.Background(), key{}, 1) }, false},
		"no context":  {func(context.Context) context.Context { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			tracer := tracer{strange{tc.begin}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			of := tracer.Begin(ctx, monitor.Operation{})
			assert.Equal(t, tc.used, of.Value(key{}) != nil)
			cancel()
			assert.Error(t, of.Err())
		})
	}
}

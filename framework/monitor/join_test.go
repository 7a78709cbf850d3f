package monitor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/framework/monitor"
)

// noting notes what it hears, and what its context has. Its Begin returns nil if it has no name.
type noting struct {
	name  string
	heard *[]string
}

type key string

func (n noting) Begin(ctx context.Context, op monitor.Operation) context.Context {
	*n.heard = append(*n.heard, n.name+" begins "+op.Name)
	if n.name == "" {
		return nil
	}
	return context.WithValue(ctx, key(n.name), true)
}

func (n noting) End(ctx context.Context, _ monitor.Operation, result monitor.Result) {
	note(ctx, n.heard, n.name+" ends "+string(result.Outcome))
}

func (n noting) Event(ctx context.Context, event monitor.Event) {
	note(ctx, n.heard, n.name+" hears "+event.Kind.String())
}

func note(ctx context.Context, heard *[]string, text string) {
	for _, name := range []string{"a", "b"} {
		if ctx.Value(key(name)) != nil {
			text += " with " + name
		}
	}
	*heard = append(*heard, text)
}

func TestJoin(t *testing.T) {
	var heard []string
	all := monitor.Join(noting{"a", &heard}, nil, noting{"", &heard}, noting{"b", &heard})
	op := monitor.Operation{Name: "get"}
	ctx := all.Begin(t.Context(), op)
	all.Event(ctx, monitor.Event{Kind: monitor.Retried})
	all.End(ctx, op, monitor.Result{Outcome: monitor.Done})
	assert.Equal(t, []string{
		"a begins get", " begins get", "b begins get",
		"a hears retried with a with b", " hears retried with a with b", "b hears retried with a with b",
		"a ends done with a with b", " ends done with a with b", "b ends done with a with b",
	}, heard)
	assert.Equal(t, t.Context(), monitor.Join().Begin(t.Context(), op))
}

package session

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/paddock-zk/paddock/framework/monitor"
)

// Data of nodes is logged of elections alone.
func TestLockFields(t *testing.T) {
	for name, tc := range map[string]struct {
		lock monitor.Lock
		want map[string]any
	}{
		"no node yet": {monitor.Lock{Kind: monitor.Mutex, Path: "/l"}, map[string]any{"kind": "mutex", "path": "/l"}},
		"held": {monitor.Lock{Kind: monitor.Mutex, Path: "/l", Node: "/l/a", Token: 7, Participant: "secret"},
			map[string]any{"kind": "mutex", "path": "/l", "node": "/l/a", "token": int64(7)}},
		"a candidate": {monitor.Lock{Kind: monitor.Latch, Path: "/e", Participant: "a"}, map[string]any{"kind": "latch", "path": "/e", "participant": "a"}},
	} {
		enc := zapcore.NewMapObjectEncoder()
		for _, f := range LockFields(tc.lock) {
			f.AddTo(enc)
		}
		assert.Equal(t, tc.want, enc.Fields, name)
	}
}

// A line says how an operation ended, and how long it took.
func TestTracing_LogsOperations(t *testing.T) {
	began := time.Now()
	errNo := errors.New("no")
	for name, tc := range map[string]struct {
		kind   monitor.OperationKind
		result monitor.Result
		line   string
		fields map[string]any
	}{
		"acquired":  {monitor.Acquire, monitor.Result{Outcome: monitor.Acquired}, "acquired", map[string]any{"waited": time.Second}},
		"waited":    {monitor.Acquire, monitor.Result{Outcome: monitor.Acquired, Waited: true, Ahead: 3}, "acquired", map[string]any{"waited": time.Second, "ahead": int64(3)}},
		"given up":  {monitor.Acquire, monitor.Result{Outcome: monitor.Canceled, Err: errNo}, "not acquired", map[string]any{"waited": time.Second, "error": "no"}},
		"released":  {monitor.Hold, monitor.Result{Outcome: monitor.Released}, "released", map[string]any{"held": time.Second}},
		"lost":      {monitor.Hold, monitor.Result{Outcome: monitor.Lost, Err: errNo}, "", nil}, // a line of its own says so
		"of a call": {monitor.Call, monitor.Result{}, "", nil},
	} {
		core, logs := observer.New(zapcore.DebugLevel)
		tracing := &Tracing{log: zap.New(core)}
		tc.result.Ended = began.Add(time.Second)
		tracing.End(t.Context(), monitor.Operation{Kind: tc.kind, Began: began}, tc.result)
		if tc.line == "" {
			assert.Empty(t, logs.All(), name)
			continue
		}
		if assert.Len(t, logs.All(), 1, name) {
			line := logs.All()[0]
			fields := line.ContextMap()
			delete(fields, "kind")
			delete(fields, "path")
			assert.Equal(t, tc.line, line.Message, name)
			assert.Equal(t, tc.fields, fields, name)
		}
	}
	core, logs := observer.New(zapcore.InfoLevel)
	tracing := &Tracing{log: zap.New(core)}
	assert.False(t, tracing.On())
	tracing.Lost(monitor.Lock{}, time.Second, ErrClosed)
	tracing.Lost(monitor.Lock{}, time.Second, errNo)
	require.Len(t, logs.All(), 2)
	assert.Equal(t, zapcore.InfoLevel, logs.All()[0].Level, "as the program wants it")
	assert.Equal(t, zapcore.WarnLevel, logs.All()[1].Level)
}

// strange is a tracer with a mistake.
type strange struct {
	begin func(ctx context.Context) context.Context
}

func (s strange) Begin(ctx context.Context, _ monitor.Operation) context.Context { return s.begin(ctx) }

func (strange) End(context.Context, monitor.Operation, monitor.Result) {}

func (strange) Event(context.Context, monitor.Event) {}

// An operation ends with the context of its caller, whatever a tracer returns.
func TestTracing_StrangeTracers(t *testing.T) {
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
			tracing := &Tracing{tracer: strange{tc.begin}, log: zap.NewNop()}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			of := tracing.Begin(ctx, monitor.Operation{})
			assert.Equal(t, tc.used, of.Value(key{}) != nil)
			cancel()
			assert.Error(t, of.Err())
		})
	}
}

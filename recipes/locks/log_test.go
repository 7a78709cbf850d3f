package locks

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
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
		for _, f := range lockFields(tc.lock) {
			f.AddTo(enc)
		}
		assert.Equal(t, tc.want, enc.Fields, name)
	}
}

// A line says how an operation ended, and how long it took.
func TestLogOfOperations(t *testing.T) {
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
		tc.result.Ended = began.Add(time.Second)
		logEnd(zap.New(core), monitor.Operation{Kind: tc.kind, Began: began}, tc.result)
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
}

// A lock that is lost is worth a warning, unless the client is closed.
func TestLogOfLosses(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	c, err := framework.Start(framework.Config{ConnectString: "127.0.0.1:1", Logger: zap.New(core)})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	open, _ := c.Core(session.Key{})
	logLost(open.Session(), monitor.Lock{}, time.Second, session.ErrClosed)
	logLost(open.Session(), monitor.Lock{}, time.Second, errors.New("no"))
	logs = logs.FilterMessage("lost")
	require.Equal(t, 2, logs.Len())
	assert.Equal(t, zapcore.InfoLevel, logs.All()[0].Level, "as the program wants it")
	assert.Equal(t, zapcore.WarnLevel, logs.All()[1].Level)
}

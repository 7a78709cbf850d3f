package retry_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/paddock-zk/paddock/retry"
)

func TestLogTo(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	p := retry.NTimes(2, ms).Named("orders").OnRetry(retry.LogTo(zap.New(core)))
	_ = retry.Do(t.Context(), p, fails(errors.New("first"), errors.New("second")))

	require.Equal(t, 2, logs.Len())
	entry := logs.All()[1]
	assert.Equal(t, zapcore.WarnLevel, entry.Level)
	assert.Equal(t, "retrying", entry.Message)
	fields := entry.ContextMap()
	assert.GreaterOrEqual(t, fields["elapsed"], ms)
	delete(fields, "elapsed")
	assert.Equal(t, map[string]any{"policy": "orders", "attempt": int64(2), "delay": time.Millisecond, "error": "second"}, fields)
}

func TestLogToNothing(t *testing.T) {
	assert.NoError(t, retry.Do(t.Context(), retry.OneTime(0).OnRetry(retry.LogTo(nil)), fails(errors.New("once"), nil)))
}

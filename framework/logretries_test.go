package framework_test

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

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/retry"
)

func TestLogRetries(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	p := retry.NTimes(2, time.Millisecond).Named("orders").OnRetry(framework.LogRetries(zap.New(core))).OnRetry(framework.LogRetries(nil))
	_ = retry.Do(t.Context(), p, func(context.Context) error { return errors.New("busy") })

	require.Equal(t, 2, logs.Len())
	entry := logs.All()[1]
	assert.Equal(t, zapcore.WarnLevel, entry.Level)
	assert.Equal(t, "retrying", entry.Message)
	fields := entry.ContextMap()
	assert.GreaterOrEqual(t, fields["elapsed"], time.Millisecond)
	delete(fields, "elapsed")
	assert.Equal(t, map[string]any{"policy": "orders", "attempt": int64(2), "delay": time.Millisecond, "error": "busy"}, fields)
}

package retry_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

// lines is a handler that keeps what it is given.
type lines struct {
	slog.Handler
	contexts []context.Context
	records  []slog.Record
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (l *lines) Handle(ctx context.Context, r slog.Record) error {
	l.contexts, l.records = append(l.contexts, ctx), append(l.records, r)
	return nil
}

func TestLogTo(t *testing.T) {
	written := new(lines)
	p := retry.NTimes(2, ms).Named("orders").OnRetry(retry.LogTo(slog.New(written)))
	ctx := context.WithValue(t.Context(), new(lines), "a request's")
	failure := errors.New("second")
	_ = retry.Do(ctx, p, fails(errors.New("first"), failure))

	require.Len(t, written.records, 2)
	assert.Equal(t, ctx, written.contexts[1])
	r := written.records[1]
	assert.Equal(t, slog.LevelWarn, r.Level)
	assert.Equal(t, "retrying", r.Message)
	attrs := map[string]any{}
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.Any()
		return true
	})
	assert.GreaterOrEqual(t, attrs["elapsed"], ms)
	delete(attrs, "elapsed")
	assert.Equal(t, map[string]any{"policy": "orders", "attempt": int64(2), "delay": time.Millisecond, "error": failure}, attrs)
}

func TestLogToNothing(t *testing.T) {
	assert.NoError(t, retry.Do(t.Context(), retry.OneTime(0).OnRetry(retry.LogTo(nil)), fails(errors.New("once"), nil)))
}

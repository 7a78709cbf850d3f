package retry

import (
	"context"

	"go.uber.org/zap"
)

// LogTo returns a hook for OnRetry that writes one line per retry, at warn
// level. A nil l writes nothing.
func LogTo(l *zap.Logger) func(ctx context.Context, a Attempt) {
	if l == nil {
		l = zap.NewNop()
	}
	return func(_ context.Context, a Attempt) {
		l.Warn("retrying",
			zap.String("policy", a.Policy),
			zap.Int("attempt", a.Number),
			zap.Duration("delay", a.Delay),
			zap.Duration("elapsed", a.Elapsed),
			zap.Error(a.Err),
		)
	}
}

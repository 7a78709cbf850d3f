package framework

import (
	"context"

	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/retry"
)

// LogRetries is retry.LogTo for a logger of zap, such as that of Config.Logger: a hook
// for Policy.OnRetry that writes one line per retry, at warn level. A nil l writes nothing.
func LogRetries(l *zap.Logger) func(ctx context.Context, a retry.Attempt) {
	if l == nil {
		l = zap.NewNop()
	}
	return func(_ context.Context, a retry.Attempt) {
		l.Warn("retrying",
			zap.String("policy", a.Policy),
			zap.Int("attempt", a.Number),
			zap.Duration("delay", a.Delay),
			zap.Duration("elapsed", a.Elapsed),
			zap.Error(a.Err),
		)
	}
}

package retry

import (
	"context"
	"log/slog"
)

// LogTo returns a hook for OnRetry that writes one line per retry, at warn level
// and with the context given to Do. A nil l writes nothing.
//
// The message is "retrying". The attributes are policy, attempt, delay, elapsed and
// error, as in Attempt. A user of zap has framework.LogRetries.
func LogTo(l *slog.Logger) func(ctx context.Context, a Attempt) {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return func(ctx context.Context, a Attempt) {
		l.LogAttrs(ctx, slog.LevelWarn, "retrying",
			slog.String("policy", a.Policy),
			slog.Int("attempt", a.Number),
			slog.Duration("delay", a.Delay),
			slog.Duration("elapsed", a.Elapsed),
			slog.Any("error", a.Err),
		)
	}
}

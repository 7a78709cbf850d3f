package locks

import (
	"errors"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
)

// isElection is whether a kind of lock is an election. Its waiters are candidates, which
// may wait for as long as they live.
func isElection(kind string) bool { return kind == monitor.Latch || kind == monitor.Selector }

// lockFields are the fields that log lines have of a lock. The data that a program writes
// into the nodes of a lock is not logged. For an election it is, as the candidate's id.
func lockFields(l monitor.Lock) []zap.Field {
	fields := []zap.Field{zap.String("kind", l.Kind), zap.String("path", l.Path)}
	if l.Node != "" {
		fields = append(fields, zap.String("node", l.Node), zap.Int64("token", l.Token))
	}
	if l.Participant != "" && isElection(l.Kind) {
		fields = append(fields, zap.String("participant", l.Participant))
	}
	return fields
}

// logEnd logs how an acquisition or a hold has ended. The end of a hold says what came of
// its release, too.
func logEnd(log *zap.Logger, op monitor.Operation, r monitor.Result) {
	if !log.Core().Enabled(zapcore.DebugLevel) {
		return
	}
	var line, lasted string
	switch op.Kind {
	case monitor.Acquire:
		switch r.Outcome {
		case monitor.Acquired, monitor.TakenOver, monitor.Reentered:
			line, lasted = string(r.Outcome), "waited"
		default:
			line, lasted = "not acquired", "waited"
		}
	case monitor.Hold:
		if r.Outcome == monitor.Lost {
			return // see logLost
		}
		line, lasted = string(r.Outcome), "held"
	}
	if line == "" {
		return
	}
	fields := append(lockFields(r.Lock), zap.Duration(lasted, r.Ended.Sub(op.Began)))
	if op.Kind == monitor.Acquire && r.Waited {
		fields = append(fields, zap.Int("ahead", r.Ahead))
	}
	if r.Err != nil {
		fields = append(fields, zap.Error(r.Err))
	}
	log.Debug(line, fields...)
}

// logLost logs that the node of a lock was lost. If the error does not say yet why the node
// is gone, another line says so later.
func logLost(s *session.Session, l monitor.Lock, held time.Duration, err error) {
	level := zapcore.WarnLevel
	if errors.Is(err, session.ErrClosed) {
		level = zapcore.InfoLevel // as the program wants it
	}
	var gone *session.GoneError
	unknown := errors.As(err, &gone) && gone.Unwrap() == nil
	s.Log().Log(level, "lost", append(lockFields(l), zap.Duration("held", held), zap.Error(err))...)
	if unknown {
		s.WhenExplained(gone, func() {
			s.Log().Info("lost for a reason that is known by now", append(lockFields(l), zap.Error(err))...)
		})
	}
}

// logPending logs that a release goes on in the background.
func logPending(log *zap.Logger, l monitor.Lock, waited time.Duration) {
	log.Info("release goes on in the background", append(lockFields(l), zap.Duration("waited", waited))...)
}

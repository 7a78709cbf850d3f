package session

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/listeners"
)

// Tracing tells the client's tracer and its log what the client does.
type Tracing struct {
	tracer monitor.Tracer // nil for none
	log    *zap.Logger
	aside  listeners.Hub[func()] // what the session's own goroutines have to tell, in order

	whenExplained func(*GoneError, func())
}

// Tracing is what the client tells its tracer and its log by. It is never nil.
func (s *Session) Tracing() *Tracing { return &s.tracing }

func (t *Tracing) start(s *Session, tracer monitor.Tracer) {
	t.tracer, t.log, t.whenExplained = tracer, s.log, s.whenExplained
	t.aside.OnPanic = s.reportPanic // of a logger
	t.aside.Listen(func(fn func()) { fn() })
}

// On is whether the tracer or the log takes operations that end well.
func (t *Tracing) On() bool { return t.tracer != nil || t.log.Core().Enabled(zapcore.DebugLevel) }

// Traces is whether there is a tracer.
func (t *Tracing) Traces() bool { return t.tracer != nil }

// Begin tells the tracer. It returns the context of the operation, which ends when ctx
// does: one of the tracer's that does not is ignored.
func (t *Tracing) Begin(ctx context.Context, op monitor.Operation) context.Context {
	if t.tracer == nil {
		return ctx
	}
	of := t.tracer.Begin(ctx, op)
	if of == nil || of.Done() != ctx.Done() {
		return ctx
	}
	return of
}

// End tells the tracer and the log.
func (t *Tracing) End(ctx context.Context, op monitor.Operation, r monitor.Result) {
	t.logEnd(op, r)
	if t.tracer != nil {
		t.tracer.End(ctx, op, r)
	}
}

// Event tells the tracer.
func (t *Tracing) Event(ctx context.Context, e monitor.Event) {
	if t.tracer != nil {
		t.tracer.Event(ctx, e)
	}
}

// Aside runs fn in another goroutine, in the order of the calls of Aside. It is for
// goroutines that nothing may hold up.
func (t *Tracing) Aside(fn func()) { t.aside.Publish(fn) }

// IsElection is whether a kind of lock is an election. Its waiters are candidates, which
// may wait for as long as they live.
func IsElection(kind string) bool { return kind == monitor.Latch || kind == monitor.Selector }

// LockFields are the fields that log lines have of a lock. The data that a program writes
// into the nodes of a lock is not logged. For an election it is, as the candidate's id.
func LockFields(l monitor.Lock) []zap.Field {
	fields := []zap.Field{zap.String("kind", l.Kind), zap.String("path", l.Path)}
	if l.Node != "" {
		fields = append(fields, zap.String("node", l.Node), zap.Int64("token", l.Token))
	}
	if l.Participant != "" && IsElection(l.Kind) {
		fields = append(fields, zap.String("participant", l.Participant))
	}
	return fields
}

// logEnd logs how an acquisition or a hold has ended. The end of a hold says what came of
// its release, too.
func (t *Tracing) logEnd(op monitor.Operation, r monitor.Result) {
	if !t.log.Core().Enabled(zapcore.DebugLevel) {
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
			return // see Lost
		}
		line, lasted = string(r.Outcome), "held"
	}
	if line == "" {
		return
	}
	fields := append(LockFields(r.Lock), zap.Duration(lasted, r.Ended.Sub(op.Began)))
	if op.Kind == monitor.Acquire && r.Waited {
		fields = append(fields, zap.Int("ahead", r.Ahead))
	}
	if r.Err != nil {
		fields = append(fields, zap.Error(r.Err))
	}
	t.log.Debug(line, fields...)
}

// Lost logs that the node of a lock was lost. If the error does not say yet why the node
// is gone, another line says so later.
func (t *Tracing) Lost(l monitor.Lock, held time.Duration, err error) {
	level := zapcore.WarnLevel
	if errors.Is(err, ErrClosed) {
		level = zapcore.InfoLevel // as the program wants it
	}
	var gone *GoneError
	unknown := errors.As(err, &gone) && gone.Unwrap() == nil
	t.log.Log(level, "lost", append(LockFields(l), zap.Duration("held", held), zap.Error(err))...)
	if unknown {
		t.whenExplained(gone, func() { t.log.Info("lost for a reason that is known by now", append(LockFields(l), zap.Error(err))...) })
	}
}

// Pending logs that a release goes on in the background.
func (t *Tracing) Pending(l monitor.Lock, waited time.Duration) {
	t.log.Info("release goes on in the background", append(LockFields(l), zap.Duration("waited", waited))...)
}

// connection tells of a state of the connection. It only queues.
func (t *Tracing) connection(s *Session, state listeners.State) {
	if t.tracer == nil {
		return
	}
	e := monitor.Event{Kind: monitor.Connection, At: time.Now(), State: state, Session: s.id}
	if s.conn != nil {
		e.Server = s.conn.Addr()
	}
	t.Aside(func() { t.Event(context.Background(), e) })
}

// leaseRenewed tells that the session lease lasts.
func (t *Tracing) leaseRenewed(left time.Duration) {
	if t.tracer == nil {
		return
	}
	e := monitor.Event{Kind: monitor.LeaseRenewed, At: time.Now(), Left: left}
	t.Aside(func() { t.Event(context.Background(), e) })
}

package retry

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrOvertaken is the cause of the end of a hedged call's context when another call
// has answered, see Hedge.
var ErrOvertaken = errors.New("another call has answered")

var errHedge = errors.New("op is hedged in a call that is not Idempotent")

// Hedge returns op with further calls beside a slow one. It is for DoValue:
//
//	retry.DoValue(ctx, p, retry.Hedge(op, 50*time.Millisecond, 1, nil), retry.Idempotent())
//
// If op takes longer than after, it is called again beside the first call, and so on,
// up to more times. The first answer counts: a success, or a failure that is judged
// Stop. Then the contexts of the other calls end, with the cause ErrOvertaken. A result
// that comes second is given to release, in any goroutine; a nil release drops it.
//
// All calls have returned when the result of Hedge returns. So op has to heed its
// context, or else it holds up the answer. op is called by several goroutines at once.
// A panic in any of them reaches the caller.
//
// The calls are one attempt. It fails when all calls have failed, with the failure that
// is judged strictest. WithAttemptTimeout bounds all of them together.
//
// Each further call is a retry to the loop around, and to those around that: it
// counts as one of their retries and is charged to their budgets. If they have none
// left, it is not made. So there is none below None. Outside of Do nothing is charged.
//
// In a loop that is not Idempotent, op is not called, and the error matches ErrStopped.
// So it is if after is between 0 and 100µs, see Policy.Validate. With an after of
// 0 or less all calls begin at once. A nil context is an error. Of a nil op Hedge makes nil.
func Hedge[T any](op func(ctx context.Context) (T, error), after time.Duration, more int, release func(T)) func(ctx context.Context) (T, error) {
	if op == nil {
		return nil
	}
	return func(ctx context.Context) (value T, err error) {
		if ctx == nil {
			return value, Mark(errNilContext, Stop)
		}
		l := loopAround(ctx)
		if l != nil && !l.idempotent {
			return value, Mark(errHedge, Stop)
		}
		if err := tooShort("after", after); err != nil {
			return value, Mark(err, Stop)
		}
		r := &race[T]{op: op, after: after, more: more, release: release, loop: l}
		r.ctx, r.end = context.WithCancelCause(ctx)
		return r.run()
	}
}

// race is one attempt of hedged calls.
type race[T any] struct {
	op      func(context.Context) (T, error)
	after   time.Duration
	release func(T)
	loop    *loop           // nil outside of Do
	ctx     context.Context // of all calls, until one has answered
	end     context.CancelCauseFunc
	calls   sync.WaitGroup // further calls, and the timer for the next

	mu       sync.Mutex
	more     int // how often the timer may be set
	timer    *time.Timer
	running  int
	over     bool // value and err stay as they are
	value    T
	err      error
	verdict  Decision // on err
	panicked any
}

// run makes the first call in the goroutine of Do, which has to wait for it anyway.
func (r *race[T]) run() (T, error) {
	returned := false
	defer func() {
		r.calls.Wait() // also if op panics
		if !returned && r.over && r.err == nil && r.release != nil {
			r.release(r.value)
		}
	}()
	r.begin()
	r.call()
	r.calls.Wait()
	if r.panicked != nil {
		panic(r.panicked)
	}
	returned = true
	return r.value, r.err
}

// begin counts a call and sets the timer for the next. It reports false if no call may begin.
func (r *race[T]) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.running++
	if r.more > 0 {
		r.more--
		r.calls.Add(1)
		if r.after > 0 {
			r.timer = time.AfterFunc(r.after, r.another)
		} else { // a timer that is due would break the race detector in a bubble (golang/go#78156)
			go r.another()
		}
	}
	return true
}

// another is a further call, if it is still wanted and somebody pays for it.
func (r *race[T]) another() {
	defer r.calls.Done()
	defer func() {
		if p := recover(); p != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.panicked = p
		}
	}()
	if r.ctx.Err() != nil {
		return
	}
	var b bill
	if r.loop != nil {
		var reason error
		if b, reason = r.loop.chargeBeside(); reason != nil {
			return
		}
	}
	if !r.begin() {
		b.refund()
		return
	}
	r.call()
}

func (r *race[T]) call() {
	var value T
	err, verdict := Mark(errNoReturn, Stop), Stop
	defer func() { r.finish(value, err, verdict) }()
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	v, failure := r.op(ctx)
	var p Policy
	if r.loop != nil {
		p = r.loop.policy
	}
	if failure == nil && p.results != nil {
		failure = p.judgeResult(v)
	}
	var d Decision
	if failure != nil {
		d = judge(failure, false, p.classify)
	}
	value, err, verdict = v, failure, d
}

// finish counts a call as ended. Whether it decides the race is up to its outcome.
func (r *race[T]) finish(value T, err error, verdict Decision) {
	r.mu.Lock()
	late := r.over
	r.running--
	if !late {
		switch {
		case err == nil:
			r.value, r.err = value, nil
		case stricter(r.verdict, verdict) != r.verdict:
			r.err, r.verdict = err, verdict
		}
		r.over = err == nil || verdict.kind == kindStop || r.running == 0
		if r.over && r.timer != nil && r.timer.Stop() {
			r.calls.Done()
		}
	}
	decided := r.over && !late
	r.mu.Unlock()
	if decided {
		r.end(ErrOvertaken)
	}
	if late && err == nil && r.release != nil {
		r.release(value)
	}
}

package retry

import "context"

// Do calls op until it succeeds, the policy gives up, or ctx ends. It returns
// nil or an *Error.
//
// At least one call is made, unless ctx has already ended. Attempts follow one
// another in the goroutine of Do; see Hedge for calls beside each other. op's
// context has ctx's values and deadline, and ends with ctx. It also ends after
// the policy's attempt timeout, and when op returns. So op has to read the body
// of a response, or the rows of a query, itself.
//
// A failure is judged by its Mark, then by the attempt's timeout, then by the
// policy's classifiers. If none of these judges it, it is Again, except for the
// error of a nested loop: see Pass. Once ctx has ended, Do judges nothing, and
// its error matches ctx.Err(). The error does not match the cause of ctx, which
// may be any error. The cause is in the text, and context.Cause(ctx) returns
// it. Do does not begin a delay that would end at ctx's deadline or later. Its
// error then matches context.DeadlineExceeded. See Error for the other reasons.
//
// A Do under another Do's context charges its retries to the outer loop as
// well; see Detach. A panic in op goes on to the caller of Do. A nil ctx or op
// is an error, and so is a policy that Validate refuses; no hook is called then.
//
// Source: Curator RetryLoop and ThreadLocalRetryLoop.
// Differs: Curator retries lost connections without asking whether a repeated
// operation does harm; here that takes Idempotent.
func Do(ctx context.Context, p Policy, op func(ctx context.Context) error, opts ...Option) error {
	if ctx == nil {
		return &Error{Policy: p.name, Reason: errNilContext}
	}
	if op == nil {
		return &Error{Policy: p.name, Reason: errNilOp}
	}
	if err := p.Validate(); err != nil {
		return &Error{Policy: p.name, Reason: err}
	}
	return newLoop(ctx, p, opts).run(op) //nolint:contextcheck // the loop is itself the context below ctx
}

// DoValue is Do for an operation with a result; on error the result is T's
// zero value. A policy may judge the result as well, see WithResult.
func DoValue[T any](ctx context.Context, p Policy, op func(ctx context.Context) (T, error), opts ...Option) (T, error) {
	var value, zero T
	if op == nil {
		return zero, Do(ctx, p, nil)
	}
	err := Do(ctx, p, func(ctx context.Context) (err error) {
		if value, err = op(ctx); err == nil && p.results != nil {
			err = p.judgeResult(value)
		}
		return err
	}, opts...)
	if err != nil {
		return zero, err
	}
	return value, nil
}

// Option changes one call of Do or DoValue.
type Option interface{ apply(l *loop) }

// Idempotent says that op may be repeated though an earlier attempt may have
// taken effect. Without it an Unsure failure ends the loop.
func Idempotent() Option { return idempotent{} }

type idempotent struct{}

func (idempotent) apply(l *loop) { l.idempotent = true }

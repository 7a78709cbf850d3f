package retry

import (
	"errors"
	"slices"
)

// Classifier judges a failure. It may be called by several goroutines at once.
//
// Do asks it about the error that op returned, which is not nil. Do does not
// ask about the end of the caller's context, which always stops the loop. It
// does not ask about a marked error, or about one that was returned after the
// attempt's own timeout.
type Classifier func(err error) Decision

// On says Again for these errors, found with errors.Is, and Stop for all
// others.
func On(errs ...error) Classifier { return oneOf(errs, Again, Stop) }

// Except says Stop for these errors, found with errors.Is, and has no opinion
// on others.
func Except(errs ...error) Classifier { return oneOf(errs, Stop, Pass) }

func oneOf(errs []error, found, other Decision) Classifier {
	errs = slices.Clone(errs)
	return func(err error) Decision {
		if slices.ContainsFunc(errs, func(target error) bool { return errors.Is(err, target) }) {
			return found
		}
		return other
	}
}

// As judges errors of one type, found with errors.As, and has no opinion on
// others. A nil judge has no opinion at all.
func As[E error](judge func(E) Decision) Classifier {
	return func(err error) Decision {
		var target E
		if judge == nil || !errors.As(err, &target) {
			return Pass
		}
		return judge(target)
	}
}

// First asks each in order until one has an opinion. A nil one has none.
func First(cs ...Classifier) Classifier {
	cs = slices.DeleteFunc(slices.Clone(cs), func(c Classifier) bool { return c == nil })
	return func(err error) Decision {
		for _, c := range cs {
			if d := c(err); d != Pass {
				return d
			}
		}
		return Pass
	}
}

// inOrder is First that leaves a lone classifier, or none, as it is.
func inOrder(a, b Classifier) Classifier {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return First(a, b)
}

// Mark lets op judge its own failure, before any classifier. errors.Is and
// errors.As find err in the result, and the text is that of err. A nil err stays
// nil, and with Pass Mark returns err as it is.
//
// The mark counts wherever it stands in what op returns, also beside the error of
// another loop. It covers the error that it was put on, so it overrides marks inside
// that. Of several marks side by side, as in errors.Join, the strictest counts: Stop
// before Unsure before Again.
//
// The mark counts for the loop whose op returned the error, and not for outer
// loops.
func Mark(err error, d Decision) error {
	if err == nil || d == Pass {
		return err
	}
	return &markedError{err: err, decision: d}
}

type markedError struct {
	err      error
	decision Decision
}

func (e *markedError) Error() string { return e.err.Error() }
func (e *markedError) Unwrap() error { return e.err }

// judgements walks through a tree of errors, for the strictest mark and the strictest
// judgement of loops inside op. It does not look below these: a mark speaks for all that
// it was put on, and what stands below a loop's error was said to that loop. So was the
// delay that somebody asked for.
func judgements(err error) (mark, inner Decision) {
	switch e := err.(type) { //nolint:errorlint // it walks through the tree itself
	case *markedError:
		return e.decision, Pass
	case *Error:
		return Pass, Decision{kind: e.verdict.kind}
	case interface{ Unwrap() error }:
		return judgements(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			m, i := judgements(err)
			mark, inner = stricter(mark, m), stricter(inner, i)
		}
	}
	return mark, inner
}

// judge asks the marks, the attempt's timeout and c, in this order.
func judge(err error, timedOut bool, c Classifier) Decision {
	mark, own := judgements(err)
	if mark != Pass {
		return mark
	}
	if timedOut {
		return Unsure
	}
	if c != nil {
		if d := c(err); d != Pass {
			return d
		}
	}
	if own != Pass {
		return own
	}
	return Again
}

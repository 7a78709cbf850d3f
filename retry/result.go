package retry

import "fmt"

// WithResult returns p changed to judge results of type T as well: those that an op of
// DoValue returns without an error. Pass accepts a result. Any other Decision makes it
// a failure, as if op had returned a *ResultError with that Mark.
//
// judge is asked before the judges of results already there, and not about results of
// other types. T may be an interface, which each value that implements it is of. judge
// may be called by several goroutines at once. If a result has to be closed, judge
// closes those that it does not accept. A nil judge changes nothing.
func WithResult[T any](p Policy, judge func(T) Decision) Policy {
	if judge == nil {
		return p
	}
	before := p.results
	p.results = func(value any) Decision {
		if v, ok := value.(T); ok {
			if d := judge(v); d != Pass {
				return d
			}
		}
		if before == nil {
			return Pass
		}
		return before(value)
	}
	return p
}

// ResultError is the failure of an attempt whose result was not accepted, see WithResult.
type ResultError struct {
	// Value is the result. It is not in the text, as it may be long or secret.
	Value any
	// Decision is what the judge said.
	Decision Decision
}

// Error names the type of the result, and the decision.
func (e *ResultError) Error() string {
	return fmt.Sprintf("result of type %T judged %q", e.Value, e.Decision)
}

// judgeResult is the failure that a result means, nil if it is accepted.
func (p *Policy) judgeResult(value any) error {
	d := p.results(value)
	if d == Pass {
		return nil
	}
	return Mark(&ResultError{Value: value, Decision: d}, d)
}

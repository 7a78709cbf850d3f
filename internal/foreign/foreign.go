// Package foreign keeps errors from elsewhere apart from ours: the cause of a
// context, and what a function of the caller's returned. Either can be any error,
// also one that means something here. A caller must not read "node does not exist"
// in such an error, since no server has said so.
package foreign

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// ContextEnd is the end of a context as an error, nil while it goes on. It
// matches context.Canceled or context.DeadlineExceeded and nothing else: the
// cause is in the text alone.
func ContextEnd(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	end := context.Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		end = context.DeadlineExceeded
	}
	cause := context.Cause(ctx)
	if cause == nil || cause == end { //nolint:errorlint // one that wraps it has more to say
		return end
	}
	return &endError{end: end, cause: cause}
}

// endError is the end of a context that has a cause of its own.
type endError struct{ end, cause error }

// Error implements error.
func (e *endError) Error() string { return e.end.Error() + " (cause: " + e.cause.Error() + ")" }

// Unwrap gives context.Canceled or context.DeadlineExceeded.
func (e *endError) Unwrap() error { return e.end }

// Wrap is for an error that a function of the caller's returned. The result has the
// same text and matches what the error matches, except for the errors given to
// Reserve and the types of this module. A nil error stays nil.
func Wrap(err error) error {
	if err == nil {
		return nil
	}
	return &wrapped{err}
}

type wrapped struct{ err error }

// Error implements error.
func (e *wrapped) Error() string { return e.err.Error() }

// Is lets errors.Is look inside for what is not reserved.
func (e *wrapped) Is(target error) bool { return !IsReserved(target) && errors.Is(e.err, target) }

// As lets errors.As look inside for types that are not of this module.
func (e *wrapped) As(target any) bool {
	if typ := reflect.TypeOf(target); typ.Kind() == reflect.Pointer && isOurs(typ.Elem()) {
		return false
	}
	return errors.As(e.err, target)
}

var module = strings.TrimSuffix(reflect.TypeFor[wrapped]().PkgPath(), "internal/foreign")

func isOurs(typ reflect.Type) bool {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	return strings.HasPrefix(typ.PkgPath(), module)
}

// reserved are the errors that mean something to callers of this module. It is
// written only while packages are initialized.
var reserved = []error{context.Canceled, context.DeadlineExceeded}

// Reserve says that errors mean something to callers. Only init functions may
// call it.
func Reserve(errs ...error) { reserved = append(reserved, errs...) }

// IsReserved is whether an error is one that was given to Reserve.
func IsReserved(err error) bool { return slices.Contains(reserved, err) }

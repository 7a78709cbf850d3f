package conformance

import (
	"errors"
	"fmt"
)

func emptyOr(names []string) error {
	if len(names) > 0 {
		return fmt.Errorf("%q", names)
	}
	return nil
}

var errNotYet = errors.New("not yet")

func nilIf(ok bool) error {
	if ok {
		return nil
	}
	return errNotYet
}

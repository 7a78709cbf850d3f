package kit

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Patience is how long Eventually waits.
const Patience = 40 * time.Second

// Eventually waits until check returns nil, and fails the test with its last error.
// What says what the test has waited for.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	for begun := time.Now(); ; <-time.After(5 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begun) >= Patience {
			require.NoError(t, err, what)
		}
	}
}

// Until is Eventually for something that is so or not.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	Eventually(t, what, func() error {
		if done() {
			return nil
		}
		return errors.New("not yet")
	})
}

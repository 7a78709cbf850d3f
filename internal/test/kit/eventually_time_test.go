package kit

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		errNotYet := errors.New("not yet")
		Eventually(t, "a second", func() error {
			if time.Since(began) < time.Second {
				return errNotYet
			}
			return nil
		})
		assert.Equal(t, time.Second, time.Since(began))
		said := fails(t, func(t testing.TB) { Eventually(t, "the moon", func() error { return errNotYet }) })
		assert.Contains(t, said, "the moon")
		assert.Contains(t, said, "not yet")
		assert.Equal(t, time.Second+Patience, time.Since(began))
		Until(t, "a second more", func() bool { return time.Since(began) > 2*time.Second+Patience })
		assert.Contains(t, fails(t, func(t testing.TB) { Until(t, "the sun", func() bool { return false }) }), "the sun")
	})
}

package random

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStagger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(s *Source, what string) time.Duration {
			began := time.Now()
			s.Stagger([]byte(what))
			return time.Since(began)
		}
		assert.Zero(t, took(nil, "a"))
		a := took(Seeded(1), "a")
		assert.Positive(t, a)
		assert.LessOrEqual(t, a, time.Microsecond)
		assert.Equal(t, a, took(Seeded(2), "a"), "it follows from what is to be done")
		assert.NotEqual(t, a, took(Seeded(1), "b"))
	})
}

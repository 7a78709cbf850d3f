package zktest_test

import (
	"testing"

	"go.uber.org/goleak"
)

// slowed is whether the race detector makes everything slower.
var slowed bool

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

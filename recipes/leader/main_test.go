package leader_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/internal/test/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// d is what a message takes each way: a round trip is 2d, exactly.
	d = 5 * time.Millisecond
	// sessionTimeout is what clients have.
	sessionTimeout = kit.SessionTimeout
)

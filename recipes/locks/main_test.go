package locks_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func byServer(cfg *framework.Config) { cfg.SessionLease = framework.LeaseByServer }

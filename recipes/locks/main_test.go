package locks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect makes a client of a server in memory, which is closed with the test.
func connect(t *testing.T, srv *zktest.Server, change ...func(*framework.Config)) *framework.Client {
	t.Helper()
	cfg := framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext, SessionTimeout: 30 * time.Second}
	for _, fn := range change {
		fn(&cfg)
	}
	c, err := framework.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func byServer(cfg *framework.Config) { cfg.SessionLease = framework.LeaseByServer }

package leader_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// d is what a message takes each way: a round trip is 2d, exactly.
	d = 5 * time.Millisecond
	// sessionTimeout is what clients of connect have.
	sessionTimeout = 10 * time.Second
)

// connect makes a client of a server in memory, which is closed with the test.
func connect(t *testing.T, srv *zktest.Server, change ...func(*framework.Config)) *framework.Client {
	t.Helper()
	cfg := framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext, SessionTimeout: sessionTimeout}
	for _, fn := range change {
		fn(&cfg)
	}
	c, err := framework.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

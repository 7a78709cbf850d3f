package framework_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config is for a client of a server in memory.
func config(srv *zktest.Server, change ...func(*framework.Config)) framework.Config {
	cfg := framework.Config{ConnectString: srv.ConnectString(), DialContext: srv.DialContext, SessionTimeout: 30 * time.Second}
	for _, fn := range change {
		fn(&cfg)
	}
	return cfg
}

// connect makes a client that is closed with the test.
func connect(t *testing.T, cfg framework.Config) *framework.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := framework.Connect(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// states collects the states of a client, to be read one by one.
func states(t *testing.T, c *framework.Client) func(want ...listeners.State) {
	t.Helper()
	sub := c.States().Subscribe()
	t.Cleanup(sub.Stop)
	return func(want ...listeners.State) {
		t.Helper()
		for _, w := range want {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			select {
			case got := <-sub.C:
				require.Equal(t, w, got)
			case <-ctx.Done():
				require.FailNow(t, "no state", "want %v", w)
			}
			cancel()
		}
	}
}

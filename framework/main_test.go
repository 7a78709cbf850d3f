package framework_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

package framework_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// dialled counts how often each address was dialled.
type dialled struct {
	mu    sync.Mutex // guards the field below
	times map[string]int
}

func (d *dialled) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	if d.times == nil {
		d.times = make(map[string]int)
	}
	d.times[addr]++
	d.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func (d *dialled) count(addr string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.times[addr]
}

// silent is a port that accepts everybody and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	accept(t, l)
	return l.Addr().String()
}

// accept accepts everybody until the end of the test.
func accept(t *testing.T, l net.Listener) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = nc.Close() }()
				_, _ = io.Copy(io.Discard, nc) // until the client gives up
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
}

// The resolver is the machine's own.
const nowhere = "no-such-host.invalid:2181"

func TestServersThatAreNoUseBesideOneThatIs(t *testing.T) {
	for name, useless := range map[string]string{"a name that does not resolve": nowhere, "a server that never answers": silent(t)} {
		t.Run(name, func(t *testing.T) {
			srv := zktest.Start(t)
			var d dialled
			c := kit.Dial(t, framework.Config{
				ConnectString: useless + "," + srv.ConnectString(), ConnectTimeout: 200 * time.Millisecond, DialContext: d.DialContext,
			})
			id := c.SessionID()
			for range 3 {
				require.NoError(t, srv.Disconnect(id))
				require.NoError(t, c.Sync(t.Context(), "/"))
			}
			assert.Equal(t, id, c.SessionID())
			assert.NotZero(t, d.count(useless), "it was its turn, under the name that was written")
		})
	}
}

func TestNoServerThatIsOfUse(t *testing.T) {
	for useless, want := range map[string]string{nowhere: "no-such-host.invalid", silent(t): "i/o timeout"} {
		c, err := framework.Start(framework.Config{ConnectString: useless, ConnectTimeout: 200 * time.Millisecond})
		require.NoError(t, err, "waits for it")
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		err = c.BlockUntilConnected(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "not connected: "+useless+": ")
		assert.ErrorContains(t, err, want)
		require.NoError(t, c.Close(), "there is no session to close")
	}
}

//go:build realzk

package robustness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/listeners"
)

var (
	fleetSize   = flag.Int("fleet", 0, "how many clients TestFleet has; 0 for a short run with 100")
	fleetOfJava = flag.Bool("fleet-java", false, "the clients of TestFleet are of ZooKeeper's own library")
	fleetSecure = flag.Bool("fleet-secure", false, "the servers of TestFleet require TLS and SASL")
)

// fleet is many clients, which tell when they were cut off and when they were back.
type fleet struct {
	dials, lost atomic.Int64

	mu   sync.Mutex
	off  map[int]bool
	back []time.Time // of those that were cut off in this outage
}

func (f *fleet) listen(client int, s listeners.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch s {
	case listeners.Suspended:
		f.off[client] = true
	case listeners.Lost:
		f.lost.Add(1)
	case listeners.Connected, listeners.Reconnected:
		if f.off[client] {
			delete(f.off, client)
			f.back = append(f.back, time.Now())
		}
	}
}

// begin forgets the outage before.
func (f *fleet) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.back = nil
}

// count is how many were cut off and are back.
func (f *fleet) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.back)
}

func (f *fleet) isWhole() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.off) == 0 && len(f.back) > 0
}

// after is how long after a moment that part of those that were cut off was back.
func (f *fleet) after(since time.Time, part float64) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.SortFunc(f.back, time.Time.Compare)
	last := int(part * float64(len(f.back)-1))
	return max(0, f.back[last].Sub(since)).Round(time.Millisecond)
}

// startJava has clients of ZooKeeper's own library, all in one process.
func (f *fleet) startJava(t *testing.T, e *realzk.Ensemble, timeout time.Duration) {
	t.Helper()
	install, err := realzk.Find("")
	require.NoError(t, err)
	args := []string{"-Xss256k", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"}
	if *fleetSecure {
		jaas := filepath.Join(t.TempDir(), "jaas.conf")
		require.NoError(t, os.WriteFile(jaas, fmt.Appendf(nil, "Client { org.apache.zookeeper.server.auth.DigestLoginModule required username=bob password=%q; };", bobs), 0o600))
		args = append(args, "-Djava.security.auth.login.config="+jaas, "-Dfile.encoding=UTF-8", "-Dzookeeper.client.secure=true",
			"-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
			"-Dzookeeper.ssl.keyStore.location="+filepath.Join(e.Dir(), "keys.pem"), "-Dzookeeper.ssl.trustStore.location="+filepath.Join(e.Dir(), "trusted.pem"))
	}
	args = append(args, "-cp", install.ClassPath, "testdata/Fleet.java", e.ConnectString(), fmt.Sprint(timeout.Milliseconds()), fmt.Sprint(*fleetSize))
	p := run(t, exec.CommandContext(t.Context(), install.Java, args...))
	p.says(t, "ready")
	go func() {
		states := map[string]listeners.State{"up": listeners.Reconnected, "off": listeners.Suspended, "lost": listeners.Lost}
		for line := range p.lines {
			var client int
			var state string
			if _, err := fmt.Sscan(line, &client, &state); err == nil {
				f.listen(client, states[state])
			}
		}
	}()
}

// together calls fn for 0 to n-1, some at a time.
func together(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	places := make(chan struct{}, 50)
	for i := range n {
		places <- struct{}{}
		wg.Go(func() {
			errs[i] = fn(i)
			<-places
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// A member of three ends under a fleet of clients, then the leader, and then all of them for
// ten seconds. Clients do not lose their sessions as long as two serve. How long it takes until all are back is printed, from the
// moment when the servers can serve them; internal/test/fleet has the same as a model.
func TestFleet(t *testing.T) {
	timeouts, down := []time.Duration{6 * time.Second, 15 * time.Second}, 10*time.Second
	short := *fleetSize == 0
	if short {
		*fleetSize, timeouts, down = 100, timeouts[:1], time.Second
	}
	for _, timeout := range timeouts {
		t.Run(timeout.String(), func(t *testing.T) {
			opts, change := realzk.Options{Servers: 3, Tick: timeout / 12}, func(*framework.Config) {}
			if *fleetSecure {
				opts = withUsers(opts)
				opts.TLS, opts.Properties, opts.JVMArgs, change = true, required, []string{"-Xmx512m"}, as("bob", bobs)
			}
			e := realzk.StartT(t, opts)
			f := &fleet{off: make(map[int]bool)}
			if *fleetOfJava {
				f.startJava(t, e, timeout)
			} else {
				began := time.Now()
				require.NoError(t, together(*fleetSize, func(i int) error {
					c, err := framework.Connect(t.Context(), kit.Config(e, change, over(e), func(cfg *framework.Config) {
						cfg.SessionTimeout = timeout
						cfg.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
							f.dials.Add(1)
							return new(net.Dialer).DialContext(ctx, network, addr)
						}
					}))
					if err != nil {
						return err
					}
					t.Cleanup(func() { _ = c.Close() })
					c.States().Listen(func(s listeners.State) { f.listen(i, s) })
					return nil
				}))
				// Most of it is work for servers that have just begun, which no rule of a client shortens.
				t.Logf("T %v, all %d are connected for the first time, 50 at once, after %v", timeout, *fleetSize, time.Since(began).Round(time.Millisecond))
			}

			leader, err := e.Leader(t.Context())
			require.NoError(t, err)
			follower := (leader + 1) % 3
			outage := func(name string, down time.Duration, members ...int) {
				f.begin()
				lost := f.lost.Load()
				for _, i := range members {
					require.NoError(t, e.Kill(i))
				}
				killed := time.Now()
				<-time.After(down)
				dials := f.dials.Load()
				if len(members) == 3 {
					require.NoError(t, together(3, func(i int) error { return e.Restart(t.Context(), i) }))
					require.NoError(t, e.AwaitServing(t.Context())) // they listen long before they have a leader
				} else {
					others := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return slices.Contains(members, i) })
					require.NoError(t, e.AwaitServing(t.Context(), others...))
				}
				serving := time.Now()
				<-time.After(time.Second) // all have noticed
				require.Eventually(t, f.isWhole, 6*timeout, 10*time.Millisecond, "not all are back")
				if short {
					assert.Less(t, f.after(serving, 1), timeout, "on a machine that has other work; alone it is a second or two")
				}
				told := fmt.Sprintf("T %v, %s: %d of %d were cut off, half back %v after servers served, 99 %% after %v, all after %v; %d sessions lost, served after %v",
					timeout, name, f.count(), *fleetSize, f.after(serving, 0.5), f.after(serving, 0.99), f.after(serving, 1), f.lost.Load()-lost,
					serving.Sub(killed).Round(10*time.Millisecond))
				if down > 0 { // with the time that servers take to start it is longer than a session
					t.Logf("%s, %.0f dials a second until then", told, float64(dials)/down.Seconds())
					return
				}
				t.Log(told)
				if !*fleetSecure { // a thousand handshakes may take longer than a session, see decision 26
					assert.Equal(t, lost, f.lost.Load(), "sessions lost")
				}
			}
			outage("a follower ends", 0, follower)
			require.NoError(t, e.Restart(t.Context(), follower))
			<-time.After(time.Second)
			outage("the leader ends", 0, leader)
			require.NoError(t, e.Restart(t.Context(), leader))
			<-time.After(time.Second)
			f.dials.Store(0)
			outage("all are down", down, 0, 1, 2)
		})
	}
}

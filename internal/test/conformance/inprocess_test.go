package conformance

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// inProcess is the server of package zktest.
type inProcess struct{ srv *zktest.Server }

func (b inProcess) hosts() string { return b.srv.ConnectString() }

func (b inProcess) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return b.srv.DialContext(ctx, network, addr)
}

func (b inProcess) watches(_ testing.TB, below string) []string {
	var paths []string
	for _, w := range b.srv.Watches() {
		if strings.HasPrefix(w.Path, below) {
			paths = append(paths, w.Kind+" "+w.Path)
		}
	}
	return paths
}

// inKeeper is that server as ClickHouse Keeper. It takes up no session again.
type inKeeper struct{ inProcess }

// expire ends a session, which no client can do there.
func (b inKeeper) expire(id int64) error { return b.srv.ExpireSession(id) }

func TestInProcess(t *testing.T) {
	srv := zktest.Start(t, zktest.Tick(200*time.Millisecond), zktest.Superuser(superDigest), markSASL(t))
	t.Cleanup(func() { tell(srv) })
	run(t, "the in-process server", inProcess{srv}, true)
}

// Sockets and real time are those of TestInProcess. The others run in virtual time, as most
// of what cases take is waiting.

func TestInProcessAs39(t *testing.T) {
	inVirtualTime(t, "the in-process server as ZooKeeper 3.9", nil, func(t *testing.T) (backend, *zktest.Server) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Version("3.9"), zktest.Tick(200*time.Millisecond), zktest.Superuser(superDigest))
		return inProcess{srv}, srv
	})
}

func TestInProcessCluster(t *testing.T) {
	users := markSASL(t)
	inVirtualTime(t, "an in-process cluster of three", nil, func(t *testing.T) (backend, *zktest.Server) {
		cluster := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.Tick(200*time.Millisecond), zktest.SyncLimit(100), zktest.Superuser(superDigest), users)
		return inProcess{&cluster.Server}, &cluster.Server
	})
}

// outliving are the cases in which a session has to outlive its connection.
var outliving = []string{
	"client/follows-ensemble", "client/secrets", "client/states", "create/equal-nodes-of-others", "fence/reply-lost", "leader/reply-lost",
	"lock/holder-cut", "lock/reply-lost", "lock/revocation", "lock/waiter-cut", "transaction/idempotent", "watch/missed", "watch/reconnect",
}

// withContainers are the cases that make containers by name.
var withContainers = []string{"create/modes", "transaction/applied"}

func TestInProcessAsKeeper(t *testing.T) {
	for _, version := range zktest.KeeperVersions() {
		t.Run(version, func(t *testing.T) {
			but := outliving
			if version == "25.12" {
				but = slices.Concat(outliving, withContainers)
			}
			inVirtualTime(t, "the in-process server as ClickHouse Keeper "+version, but, func(t *testing.T) (backend, *zktest.Server) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Keeper(version), zktest.Latency(time.Millisecond),
					zktest.SessionTimeouts(time.Second, time.Second), zktest.Superuser(superDigest))
				return inKeeper{inProcess{srv}}, srv
			})
		})
	}
}

// inVirtualTime runs every case but some, each in virtual time and on a server of its own.
func inVirtualTime(t *testing.T, server string, but []string, start func(t *testing.T) (backend, *zktest.Server)) {
	every(t, server, but, func(t *testing.T, name string, fn func(*env)) {
		synctest.Test(t, func(t *testing.T) {
			b, srv := start(t)
			admin, err := framework.Connect(t.Context(), framework.Config{ConnectString: b.hosts(), DialContext: b.dial, SASL: mechanism})
			require.NoError(t, err)
			defer func() { assert.NoError(t, admin.Close()) }()
			conduct(t, b, admin, name, fn)
			tell(srv)
		})
	})
}

// tell has a server tell all it can.
func tell(srv *zktest.Server) {
	if !*marked {
		return
	}
	markedWitness.saw(srv.Counters(), srv.Requests(), srv.Sessions(), srv.Watches(), srv.Ephemerals(0))
	_ = srv.Dump(markedWitness)
}

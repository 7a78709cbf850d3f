package conformance

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

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

func TestInProcess(t *testing.T) {
	srv := zktest.Start(t, zktest.Tick(200*time.Millisecond), zktest.Superuser(superDigest))
	run(t, "the in-process server", inProcess{srv})
	tell(srv)
}

func TestInProcessAs39(t *testing.T) {
	srv := zktest.Start(t, zktest.Version("3.9"), zktest.Tick(200*time.Millisecond), zktest.Superuser(superDigest))
	run(t, "the in-process server as ZooKeeper 3.9", inProcess{srv})
	tell(srv)
}

func TestInProcessCluster(t *testing.T) {
	cluster := zktest.StartCluster(t, 3, zktest.Tick(200*time.Millisecond), zktest.SyncLimit(100), zktest.Superuser(superDigest))
	run(t, "an in-process cluster of three", inProcess{&cluster.Server})
	tell(&cluster.Server)
}

// tell has a server tell all it can.
func tell(srv *zktest.Server) {
	if !*marked {
		return
	}
	markedWitness.saw(srv.Counters(), srv.Requests(), srv.Sessions(), srv.Watches(), srv.Ephemerals(0))
	_ = srv.Dump(markedWitness)
}

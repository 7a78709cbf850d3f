//go:build realzk

package conformance

import (
	"context"
	"flag"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/test/realzk"
)

// realZooKeeper is one ZooKeeper, or an ensemble.
type realZooKeeper struct{ *realzk.Ensemble }

func (b realZooKeeper) hosts() string { return b.ConnectString() }

func (b realZooKeeper) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func (b realZooKeeper) watches(t testing.TB, below string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	watched, err := b.Watches(ctx)
	require.NoError(t, err)
	var paths []string
	for path := range watched {
		if strings.HasPrefix(path, below) {
			paths = append(paths, path)
		}
	}
	// Watches on children are counted and not listed. Nobody else is there.
	n, err := b.WatchCount(ctx)
	require.NoError(t, err)
	if n > len(watched) {
		paths = append(paths, "watches on children")
	}
	return paths
}

var bySASL = flag.Bool("sasl", false, "prove all clients of TestStandalone by DIGEST-MD5")

// Cases mostly wait. On one ensemble they go one after another, since it counts the watches of
// all, but one ensemble goes beside the other.

func TestStandalone(t *testing.T) {
	server, opts := "one real ZooKeeper", realzk.Options{Tick: 200 * time.Millisecond, SuperPassword: superPassword}
	if *bySASL {
		server += ", as a user of DIGEST-MD5"
		opts.JAAS = realzk.DigestUsers(map[string]string{"bob": "secret"})
		mechanism = sasl.DigestMD5("bob", "secret")
		defer func() { mechanism = nil }()
	} else {
		t.Parallel()
	}
	run(t, server, realZooKeeper{realzk.StartT(t, opts)}, false)
}

func TestEnsemble(t *testing.T) {
	t.Parallel()
	run(t, "a real three-node ensemble", realZooKeeper{realzk.StartT(t, realzk.Options{Servers: 3, Tick: 200 * time.Millisecond, SuperPassword: superPassword})}, false)
}

// Three servers let in users of SASL alone, over TLS.
func TestSecureEnsemble(t *testing.T) {
	onSecureEnsemble(t, "as a user of DIGEST-MD5", sasl.DigestMD5("bob", "secret"), realzk.Options{JAAS: realzk.DigestUsers(map[string]string{"bob": "secret"})})
}

func onSecureEnsemble(t *testing.T, user string, by sasl.Mechanism, opts realzk.Options) {
	opts.Servers, opts.Tick, opts.SuperPassword, opts.TLS = 3, 200*time.Millisecond, superPassword, true
	opts.Properties = map[string]string{"sessionRequireClientSASLAuth": "true"}
	e := realzk.StartT(t, opts)
	mechanism, encryption = by, e.TLS()
	defer func() { mechanism, encryption = nil, nil }()
	run(t, "a real three-node ensemble with TLS and SASL, "+user, realZooKeeper{e}, false, ofOthers...)
}

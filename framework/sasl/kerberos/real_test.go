//go:build realzk

package kerberos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/framework/sasl/kerberos"
	"github.com/paddock-zk/paddock/internal/test/faultnet"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/recipes/cache"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
)

const zookeeper = "zookeeper/localhost"

// jaas gives a ZooKeeper a principal of the realm. Its name may have {id} in it.
func jaas(name, keytab string) string {
	return fmt.Sprintf(`Server {
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true keyTab="%s" storeKey=true useTicketCache=false principal="%s@%s";
};
`, keytab, name, realm)
}

// servers are ZooKeepers that require SASL.
func (k *kdc) servers(t *testing.T, opts realzk.Options) *realzk.Ensemble {
	t.Helper()
	opts.Properties = map[string]string{"sessionRequireClientSASLAuth": "true"}
	if opts.JAAS == "" {
		opts.JAAS = jaas(zookeeper, k.principal(t, zookeeper, ""))
	}
	opts.JVMProperties = map[string]string{"java.security.krb5.conf": k.conf}
	return realzk.StartT(t, opts)
}

// as has a client prove itself, over TLS if the servers speak it.
func as(m sasl.Mechanism, e *realzk.Ensemble) func(*framework.Config) {
	return func(cfg *framework.Config) { cfg.SASL, cfg.TLS = m, e.TLS() }
}

// cuttable is a network between a client and servers, for the connections of one.
func cuttable(t *testing.T, e *realzk.Ensemble) *faultnet.Net {
	network := faultnet.New(nil)
	network.Secure(e.TLS(), nil)
	t.Cleanup(network.Close) // after the client's
	return network
}

// every waits until done is so, and asks every 200 ms.
func every(t *testing.T, done func() bool) {
	t.Helper()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-limit.C:
			require.FailNow(t, "it has not come")
		}
	}
}

// What users of Kerberos do, on three servers that require it, over TLS.
func TestKerberos(t *testing.T) {
	k := startKDC(t)
	e := k.servers(t, realzk.Options{Servers: 3, TLS: true})
	conf := kerberos.ConfigFile(k.conf)
	alices, eves := k.principal(t, "alice", ""), k.principal(t, "eve/host.example.org", "")
	alice := kerberos.Keytab(alices, "alice", conf) // of the default realm
	eve := kerberos.Keytab(eves, "eve/host.example.org@"+realm, conf)

	t.Run("locks, a copy and an election", func(t *testing.T) {
		mine := []framework.ACL{framework.SASLACL(framework.PermAll, "alice@"+realm)}
		network := cuttable(t, e)
		client := kit.Connect(t, e, as(alice, e), func(cfg *framework.Config) {
			cfg.DialContext = network.DialContext
			cfg.ACL = func(string) []framework.ACL { return mine }
		})
		ctx := t.Context()
		_, err := client.Create(ctx, "/mine", nil, framework.Persistent, framework.ACLs(framework.AuthACL(framework.PermAll)))
		require.NoError(t, err)
		acl, _, err := client.GetACL(ctx, "/mine")
		require.NoError(t, err)
		assert.ElementsMatch(t, append(mine, framework.X509ACL(framework.PermAll, "CN=paddock")), acl)

		hold, err := locks.NewInterProcessMutex(client, "/app/lock").Acquire(ctx)
		require.NoError(t, err)
		copied, err := cache.Start(client, "/app", cache.Bytes)
		require.NoError(t, err)
		defer copied.Close()
		_, err = copied.Ready(ctx)
		require.NoError(t, err)
		led := false
		latch := leader.NewLatch(client, "/app/leader")
		require.NoError(t, latch.Run(ctx, func(context.Context, *leader.Term) error { led = true; return leader.ErrLeave }))
		assert.True(t, led)

		other := kit.Connect(t, e, as(eve, e))
		_, _, err = other.Children(ctx, "/app/lock")
		require.ErrorIs(t, err, framework.ErrNoAuth)
		require.ErrorContains(t, err, "(credentials given: x509:CN=paddock, sasl:eve/host.example.org@"+realm+")")
		_, err = locks.NewInterProcessMutex(other, "/app/lock").Acquire(ctx)
		require.ErrorIs(t, err, framework.ErrNoAuth)

		// The session proves itself again, with the same ticket, and goes on with its hold.
		id, issued := client.SessionID(), k.issued(t, "TGS_REQ", "alice", zookeeper)
		network.CutAll()
		_, _, err = client.Get(ctx, "/app/lock")
		require.NoError(t, err)
		assert.Equal(t, id, client.SessionID())
		assert.Equal(t, issued, k.issued(t, "TGS_REQ", "alice", zookeeper))
		assert.NoError(t, hold.Release())
	})

	t.Run("a credential cache", func(t *testing.T) {
		file := k.file("cache")
		client, err := framework.Start(kit.Config(e, as(kerberos.CredentialCache(file, conf), e)))
		require.NoError(t, err)
		defer func() { _ = client.Close() }()
		_, _, err = client.Get(t.Context(), "/")
		require.ErrorIs(t, err, framework.ErrAuthFailed)
		require.ErrorContains(t, err, "kinit makes one")
		k.run(t, "", "kinit", "-c", file, "-k", "-t", alices, "alice")
		kit.Eventually(t, "the cache is read again", func() error {
			_, _, err := client.Get(t.Context(), "/")
			return err
		})
		_, err = client.Create(t.Context(), "/kinit", nil, framework.Persistent, framework.ACLs(framework.AuthACL(framework.PermAll)))
		require.NoError(t, err)
		acl, _, err := client.GetACL(t.Context(), "/kinit")
		require.NoError(t, err)
		assert.Contains(t, acl, framework.SASLACL(framework.PermAll, "alice@"+realm))
	})

	t.Run("Java in the same queue", func(t *testing.T) {
		const times = 50
		install, err := realzk.Find("")
		require.NoError(t, err)
		jars, err := install.With("slf4j-nop.jar", "curator-recipes.jar")
		require.NoError(t, err)
		client := kit.Connect(t, e, as(alice, e))
		ctx := t.Context()
		const lock, counter = "/java/lock", "/java/counter"
		_, err = client.Create(ctx, counter, []byte("0"), framework.Persistent, framework.Parents(), framework.ACLs(framework.SASLACL(framework.PermAll, "alice@"+realm)))
		require.NoError(t, err)
		jaas := k.write(t, "java.jaas", `Client {
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true keyTab="%s" storeKey=true useTicketCache=false principal="alice@%s";
};
`, alices, realm)
		var java sync.WaitGroup
		java.Go(func() {
			out, err := exec.CommandContext(ctx, install.Java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-Djava.security.krb5.conf="+k.conf,
				"-Djava.security.auth.login.config="+jaas, "-Dzookeeper.client.secure=true", "-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
				"-Dzookeeper.ssl.keyStore.location="+filepath.Join(e.Dir(), "keys.pem"), "-Dzookeeper.ssl.trustStore.location="+filepath.Join(e.Dir(), "trusted.pem"),
				"-cp", jars+string(filepath.ListSeparator)+install.ClassPath, "testdata/Counter.java", e.ConnectString(), lock, counter, strconv.Itoa(times)).CombinedOutput()
			assert.NoError(t, err, "%s", out)
		})
		mutex := locks.NewInterProcessMutex(client, lock)
		for range times {
			require.NoError(t, locks.Do(ctx, mutex, func(ctx context.Context) error {
				data, _, err := client.Get(ctx, counter)
				if err != nil {
					return err
				}
				n, err := strconv.Atoi(string(data))
				if err != nil {
					return err
				}
				_, err = client.Set(ctx, counter, []byte(strconv.Itoa(n+1)), framework.AnyVersion)
				return err
			}))
		}
		java.Wait()
		data, _, err := client.Get(ctx, counter)
		require.NoError(t, err)
		assert.Equal(t, strconv.Itoa(2*times), string(data))
	})

	t.Run("refusals", func(t *testing.T) {
		carols := k.principal(t, "carol", "")
		k.admin(t, "change_password -randkey carol")
		daves := k.principal(t, "dave", "-requires_preauth")
		k.admin(t, "change_password -randkey dave")
		k.principal(t, "zookeeper/elsewhere", "")
		ended := k.file("ended")
		k.run(t, "", "kinit", "-l", "1s", "-c", ended, "-k", "-t", alices, "alice")
		kit.Until(t, "the ticket has ended", func() bool { return k.status(t, "klist", "-s", "-c", ended) != nil })
		for name, tc := range map[string]struct {
			mechanism sasl.Mechanism
			want      string
		}{
			"an unknown client":              {kerberos.Keytab(alices, "nobody", conf), "the KDC of EXAMPLE.ORG does not know the client nobody@EXAMPLE.ORG"},
			"a keytab of somebody else":      {kerberos.Keytab(alices, "carol", conf), "has no key of carol@EXAMPLE.ORG of the types"},
			"a stale keytab":                 {kerberos.Keytab(carols, "carol", conf), "the KDC of EXAMPLE.ORG has another key for carol@EXAMPLE.ORG than " + carols},
			"a stale keytab, nothing proven": {kerberos.Keytab(daves, "dave", conf), "the KDC of EXAMPLE.ORG has another key for dave@EXAMPLE.ORG than " + daves},
			"a wrong service":                {kerberos.Keytab(alices, "alice", conf, kerberos.Service("solr")), "the KDC of EXAMPLE.ORG does not know the server solr/localhost@EXAMPLE.ORG"},
			"an address in place of a name":  {kerberos.Keytab(alices, "alice", conf, kerberos.HostsAsWritten()), "the KDC of EXAMPLE.ORG does not know the server zookeeper/127.0.0.1@EXAMPLE.ORG"},
			"a principal of another server":  {kerberos.Keytab(alices, "alice", conf, kerberos.ServerPrincipal("zookeeper/elsewhere")), "the server refuses it (session closed, SASL required)"},
			"a ticket that has ended":        {kerberos.CredentialCache(ended, conf), "the ticket of alice@EXAMPLE.ORG in " + ended + " has ended at "},
			"a server's realm nobody knows":  {kerberos.Keytab(alices, "alice", conf, kerberos.ServerPrincipal("zookeeper/zk@NOWHERE.INVALID")), "the KDC of EXAMPLE.ORG does not know the server krbtgt/NOWHERE.INVALID@EXAMPLE.ORG"},
		} {
			client, err := framework.Start(kit.Config(e, as(tc.mechanism, e), func(cfg *framework.Config) { cfg.CloseTimeout = time.Second }))
			require.NoError(t, err)
			_, _, err = client.Get(t.Context(), "/")
			assert.ErrorIs(t, err, framework.ErrAuthFailed, name)
			assert.ErrorContains(t, err, tc.want, name)
			_ = client.Close()
		}
	})

	// Lives of three seconds: the session goes on, and each connection has a ticket that lasts.
	t.Run("ten lives of tickets", func(t *testing.T) {
		keytab := k.principal(t, "mayfly", `-maxlife "3 seconds"`)
		network := cuttable(t, e)
		client := kit.Connect(t, e, as(kerberos.Keytab(keytab, "mayfly", conf), e), func(cfg *framework.Config) { cfg.DialContext = network.DialContext })
		hold, err := locks.NewInterProcessMutex(client, "/mayfly").Acquire(t.Context())
		require.NoError(t, err)
		id := client.SessionID()
		every(t, func() bool {
			network.CutAll()
			_, _, err := client.Get(t.Context(), "/mayfly")
			return assert.NoError(t, err) && k.issued(t, "AS_REQ", "mayfly", "krbtgt/"+realm) > 10
		})
		assert.Equal(t, id, client.SessionID())
		assert.NoError(t, hold.Release())
	})

	t.Run("a cache that is renewed", func(t *testing.T) {
		k.principal(t, "moth", `-maxrenewlife "1 hour"`)
		file := k.file("moths")
		kinit := func() {
			k.run(t, "", "kinit", "-l", "5s", "-r", "1h", "-c", file, "-k", "-t", k.file("moth.keytab"), "moth")
		}
		kinit()
		network := cuttable(t, e)
		client := kit.Connect(t, e, as(kerberos.CredentialCache(file, conf), e), func(cfg *framework.Config) { cfg.DialContext = network.DialContext })
		every(t, func() bool { // it is renewed in memory
			network.CutAll()
			_, _, err := client.Get(t.Context(), "/")
			if errors.Is(err, framework.ErrAuthFailed) { // this machine was too slow
				kinit()
			}
			return err == nil && k.issued(t, "TGS_REQ", "moth", "krbtgt/"+realm) >= 2
		})
	})
}

// The leader of three ends that require TLS and Kerberos, each with a principal of its own. A
// hold and a term live on, and one ticket for each of them is enough.
func TestLeaderEnds(t *testing.T) {
	k := startKDC(t)
	var keytab string
	for id := range 3 { // all in one file
		name := fmt.Sprintf("zookeeper/s%d.test", id+1)
		keytab = k.file("zookeeper.keytab")
		k.admin(t, "addprinc -randkey "+name, "ktadd -k "+keytab+" "+name)
	}
	e := k.servers(t, realzk.Options{Servers: 3, TLS: true, JAAS: jaas("zookeeper/s{id}.test", keytab)})
	ctx := t.Context()
	alice := kerberos.Keytab(k.principal(t, "alice", ""), "alice", kerberos.ConfigFile(k.conf), kerberos.HostsAsWritten())
	connect := func(names ...string) *framework.Client {
		return kit.Connect(t, e, as(alice, e), kit.Within(8*time.Second, 0), func(cfg *framework.Config) {
			cfg.ConnectString = strings.Join(names, ",")
			cfg.LookupHost = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
		})
	}
	var names []string
	for i, addr := range e.Addrs() {
		_, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		names = append(names, fmt.Sprintf("s%d.test:%s", i+1, port))
		require.NoError(t, connect(names[i]).Close())
	}
	client := connect(names...)
	tickets := func() (n []int) {
		for id := range 3 {
			n = append(n, k.issued(t, "TGS_REQ", "alice", fmt.Sprintf("zookeeper/s%d.test", id+1)))
		}
		return n
	}
	hold, err := locks.NewInterProcessMutex(client, "/lock").Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, leader.NewLatch(client, "/leader").Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		id := client.SessionID()
		first, err := e.Leader(ctx)
		if err == nil {
			err = e.Kill(first)
		}
		if err != nil {
			return err
		}
		kit.Eventually(t, "a write under the hold", func() error {
			tx := hold.Transaction()
			tx.Create("/written", nil, framework.Persistent)
			_, err := tx.Commit(ctx)
			if errors.Is(err, framework.ErrNodeExists) { // the reply to the first one was lost
				return nil
			}
			return err
		})
		assert.NoError(t, ctx.Err(), "the term goes on")
		assert.Equal(t, id, client.SessionID())
		assert.Equal(t, []int{1, 1, 1}, tickets())
		return leader.ErrLeave
	}))
	require.NoError(t, hold.Release())
}

// All cases of the conformance suite as a user of Kerberos, on three servers that require TLS
// and SASL.
func TestConformance(t *testing.T) {
	k := startKDC(t)
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	added, err := filepath.Abs("testdata/conformance.go")
	require.NoError(t, err)
	overlay := k.write(t, "overlay.json", `{"Replace": {%q: %q}}`, filepath.Join(root, "internal/test/conformance/kerberos_test.go"), added)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-tags", "realzk", "-count", "1", "-timeout", "10m", "-run", "^TestKerberos$", "-v", "-overlay", overlay,
		"github.com/paddock-zk/paddock/internal/test/conformance", "-secrets")
	cmd.Env = append(k.env, "TEST_JAAS="+jaas(zookeeper, k.principal(t, zookeeper, "")), "TEST_KEYTAB="+k.principal(t, "alice", ""))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out[max(0, len(out)-20_000):])
	cases := regexp.MustCompile(`\d+ cases passed on .*`).Find(out)
	require.NotNil(t, cases)
	t.Logf("%s", cases)
	require.Regexp(t, `secrets: .*, [3-9] secrets in none`, string(out))
}

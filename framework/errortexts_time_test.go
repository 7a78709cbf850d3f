package framework_test

import (
	"context"
	"crypto/tls"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A refused access says which right was missing on which node, and who asked.
func TestRefusedAccessSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Version("3.9"))
		owner := func(cfg *framework.Config) {
			cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("owner:secret")}}
		}
		admin := kit.Connect(t, srv, owner)
		mine := framework.ACLs(zk.DigestACL(zk.PermAll, "owner", "secret")...)
		for _, path := range []string{"/root", "/root/mine", "/root/mine/child"} {
			_, err := admin.Create(t.Context(), path, nil, framework.Persistent, mine)
			require.NoError(t, err)
		}
		for name, tc := range map[string]struct {
			call func(ctx context.Context, c *framework.Client) error
			want string
		}{
			"create": {func(ctx context.Context, c *framework.Client) error {
				_, err := c.Create(ctx, "/mine/new", nil, framework.Persistent)
				return err
			}, "create /root/mine/new: zk: not authenticated: CREATE on /root/mine is needed"},
			"create a container": {func(ctx context.Context, c *framework.Client) error {
				return c.EnsurePath(ctx, "/mine/new/er")
			}, "ensure path /root/mine/new/er: zk: not authenticated: CREATE on /root/mine is needed"},
			"get": {func(ctx context.Context, c *framework.Client) error {
				_, _, err := c.Get(ctx, "/mine")
				return err
			}, "get /root/mine: zk: not authenticated: READ on /root/mine is needed"},
			"exists": {func(ctx context.Context, c *framework.Client) error {
				_, _, err := c.Exists(ctx, "/mine")
				return err
			}, "exists /root/mine: zk: not authenticated: READ on /root/mine is needed"},
			"watch": {func(ctx context.Context, c *framework.Client) error {
				_, _, _, err := c.ChildrenW(ctx, "/mine")
				return err
			}, "children with watch /root/mine: zk: not authenticated: READ on /root/mine is needed"},
			"set": {func(ctx context.Context, c *framework.Client) error {
				_, err := c.Set(ctx, "/mine", nil, 0)
				return err
			}, "set /root/mine: zk: not authenticated: WRITE on /root/mine is needed"},
			"set the list": {func(ctx context.Context, c *framework.Client) error {
				_, err := c.SetACL(ctx, "/mine", zk.WorldACL(zk.PermAll), 0)
				return err
			}, "set ACL /root/mine: zk: not authenticated: ADMIN on /root/mine is needed"},
			"get the list": {func(ctx context.Context, c *framework.Client) error {
				_, _, err := c.GetACL(ctx, "/mine")
				return err
			}, "get ACL /root/mine: zk: not authenticated: READ or ADMIN on /root/mine is needed"},
			"delete": {func(ctx context.Context, c *framework.Client) error {
				return c.Delete(ctx, "/mine/child", 0)
			}, "delete /root/mine/child: zk: not authenticated: DELETE on /root/mine is needed"},
			"transaction": {func(ctx context.Context, c *framework.Client) error {
				tx := c.Transaction()
				tx.Check("/", framework.AnyVersion)
				tx.Set("/mine", nil, 0)
				_, err := tx.Commit(ctx)
				return err
			}, "commit /root: operation 0 on /root: zk: not authenticated: READ on /root is needed"},
		} {
			for given, auth := range map[string][]framework.Auth{
				"none":               nil,
				"digest:owner":       {framework.DigestAuth("owner", "wrong")},
				"digest:a, digest:c": {framework.DigestAuth("a", "b"), framework.DigestAuth("c", "d")},
			} {
				c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.ConnectString, cfg.Auth = cfg.ConnectString+"/root", auth })
				err := tc.call(t.Context(), c)
				require.ErrorIs(t, err, framework.ErrNoAuth, name)
				require.EqualError(t, err, tc.want+" (credentials given: "+given+")", name)
				require.NoError(t, c.Close())
			}
		}
	})
}

// A refused access names the certificate as well: the one that this connection was shown,
// and none if the server has not asked for it.
func TestRefusedAccessNamesTheCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t)
		for _, asks := range []tls.ClientAuthType{tls.NoClientCert, tls.VerifyClientCertIfGiven} {
			for _, least := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				server := serving(ca.issue("zk.test", time.Hour))
				server.ClientAuth, server.ClientCAs, server.MaxVersion = asks, ca.Pool(), least
				srv := zktest.Start(t, zktest.InMemory(), zktest.TLS(server))
				cfg := named(ca.Pool(), map[string]*zktest.Server{"zk.test:2281": srv})
				owner := kit.Dial(t, cfg)
				_, err := owner.Create(t.Context(), "/a", nil, framework.Persistent, framework.ACLs(zk.DigestACL(zk.PermAll, "owner", "secret")...))
				require.NoError(t, err)

				refused := func(c *framework.Client, given string) {
					t.Helper()
					_, _, err := c.Get(t.Context(), "/a")
					require.EqualError(t, err, "get /a: zk: not authenticated: READ on /a is needed (credentials given: "+given+")")
				}
				refused(owner, "none")
				cfg.TLS.Certificates = []tls.Certificate{ca.issue("first", time.Hour)}
				cfg.Auth = []framework.Auth{framework.DigestAuth("bob", "x")}
				first, second := `x509:CN=first,O=Example\, Inc., digest:bob`, `x509:CN=second,O=Example\, Inc., digest:bob`
				if asks == tls.NoClientCert {
					first, second = "digest:bob", "digest:bob"
				}
				refused(kit.Dial(t, cfg), first)

				next := ca.issue("first", time.Hour)
				cfg.TLS = cfg.TLS.Clone()
				cfg.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &next, nil }
				c := kit.Dial(t, cfg)
				refused(c, first)
				next = ca.issue("second", time.Hour)
				refused(c, first)
				require.NoError(t, srv.Disconnect(c.SessionID()))
				synctest.Wait()
				require.NoError(t, c.BlockUntilConnected(t.Context()))
				refused(c, second)
			}
		}
	})
}

func TestNamespaceIsShownAsTyped(t *testing.T) {
	for namespace, want := range map[string]string{
		"/a/":  `invalid path: "/a/": it ends with a slash: write it without slashes around it, as in "app/jobs"`,
		"/a":   `invalid path: "/a": it has an empty element: write it without slashes around it, as in "app/jobs"`,
		"/":    `invalid path: "/": it ends with a slash: write it without slashes around it, as in "app/jobs"`,
		"a//b": `invalid path: "a//b": it has an empty element`,
		"..":   `invalid path: "..": it has the relative element ".."`,
	} {
		_, err := framework.Start(framework.Config{ConnectString: "a:1", Namespace: namespace})
		require.ErrorIs(t, err, framework.ErrInvalidPath)
		require.ErrorContains(t, err, "config: Namespace zk: "+want)
	}
	synctest.Test(t, func(t *testing.T) {
		c := kit.Connect(t, zktest.Start(t, zktest.InMemory()))
		_, _, err := c.UsingNamespace("/a/").Get(t.Context(), "/x")
		require.ErrorIs(t, err, framework.ErrInvalidPath)
		require.ErrorContains(t, err, `namespace: zk: invalid path: "/a/": it ends with a slash`)
	})
}

func TestChrootWithAComma(t *testing.T) {
	_, err := framework.Start(framework.Config{ConnectString: "a:1/app,b:2/app"})
	require.EqualError(t, err, `config: ConnectString chroot "/app,b:2/app" has a comma: the chroot is written once, behind the last server, as in a:2181,b:2181/app`)
}

// In a bubble there is no network, so this is outside of one.
func TestServerInMemoryWithoutItsDialer(t *testing.T) {
	srv := zktest.Start(t, zktest.InMemory())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := framework.Connect(ctx, framework.Config{ConnectString: srv.ConnectString()})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "set Config.DialContext to the server's DialContext")
}

func TestErrorsSayWhatTheyAreAbout(t *testing.T) {
	for want, err := range map[string]error{
		"operation 3 on /a: zk: node does not exist": &framework.TransactionError{Index: 3, Path: "/a", Err: framework.ErrNoNode},
		"get /a: zk: node does not exist":            &framework.OpError{Op: "get", Path: "/a", Err: framework.ErrNoNode},
		"config: Auth zk: node does not exist":       &framework.ConfigError{Field: "Auth", Err: framework.ErrNoNode},
	} {
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, framework.ErrNoNode)
	}
	assert.Equal(t, "NodeDeleted", framework.NodeDeleted.String())
	assert.Equal(t, "EventType(0)", framework.EventType(0).String())
	assert.Equal(t, "EventType(9)", framework.EventType(9).String())
}

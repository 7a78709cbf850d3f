package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/dns"
)

// config is what the flags say of the client.
func (inv *invocation) config() (framework.Config, error) {
	cfg := framework.Config{ConnectString: inv.servers, Namespace: strings.Trim(inv.namespace, "/"), SessionTimeout: inv.sessionTimeout}
	cfg.DialContext, cfg.LookupHost = new(net.Dialer).DialContext, dns.Resolver().LookupHost // errors of the default speak of tests
	if inv.servers == "" {
		return cfg, inv.verb.misuse("%v", errNoServers)
	}
	all := inv.auths
	if inv.authFile != "" {
		text, err := os.ReadFile(inv.authFile)
		if err != nil {
			return cfg, inv.verb.misuse("--auth-file: %v", err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				all = append(all, line)
			}
		}
	}
	for _, auth := range all {
		scheme, data, ok := strings.Cut(auth, ":")
		if !ok || scheme == "" {
			return cfg, inv.verb.misuse("a credential is written scheme:data, such as digest:user:password")
		}
		cfg.Auth = append(cfg.Auth, framework.Auth{Scheme: scheme, Data: []byte(data)})
	}
	var err error
	cfg.TLS, err = inv.tlsConfig()
	return cfg, err
}

// tlsConfig is nil for plain TCP.
func (inv *invocation) tlsConfig() (*tls.Config, error) {
	if !inv.tls && inv.tlsCA == "" && inv.tlsCert == "" && inv.tlsServerName == "" {
		return nil, nil //nolint:nilnil // no TLS is not an error
	}
	cfg := &tls.Config{ServerName: inv.tlsServerName, MinVersion: tls.VersionTLS12}
	if inv.tlsCA != "" {
		pem, err := os.ReadFile(inv.tlsCA)
		if err != nil {
			return nil, inv.verb.misuse("--tls-ca: %v", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, inv.verb.misuse("--tls-ca: no certificate in %s", inv.tlsCA)
		}
	}
	if inv.tlsCert != "" {
		cert, err := tls.LoadX509KeyPair(inv.tlsCert, inv.tlsKey)
		if err != nil {
			return nil, inv.verb.misuse("--tls-cert and --tls-key: %v", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}

// errTimeout is the cause of the end of a run that took longer than --timeout.
var errTimeout = errors.New("--timeout has passed")

// withClient connects and calls do. All of it takes --timeout at most.
func (inv *invocation) withClient(ctx context.Context, do func(context.Context, *framework.Client) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, inv.timeout, errTimeout)
	defer cancel()
	client, err := inv.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if e := client.Close(); err == nil && e != nil {
			err = fmt.Errorf("close the session: %w", e)
		}
	}()
	err = do(ctx, client)
	if len(inv.args) > 0 && errors.Is(err, framework.ErrNoNode) {
		if says := inv.inFull(inv.args[0]); says != "" {
			err = fmt.Errorf("%w (%s)", err, says)
		}
	}
	return err
}

// connect opens a session, or says why it cannot.
func (inv *invocation) connect(ctx context.Context) (*framework.Client, error) {
	cfg, err := inv.config()
	if err != nil {
		return nil, err
	}
	return framework.Connect(ctx, cfg)
}

// path is the first argument as a path, the root if there is none.
func (inv *invocation) path() (string, error) {
	if len(inv.args) == 0 {
		return "/", nil
	}
	return inv.asPath(inv.args[0])
}

// asPath checks a path. It may end in a slash.
func (inv *invocation) asPath(path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", inv.verb.misuse("%q is no path: it must begin with /", path)
	}
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	return path, framework.ValidatePath(path)
}

// inFull says what to write in place of a path that begins with the chroot or the
// namespace, as those in logs do; "" if it does not.
func (inv *invocation) inFull(path string) string {
	_, chroot, _ := strings.Cut(inv.servers, "/")
	chroot, namespace := strings.Trim(chroot, "/"), strings.Trim(inv.namespace, "/")
	type base struct{ path, name string }
	bases := []base{{"/" + chroot, "the chroot"}, {"/" + namespace, "the namespace"}}
	if chroot != "" && namespace != "" {
		bases = slices.Insert(bases, 0, base{"/" + chroot + "/" + namespace, "the chroot and the namespace"})
	}
	for _, b := range bases {
		if rest, is := strings.CutPrefix(path+"/", b.path+"/"); is && b.path != "/" {
			return fmt.Sprintf("paths begin below %s %s: try /%s", b.name, b.path, strings.TrimSuffix(rest, "/"))
		}
	}
	return ""
}

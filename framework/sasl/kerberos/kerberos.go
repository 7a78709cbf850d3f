// Package kerberos is SASL's mechanism GSSAPI: a client proves to ZooKeeper's servers by
// Kerberos who it is. It is a module of its own, so that only programs that use it depend on
// a library for Kerberos.
//
//	framework.Config{SASL: kerberos.Keytab("/etc/orders.keytab", "orders@EXAMPLE.ORG")}
package kerberos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/dns"
)

// Option changes how a mechanism finds the KDC and names the servers. With one that is nil
// the mechanism proves nobody: calls return framework.ErrAuthFailed and say so.
type Option func(*options)

type options struct {
	file    string // krb5.conf
	service string
	server  string // of all servers, "" for one each
	written bool   // hosts keep the names in the connection string
	invalid error  // why nobody can be proven with them

	dial       func(ctx context.Context, network, addr string) (net.Conn, error) // to KDCs
	lookupAddr func(ctx context.Context, addr string) ([]string, error)
	lookupHost func(ctx context.Context, host string) ([]string, error)
}

// ConfigFile is the krb5.conf, which is read before each dialing. It defaults to the
// variable KRB5_CONFIG, and else to /etc/krb5.conf. Files that it includes are not read.
// If it lists no KDC for a realm, DNS is asked for _kerberos._tcp of the realm.
func ConfigFile(name string) Option { return func(o *options) { o.file = name } }

// Service is the first part of the servers' principals. It defaults to "zookeeper".
func Service(name string) Option { return func(o *options) { o.service = name } }

// ServerPrincipal is the principal of all servers, as in "zookeeper/zk.example.org". Without
// a realm it is of the realm of its host. By default each server has its own, made of the
// service and the name of its host.
func ServerPrincipal(name string) Option { return func(o *options) { o.server = name } }

// HostsAsWritten takes the names of hosts from the connection string. By default, as in
// Java, the name is what DNS gives for the address that is dialed, if that name has this
// address as well.
func HostsAsWritten() Option { return func(o *options) { o.written = true } }

// Keytab proves the client by the key that a file has for a principal, such as
// "orders@EXAMPLE.ORG". Without a realm the principal is of krb5.conf's default_realm. The
// file is read whenever a ticket is asked for, so that it may be exchanged.
//
// Tickets are kept in memory. Before each dialing those that end soon are asked for anew: a
// fifth of their life before their end, and at most five minutes.
//
// If the KDC refuses it, calls return framework.ErrAuthFailed with the reason. If no KDC
// can be reached, the client tries again, as if it could not reach a server.
func Keytab(file, principal string, opts ...Option) sasl.Mechanism {
	m := newMechanism(&keytabFile{file: file, principal: principal}, opts)
	if strings.Contains(principal, "@") {
		m.user = principal
	}
	return m
}

// CredentialCache proves the client by the ticket that kinit has put into a file. With "" it
// is the file that the variable KRB5CCNAME names, and else that of the user in /tmp. Only
// files will do: no KEYRING, KCM or DIR.
//
// The file is read before each dialing. So whatever renews it, such as a daemon, reaches the
// client. A ticket that ends soon and can be renewed is renewed as well, in memory: the file
// is never written. A session that is connected outlives its ticket, but it cannot connect
// again without one.
//
// Errors are those of Keytab.
func CredentialCache(file string, opts ...Option) sasl.Mechanism {
	return newMechanism(&cacheFile{file: file}, opts)
}

// mechanism is printed and encoded as text without its keys.
type mechanism struct {
	source source
	opts   options

	mu      sync.Mutex // guards the fields below; never held over I/O
	user    string
	session *session // nil for none
}

// realms are krb5.conf, and how its KDCs are reached.
type realms struct {
	*config.Config
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// source is where the client's own credentials come from.
type source interface {
	// client is who the credentials are of.
	client(conf realms) (principal, error)
	// login is a session of that client. old is the last one, or nil.
	login(ctx context.Context, conf realms, old *session) (*session, error)
}

func newMechanism(s source, opts []Option) *mechanism {
	m := &mechanism{source: s, opts: options{
		service: "zookeeper", dial: new(net.Dialer).DialContext, lookupAddr: dns.Resolver().LookupAddr, lookupHost: dns.Resolver().LookupHost,
	}}
	for _, option := range opts {
		if option == nil {
			m.opts.invalid = errors.New("option is nil")
			continue
		}
		option(&m.opts)
	}
	return m
}

// Name implements sasl.Mechanism.
func (*mechanism) Name() string { return "GSSAPI" }

// User implements sasl.Mechanism.
func (m *mechanism) User() string {
	m.mu.Lock()
	user := m.user
	m.mu.Unlock()
	if user != "" {
		return user
	}
	conf, err := m.opts.load()
	if err != nil {
		return ""
	}
	client, err := m.source.client(conf)
	if err != nil {
		return ""
	}
	return client.String()
}

// String is mechanism and user.
func (m *mechanism) String() string { return m.Name() + ":" + m.User() }

// Format prints mechanism and user, whatever the verb.
func (m *mechanism) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, m.String()) }

// MarshalText returns mechanism and user, for JSON, and so for structured logs.
func (m *mechanism) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Begin implements sasl.Mechanism.
func (m *mechanism) Begin(ctx context.Context, server sasl.Server) (sasl.Exchange, error) {
	conf, err := m.opts.load()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	old := m.session
	m.mu.Unlock()
	s, err := m.source.login(ctx, conf, old)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.user, m.session = s.client.String(), s
	m.mu.Unlock()
	target := m.opts.principalOf(ctx, conf, server, s.client.realm)
	t, err := s.ticketFor(ctx, conf, target)
	if err != nil {
		m.mu.Lock()
		if m.session == s { // the KDC may have forgotten it
			m.session = nil
		}
		m.mu.Unlock()
		return nil, m.opts.orUnknown(ctx, server, err)
	}
	return newExchange(s.client, t, func(accepted bool) { s.shown(target, t, accepted) })
}

// load reads krb5.conf.
func (o *options) load() (realms, error) {
	if o.invalid != nil {
		return realms{}, o.invalid
	}
	file := o.file
	if file == "" {
		file = os.Getenv("KRB5_CONFIG")
	}
	if file == "" {
		file = "/etc/krb5.conf"
	}
	data, err := read(file)
	if err != nil {
		return realms{}, err
	}
	var conf *config.Config
	err = guard(func() error {
		conf, err = config.NewFromString(string(data))
		var unsupported config.UnsupportedDirective
		if errors.As(err, &unsupported) { // it is left out
			return nil
		}
		return err
	})
	if err != nil {
		return realms{}, fmt.Errorf("%s: %w", file, err)
	}
	return realms{conf, o.dial}, nil
}

// principalOf is the principal of a server.
func (o *options) principalOf(ctx context.Context, conf realms, server sasl.Server, realm string) principal {
	name := o.server
	if name == "" {
		name = o.service + "/" + strings.ToLower(o.hostOf(ctx, server))
	}
	p := parsePrincipal(name)
	if p.realm == "" {
		p.realm = conf.ResolveRealm(p.NameString[len(p.NameString)-1])
	}
	if p.realm == "" {
		p.realm = realm
	}
	return p
}

// hostOf is a server's name, by default the canonical one.
//
// Source: ZooKeeper's SaslServerPrincipal, and Java's InetAddress.getCanonicalHostName.
func (o *options) hostOf(ctx context.Context, server sasl.Server) string {
	if o.written {
		return server.Host
	}
	addr, _, err := net.SplitHostPort(server.Addr)
	if err != nil {
		return server.Host
	}
	addrs := []string{addr}
	if net.ParseIP(addr) == nil { // a name is dialed as it is
		if addrs, err = o.lookupHost(ctx, addr); err != nil {
			return server.Host
		}
	}
	for _, addr := range addrs {
		names, err := o.lookupAddr(ctx, addr)
		if err != nil || len(names) == 0 {
			continue
		}
		name := strings.TrimSuffix(names[0], ".")
		if back, err := o.lookupHost(ctx, name); err == nil && slices.Contains(back, addr) {
			return name
		}
	}
	return server.Host
}

// orUnknown is why there is no ticket for a server. If DNS does not know the server either,
// that counts: there is nobody to refuse, and another server may be there.
func (o *options) orUnknown(ctx context.Context, server sasl.Server, err error) error {
	host, _, split := net.SplitHostPort(server.Addr)
	if split != nil || net.ParseIP(host) != nil {
		return err
	}
	if _, unknown := o.lookupHost(ctx, host); unknown != nil {
		return fmt.Errorf("%w: %w", err, unknown)
	}
	return err
}

// principal is a name and its realm.
type principal struct {
	types.PrincipalName
	realm string
}

func parsePrincipal(s string) principal {
	name, realm := types.ParseSPNString(s)
	return principal{name, realm}
}

func (p principal) String() string { return p.PrincipalNameString() + "@" + p.realm }

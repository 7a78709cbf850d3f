package framework

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/dns"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/lease"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/retry"
)

// Config describes a client. The zero value of every field except
// ConnectString is usable.
type Config struct {
	// ConnectString lists host:port pairs, separated by commas, and may end in a
	// chroot: "zk1:2181,zk2:2181/app". The port defaults to 2181. Write an IPv6
	// address in brackets. Empty elements are left out, and a server that is named
	// twice counts once. The client looks names up again in each cycle of
	// servers, and tries each address of a name. The client does not make the chroot:
	// while it is missing, calls return ErrNoNode with its path. Required.
	ConnectString string

	// SessionTimeout is requested from the servers, which clamp it; see
	// Client.SessionTimeout for the result. The client refuses a server that grants
	// more than an hour when less was requested. At least a second; if a server
	// grants less than that, locks return ErrTimeoutTooShort. docs/lock-cost.md says
	// which to choose for a network. Defaults to 15 seconds.
	SessionTimeout time.Duration

	// ConnectTimeout bounds three things: dialing and handshake with one address of
	// a server, the look-up of one name, and how long one attempt of a call waits
	// for a connection. A server that answers a part of the handshake has it anew for
	// the next part, and twice in all; up to three times that after attempts in vain of that
	// kind. It must be SessionTimeout at most. Defaults to a third of it.
	ConnectTimeout time.Duration

	// CloseTimeout bounds how long Close tries to tell the servers. Defaults to
	// 5 seconds.
	CloseTimeout time.Duration

	// LostAfter makes LOST come when SUSPENDED has lasted for so long. It can only
	// make LOST earlier: by default LOST comes just before the servers can end the
	// session. It must be SessionTimeout at most. When LostAfter is over, the client gives up the session, with its
	// holds and ephemeral nodes, even if it was about to connect again.
	LostAfter time.Duration

	// Retry is the policy around each call. The zero Policy means
	// ExponentialBackoff(100ms, 5); retry.None disables retries. The policy's
	// classifiers are asked before Classify. A classifier that repeats
	// ErrOutcomeUnknown lets a write happen more than once; it does not make Commit
	// repeat.
	Retry retry.Policy

	// Namespace is put before every path: with "app", "/a" is "/app/a". The client
	// makes the namespace's node when it creates something in it. Defaults to none.
	Namespace string

	// Auth is presented on each new connection, before anything else but SASL. It is never
	// logged.
	Auth []Auth

	// SASL proves the client to each server, on each connection, before anything else. If the
	// proof fails, or the server has no SASL, calls return ErrAuthFailed: the client never
	// goes on as nobody. Defaults to none.
	SASL sasl.Mechanism

	// ACL chooses the access list of a node created without one. path has the
	// namespace and not the chroot. Defaults to world:anyone, all rights.
	ACL func(path string) []ACL

	// DefaultData is what Create writes for nil data. Nil means the local IP
	// address as text, as in Curator.
	DefaultData []byte

	// Compression is what Compressed does to data. Defaults to Gzip.
	Compression Compression

	// FollowEnsemble takes the list of servers from the ensemble's configuration
	// (/zookeeper/config), at the start and whenever it changes. ConnectString is
	// where the client begins, and is tried as well when no server of the list lets it
	// in. Off by default: the configuration has the addresses
	// that servers use, and clients may not be able to reach these. If the client
	// may not read the configuration, or it has no client addresses, the list stays
	// as it is.
	FollowEnsemble bool

	// ServerList returns the servers, as in a connection string, where they change:
	// ServersInFile and ServersBySRV make such functions. The client asks for them at the
	// start, every ten seconds, and every second while it is not connected. It tries a new
	// list at once if its servers do not let it in, and keeps the connection that it has.
	// ConnectString is where the client begins, and is tried as well when no server of the
	// list lets it in. After an error, or if the list is empty, it stays as it is, which
	// Errors tells once until there is a list again. The function must return when its
	// context ends, as it does with Close, and must not panic: Close ends the session and then
	// waits for it. It excludes FollowEnsemble. Defaults to none.
	ServerList func(context.Context) ([]string, error)

	// Prefer has patterns of hosts, as path.Match takes them, for the servers of the client's
	// own zone: "zk-a-*", or "10.0.1.*" for addresses, without a port. Case does not matter.
	// A server is preferred if its host as listed matches, or its address. The client tries preferred servers first, save those
	// that kept it waiting. While it is connected to another one, it asks them about every 30 s,
	// by the four-letter word srvr, whether they serve. If one does, the client goes there in
	// the same session, in a moment in which it holds no lock and no request is on its way. It
	// looks for such a moment for a second. If that server does not let it in, it looks less
	// often, up to every 8 min. It stays with a server that takes no session up again, as a
	// ClickHouse Keeper. If no server matches, the log says so. Defaults to none.
	Prefer []string

	// TLS turns on encryption; host names are verified as written in ConnectString, or as
	// ServerList or the ensemble's configuration has them. At least TLS 1.2 is spoken unless
	// MinVersion says otherwise. Nil means plain TCP.
	TLS *tls.Config

	// TLSFiles turns on encryption as TLS does, with what stands in files. The client reads
	// them again when they change, for its next connection. It logs at warn that its
	// certificate ends soon: in the last fifth of its life, and two weeks before the end at
	// most.
	TLSFiles TLSFiles

	// DialContext opens a connection to host:port. It must return when its
	// context ends, and must not panic: the client waits for it. Defaults to
	// that of a net.Dialer. Errors of calls tell by text what it returned, and match error
	// numbers and types of the standard library in it. With a function of your own and no LookupHost, names
	// arrive as they are written in ConnectString. Several goroutines may call it.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// LookupHost returns the addresses of a name, without the port. It must return
	// when its context ends. The client tries each address as a server of its own.
	// Several goroutines may call it, for different names at the same time. It is
	// not called for what is an address already. Defaults to that of
	// net.DefaultResolver, unless DialContext is set: then names are not looked up.
	LookupHost func(ctx context.Context, host string) ([]string, error)

	// CanBeReadOnly lets the client use a server that is cut off from the majority,
	// for reads, while it looks for another one.
	CanBeReadOnly bool

	// SessionLease says how the client knows that the servers have not ended its
	// session. Defaults to LeaseByQuorum, which is right for every kind of server.
	SessionLease SessionLease

	// ServerTick is the servers' tickTime, or more. If it is set, holds last
	// through longer round trips and longer pauses of the servers, with
	// LeaseByQuorum. It must not be less than any member's tickTime: a hold could
	// outlast the session then. Set it if minSessionTimeout is less than two ticks.
	// Defaults to half of the session timeout that the servers grant; it must be
	// SessionTimeout at most.
	ServerTick time.Duration

	// NoContainers makes parents as persistent nodes, which the servers do not
	// remove.
	NoContainers bool

	// NoBatches sends each request of a lock by itself. By default, this client sends the
	// creations of nodes in one transaction if several of its locks need one at the same
	// moment. It treats deletions in the same way. A request that is alone leaves in the
	// same form either way. docs/decisions/022-batches.md has the rules and the figures.
	NoBatches bool

	// MaxReply bounds a reply's size in bytes. The call whose reply is larger
	// returns ErrReplyTooLarge; that of a write matches ErrOutcomeUnknown as well. The
	// client ends the connection only if the reply belongs to no request or is larger
	// than 256 MiB. The list of a lock's children is one reply: 4 MiB have room for
	// 70,000 waiters. Defaults to 4 MiB.
	MaxReply int

	// MaxRequest bounds a request's size in bytes. A larger one is not sent, since
	// servers would end the connection, and the call returns ErrTooLarge. Defaults
	// to 1,048,575, as the servers' jute.maxbuffer does.
	MaxRequest int

	// Logger gets what happens to the connection, and what fails in the background. An
	// outage is logged at warn after a second, then at growing intervals, and at its
	// end. SlogLogger makes a logger of a handler of log/slog. Defaults to none.
	Logger *zap.Logger

	// Tracer hears of each acquisition, hold, release, call and change of the
	// connection. Defaults to none, which costs nothing.
	Tracer monitor.Tracer

	seams session.Seams // of tests of this module
}

// WithSeams is for the tests of this module: nobody else can make a key.
func (cfg Config) WithSeams(_ session.Key, seams session.Seams) Config {
	cfg.seams = seams
	return cfg
}

// Auth is one credential, such as {"digest", []byte("user:password")}. It is
// printed and encoded as text without the data, also inside a Config. There is one
// exception: if it stands in an unexported field of your struct, package fmt cannot
// call its methods, and prints the data.
type Auth struct {
	Scheme string
	Data   []byte
}

// String returns the scheme.
func (a Auth) String() string { return a.Scheme + ":***" }

// Format prints the scheme, whatever the verb.
func (a Auth) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, a.String()) }

// MarshalText returns the scheme, for JSON, and so for structured logs.
func (a Auth) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// SessionLease says how a client knows that the servers have not ended its
// session, and so that no other client can have its locks. docs/lock-promises.md
// explains it.
type SessionLease int

// The kinds of session lease.
const (
	// LeaseByQuorum trusts what a committed write has confirmed. It holds for
	// ensembles and for standalone servers.
	//
	// While a lock is held and little else is sent, it costs four to six small
	// writes and about eight syncs in each session timeout. It costs more if round
	// trips are long. A client that has made a lock object and holds nothing sends
	// about six syncs, so that the next lock takes one round trip.
	LeaseByQuorum SessionLease = iota
	// LeaseByServer trusts every reply of the server that the client is connected
	// to, and sends nothing besides pings. It is exact for a standalone server and
	// for nothing else. In an ensemble a member that is cut off from its leader goes
	// on replying: a lock is then held by two clients, for seconds.
	LeaseByServer
)

// ConfigError names the field of a Config that is wrong.
type ConfigError struct {
	Field string
	Err   error
}

// Error implements error.
func (e *ConfigError) Error() string { return "config: " + e.Field + " " + e.Err.Error() }

// Unwrap gives the reason.
func (e *ConfigError) Unwrap() error { return e.Err }

// plan is a Config that was checked and completed.
type plan struct {
	Config
	servers []string
	chroot  string
	files   *tlsFiles // nil for none
}

const (
	defaultSessionTimeout = 15 * time.Second
	defaultCloseTimeout   = 5 * time.Second
	defaultMaxReply       = 4 << 20
	defaultMaxRequest     = 1<<20 - 1
	leastMaxSize          = 4 << 10
)

func defaultRetry() retry.Policy { return retry.ExponentialBackoff(100*time.Millisecond, 5) }

// withDefaults completes a Config, or says which field is wrong.
func (cfg Config) withDefaults() (*plan, error) {
	p := &plan{Config: cfg}
	steps := []struct {
		field string
		check func() error
	}{
		{"ConnectString", p.fillServers},
		{"SessionTimeout", p.fillSessionTimeout},
		{"ConnectTimeout", func() error { return p.fillPart(&p.ConnectTimeout, max(p.SessionTimeout/3, time.Millisecond)) }},
		{"CloseTimeout", func() error { return fillTimeout(&p.CloseTimeout, defaultCloseTimeout) }},
		{"LostAfter", func() error { return p.fillPart(&p.LostAfter, 0) }},
		{"Retry", p.checkRetry},
		{"Namespace", func() error { return checkNamespace(p.Namespace) }},
		{"Auth", p.checkAuth},
		{"SessionLease", p.checkLease},
		{"ServerList", p.checkServerList},
		{"Prefer", p.checkPrefer},
		{"ServerTick", func() error { return p.fillPart(&p.ServerTick, 0) }},
		{"MaxReply", func() error { return fillSize(&p.MaxReply, defaultMaxReply) }},
		{"MaxRequest", func() error { return fillSize(&p.MaxRequest, defaultMaxRequest) }},
	}
	for _, s := range steps {
		if err := s.check(); err != nil {
			return nil, &ConfigError{Field: s.field, Err: err}
		}
	}
	if p.Retry.IsZero() {
		p.Retry = defaultRetry()
	}
	p.Retry = p.Retry.WithFallback(classify)
	if p.DialContext == nil {
		p.DialContext = dial
		if p.LookupHost == nil {
			p.LookupHost = dns.Resolver().LookupHost
		}
	}
	if p.ACL == nil {
		p.ACL = func(string) []ACL { return []ACL{WorldACL(PermAll)} }
	}
	if p.Compression == nil {
		p.Compression = Gzip()
	}
	if p.Logger == nil {
		p.Logger = zap.NewNop()
	}
	if err := p.fillTLSFiles(); err != nil {
		return nil, &ConfigError{Field: "TLSFiles", Err: err}
	}
	return p, nil
}

// dial is the default of DialContext.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil && isInMemory(addr) {
		return nil, fmt.Errorf("%w (a zktest server in memory listens nowhere: set Config.DialContext to the server's DialContext)", err)
	}
	return nc, err
}

// isInMemory is whether an address looks as those of zktest's servers in memory do:
// on loopback, with a port that nobody else uses.
func isInMemory(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	n, err2 := strconv.Atoi(port)
	return err == nil && err2 == nil && n < 100 && strings.HasPrefix(host, "127.")
}

func (p *plan) fillServers() (err error) {
	p.servers, p.chroot, err = parseConnectString(p.ConnectString)
	return err
}

// fillTimeout checks a duration, which the protocol has in milliseconds of 32 bits.
func fillTimeout(d *time.Duration, preset time.Duration) error {
	const most = math.MaxInt32 * time.Millisecond
	switch {
	case *d == 0:
		*d = preset
	case *d < 0:
		return fmt.Errorf("is %v: it must not be negative", *d)
	case *d < time.Millisecond:
		return fmt.Errorf("is %v: it must be a millisecond at least (a number alone counts nanoseconds: write %s)", *d, withUnit(*d))
	case *d > most:
		return fmt.Errorf("is %v: it must be %v at most", *d, most)
	}
	return nil
}

// fillPart is fillTimeout for a part of the session timeout.
func (p *plan) fillPart(d *time.Duration, preset time.Duration) error {
	if *d > p.SessionTimeout {
		return fmt.Errorf("is %v: it must be SessionTimeout at most, which is %v", *d, p.SessionTimeout)
	}
	return fillTimeout(d, preset)
}

// withUnit is what a number without a unit was meant to be: seconds, or milliseconds
// as in Curator's settings.
func withUnit(n time.Duration) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d*time.Second", n)
	case n%1000 == 0:
		return fmt.Sprintf("%d*time.Second", n/1000)
	}
	return fmt.Sprintf("%d*time.Millisecond", n)
}

func fillSize(n *int, preset int) error {
	switch {
	case *n == 0:
		*n = preset
	case *n < leastMaxSize || *n > math.MaxInt32:
		return fmt.Errorf("is %d: it must be from %d to %d", *n, leastMaxSize, math.MaxInt32)
	}
	return nil
}

func (p *plan) checkRetry() error {
	if err := p.Retry.Validate(); err != nil {
		return fmt.Errorf("is %q: %w", p.Retry, err)
	}
	return nil
}

func (p *plan) checkAuth() error {
	for i, a := range p.Auth {
		if a.Scheme == "" {
			return fmt.Errorf("entry %d has no scheme", i)
		}
	}
	return nil
}

func (p *plan) fillSessionTimeout() error {
	if err := fillTimeout(&p.SessionTimeout, defaultSessionTimeout); err != nil {
		return err
	}
	if p.SessionTimeout < lease.LeastTimeout {
		return fmt.Errorf("is %v: it must be %v at least", p.SessionTimeout, lease.LeastTimeout)
	}
	return nil
}

func (p *plan) checkServerList() error {
	if p.ServerList != nil && p.FollowEnsemble {
		return errors.New("and FollowEnsemble exclude each other")
	}
	return nil
}

func (p *plan) checkPrefer() error {
	for _, pattern := range p.Prefer {
		_, err := path.Match(pattern, "")
		_, port, _ := strings.Cut(pattern, ":")
		_, noPort := strconv.Atoi(port) // "fe80:*" has none, nor has an address of IPv6
		class, _, _ := strings.Cut(strings.TrimPrefix(pattern, "["), "]")
		inBrackets := strings.HasPrefix(pattern, "[") && (net.ParseIP(class) != nil || strings.Contains(class, ":"))
		if err != nil || noPort == nil || inBrackets || pattern == "" || strings.ContainsAny(pattern, "/,; \t\r\n") {
			return fmt.Errorf("has %q: it must be a pattern of a host without a port or brackets, such as zk-a-* or 10.0.1.*", pattern)
		}
	}
	return nil
}

func (p *plan) checkLease() error {
	if _, ok := rules[p.SessionLease]; !ok {
		return errors.New("is none of LeaseByQuorum, LeaseByServer")
	}
	return nil
}

var rules = map[SessionLease]lease.Rule{LeaseByQuorum: lease.ByQuorum, LeaseByServer: lease.ByServer}

func (p *plan) session() session.Config {
	cfg := session.Config{
		Seams: p.seams,
		Transport: transport.Config{
			Servers:        p.servers,
			SessionTimeout: p.SessionTimeout,
			ConnectTimeout: p.ConnectTimeout,
			Dial:           p.DialContext,
			LookupHost:     p.LookupHost,
			Prefer:         slices.Clone(p.Prefer),
			TLS:            p.TLS,
			ReadOnly:       p.CanBeReadOnly,
			MaxReply:       p.MaxReply,
			MaxRequest:     p.MaxRequest,
		},
		NoBatches:    p.NoBatches,
		Lease:        rules[p.SessionLease],
		ServerTick:   p.ServerTick,
		CloseTimeout: p.CloseTimeout,
		LostAfter:    p.LostAfter,
		Logger:       p.Logger,
	}
	if p.Tracer != nil {
		cfg.Observer = tracer{p.Tracer}
	}
	if p.files != nil {
		cfg.Transport.FreshTLS = p.files.into
	}
	cfg.Transport.SASL = p.transportSASL()
	for _, a := range p.Auth {
		cfg.Transport.Auth = append(cfg.Transport.Auth, transport.Auth{Scheme: a.Scheme, Data: func() []byte { return a.Data }})
	}
	return cfg
}

func (p *plan) transportSASL() *transport.SASL {
	m := p.SASL
	if m == nil {
		return nil
	}
	return &transport.SASL{Mechanism: m.Name(), User: m.User, Begin: func(ctx context.Context, host, addr string) (transport.Step, error) {
		e, err := m.Begin(ctx, sasl.Server{Host: host, Addr: addr})
		switch {
		case err != nil:
			return nil, err
		case e == nil:
			return nil, errors.New("neither an exchange nor an error")
		}
		return e.Step, nil
	}}
}

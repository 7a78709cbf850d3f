package framework

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/listeners"
)

// Client is one session with an ensemble, safe for use by many goroutines. Make
// it with Start or Connect; calls on a zero or closed Client return ErrClosed. Do not
// copy it.
type Client struct {
	_ noCopy
	*base
	owner bool // made by Start, not by UsingNamespace
}

// noCopy has go vet find copies of what it is in.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// base is what clients of one session share, and what a namespace adds.
type base struct {
	plan    *plan
	session *session.Session
	// prefix is chroot and namespace: what stands before every path on the server.
	prefix      string
	namespace   string       // with a leading slash, or ""
	chrootThere *atomic.Bool // it has been there once
}

// Connect is Start and BlockUntilConnected. If ctx ends first, or a server refuses
// the credentials, it closes the client again and returns the error. Where no
// server answers it waits until ctx ends, so ctx should have a deadline. The closing
// takes half a second at most. ctx bounds this call only: the client lives until Close.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	if ctx == nil {
		return nil, &OpError{Op: "connect", Path: cfg.ConnectString, Err: ErrNilContext}
	}
	c, err := Start(cfg) //nolint:contextcheck // the client lives on when ctx ends
	if err != nil {
		return nil, err
	}
	if err := c.BlockUntilConnected(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Start returns at once and connects in the background, for as long as it
// takes. Its errors are *ConfigError.
func Start(cfg Config) (*Client, error) {
	p, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := session.Open(p.session())
	if err != nil {
		return nil, &ConfigError{Field: "ConnectString", Err: err}
	}
	c := &Client{base: &base{plan: p, session: s, chrootThere: new(atomic.Bool)}, owner: true}
	c.base = c.inNamespace(p.Namespace)
	// What calls functions of the user, or reads files, does not hold up the end of the session.
	if p.files != nil && p.files.names.Certificate != "" {
		_, _ = c.Go(p.files.warn) // nothing is closed yet
	}
	if p.FollowEnsemble {
		c.followEnsemble()
	}
	if p.ServerList != nil {
		_, _ = c.Go(c.followList)
	}
	return c, nil
}

func (b *base) inNamespace(namespace string) *base {
	in := *b
	in.namespace = ""
	if namespace != "" {
		in.namespace = "/" + namespace
	}
	in.prefix = b.plan.chroot + in.namespace
	return &in
}

// Close ends all holds with their contexts, then the session, and waits for
// everything the client started. It does not wait for listeners, so a listener may
// call Close. A second call returns the same as the first. On a client from
// UsingNamespace, Close does nothing and returns an error.
//
// In every state, nil means that the session is over on the servers, or has never been used. Even after LOST
// they may still have the session, so Close tells them. If it reaches none within
// CloseTimeout, or they refuse, the error says that they keep the session's ephemeral
// nodes for up to a session timeout. ClickHouse Keeper has no other answer than the end of
// the connection, so there nil can also mean that it failed at that moment.
//
// Close waits for code of yours that is running:
// functions of Config and of Go, and methods of a context given to Acquire or Bind.
//
// A client that was never let in has no nodes, but a server may have made a session for it.
// Close tries for half a second at most to end that one, and not at all if Config.SASL was refused.
// Then it returns nil: the session times out. So it does if each request was refused for want
// of Config.SASL.
func (c *Client) Close() error {
	switch {
	case c.unusable():
		return ErrClosed
	case !c.owner:
		return errNotOwner
	}
	if err := c.session.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// Go runs work in a goroutine of the client, which Close joins. ctx ends when Close begins, with
// ErrClosed as its cause, and when stop is called, with context.Canceled. From then on calls with
// ctx fail, and work has to return soon. Close and stop wait for it without a limit, Close once it
// has ended the session.
//
// stop may be called more than once, by any goroutine, and each call waits. work itself must call
// neither stop nor Close, which would wait for it forever. It can begin another goroutine that does.
//
// Errors: ErrClosed, ErrInvalidArgument if work is nil. Nothing runs then.
func (c *Client) Go(work func(ctx context.Context)) (stop func(), err error) {
	switch {
	case work == nil:
		return nil, fmt.Errorf("go: %w: work is nil", ErrInvalidArgument)
	case c.unusable():
		return nil, ErrClosed
	}
	ctx, cancel := context.WithCancel(c.session.Life())
	done := make(chan struct{})
	if !c.session.GoBeside(func() {
		defer close(done)
		defer cancel()
		work(ctx)
	}) {
		cancel()
		return nil, ErrClosed
	}
	return func() { cancel(); <-done }, nil
}

var errNotOwner = errors.New("close: this client shares its session: close the one it was made from")

func (c *Client) unusable() bool { return c == nil || c.base == nil }

// BlockUntilConnected waits for a session and returns nil once it is up.
//
// Errors: ErrNotConnected together with ctx.Err() if ctx ended, with the reason
// why there is no connection; ErrClosed if the client was closed; ErrAuthFailed
// if the credentials were refused.
func (c *Client) BlockUntilConnected(ctx context.Context) error {
	switch {
	case c.unusable():
		return ErrClosed
	case ctx == nil:
		return &OpError{Op: "connect", Path: c.plan.ConnectString, Err: ErrNilContext}
	}
	_, err := c.session.AwaitConn(ctx, false)
	if err == nil {
		return nil
	}
	if ended(err) {
		err = fmt.Errorf("%w: %w", err, c.session.NotConnected(""))
	}
	return &OpError{Op: "connect", Path: c.plan.ConnectString, Err: err}
}

// State is the connection's state now; LATENT before the first connection, LOST
// after Close.
func (c *Client) State() listeners.State {
	if c.unusable() {
		return listeners.Latent
	}
	return c.session.State()
}

// String is the state and the session, for logs.
func (c *Client) String() string {
	return fmt.Sprintf("%v session %#x", c.State(), uint64(c.SessionID()))
}

// States delivers every change of state, beginning with the present one. It
// ends when the client is closed.
func (c *Client) States() listeners.Source[listeners.State] {
	if c.unusable() {
		return silent[listeners.State]()
	}
	return c.session.States()
}

// Errors delivers failures that no call can return: background clean-up that fails,
// a listener that panics, credentials that a server
// refuses. Config.Logger gets each of them as well, so a listener that logs them would
// write them twice.
func (c *Client) Errors() listeners.Source[error] {
	if c.unusable() {
		return silent[error]()
	}
	return c.session.Errors()
}

// Report tells an error to the listeners of Errors, and logs it at warn with a message. It is for
// recipes whose work in the background fails. Of nil it tells nobody.
func (c *Client) Report(message string, err error) {
	if err != nil && !c.unusable() {
		c.session.Report(message, err)
	}
}

// silent is the source of a client that was never started: nothing comes from it.
func silent[E any]() listeners.Source[E] {
	h := new(listeners.Hub[E])
	h.Close()
	return h
}

// SessionID is the present session's id, 0 without one.
func (c *Client) SessionID() int64 {
	if c.unusable() {
		return 0
	}
	return c.session.ID()
}

// SessionTimeout is what the servers granted, 0 before the first connection.
func (c *Client) SessionTimeout() time.Duration {
	if c.unusable() {
		return 0
	}
	return c.session.Timeout()
}

// UsingNamespace is a client on the same session with another namespace; "" is
// none. A bad namespace is reported by every call of the new client.
func (c *Client) UsingNamespace(namespace string) *Client {
	if c.unusable() {
		return &Client{}
	}
	return &Client{base: c.inNamespace(namespace)}
}

// Conn returns go-zookeeper's connection, which the client uses itself, for calls
// that Client does not have. It has no namespace, retries or contexts, and
// Config.MaxRequest bounds its requests. Otherwise it behaves as go-zookeeper
// documents. It stays the same for the life of the client, across sessions. Do not
// close it.
//
// A client cannot take over a *zk.Conn made elsewhere, since it has to see a
// connection from its first byte. Hand this one to the older code instead. It is
// nil on a zero Client.
func (c *Client) Conn() *zk.Conn {
	if c.unusable() {
		return nil
	}
	return c.session.Transport().Raw()
}

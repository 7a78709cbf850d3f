package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/sasl"
	"github.com/paddock-zk/paddock/internal/test/faultnet"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/locks"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // unless the command line says another: most of what cases take is waiting
	goleak.VerifyTestMain(m, goleak.Cleanup(lookForMarks))
}

// backend is what a case may know of the servers.
type backend interface {
	// hosts are what clients connect to.
	hosts() string
	// dial is how.
	dial(ctx context.Context, network, addr string) (net.Conn, error)
	// watches lists the watched paths below a path, on all members.
	watches(t testing.TB, below string) []string
}

// mechanism is how all clients prove themselves, and encryption what they speak TLS with; nil
// for not at all.
var (
	mechanism  sasl.Mechanism
	encryption *tls.Config
)

// withoutSASL is for a case that is about other identities.
func withoutSASL(cfg *framework.Config) { cfg.SASL = nil }

// ofOthers are the cases withoutSASL.
var ofOthers = []string{"acl/digest", "acl/wrong-password", "lock/access-lists"}

// run runs every case but some on a server, one after another or several at once.
func run(t *testing.T, server string, b backend, atOnce bool, but ...string) {
	admin, err := framework.Connect(t.Context(), framework.Config{ConnectString: b.hosts(), DialContext: b.dial, SASL: mechanism, TLS: encryption})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, admin.Close()) })
	every(t, server, but, func(t *testing.T, name string, fn func(*env)) {
		if atOnce {
			t.Parallel()
		}
		conduct(t, b, admin, name, fn)
	})
}

// every calls do for every case but some, and prints how many passed on the server. The gates
// of CI look for that line.
func every(t *testing.T, server string, but []string, do func(t *testing.T, name string, fn func(*env))) {
	var passed atomic.Int32
	for _, c := range cases {
		if slices.Contains(but, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if !t.Failed() && !t.Skipped() {
					passed.Add(1)
				}
			}()
			do(t, c.name, c.fn)
		})
	}
	t.Cleanup(func() {
		_, _ = fmt.Fprintf(t.Output(), "%d cases passed on %s (%s)\n", passed.Load(), server, t.Name())
	})
}

// conduct runs a case below a node of its own.
func conduct(t *testing.T, b backend, admin *framework.Client, name string, fn func(*env)) {
	e := &env{T: t, b: b, admin: admin, chroot: fmt.Sprintf("/case-%d-%s", time.Now().UnixNano(), strings.ReplaceAll(name, "/", "-"))}
	_, err := admin.Create(t.Context(), e.chroot, nil, framework.Persistent)
	require.NoError(t, err)
	defer e.finish()
	fn(e)
}

// env is what a case works with.
type env struct {
	*testing.T
	b      backend
	admin  *framework.Client // sees everything, with full paths
	chroot string

	mu      sync.Mutex // guards the fields below
	clients []*client
}

// client is one client and its network.
type client struct {
	*framework.Client
	net  *faultnet.Net
	env  *env
	gone bool // closing it may fail
}

// sessionTimeout is what clients ask for, where a case does not need another.
const sessionTimeout = 4 * time.Second

// superPassword is that of the user whom no access list stops, and superDigest
// what servers keep of it.
const (
	superPassword = "secret"
	superDigest   = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="
)

// patience bounds each wait of a case.
const patience = 30 * time.Second

// client makes one, which is closed with the case.
func (e *env) client(change ...func(*framework.Config)) *client {
	e.Helper()
	c := e.start(change...)
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	require.NoError(e, c.BlockUntilConnected(ctx))
	return c
}

// start makes a client that need not be connected yet.
func (e *env) start(change ...func(*framework.Config)) *client {
	e.Helper()
	n := faultnet.New(e.b.dial)
	n.Secure(encryption, mechanism)
	cfg := framework.Config{ConnectString: e.b.hosts() + e.chroot, SessionTimeout: sessionTimeout, DialContext: n.DialContext, SASL: mechanism, TLS: encryption}
	for _, fn := range change {
		fn(&cfg)
	}
	if *marked {
		mark(&cfg)
	}
	fc, err := framework.Start(cfg)
	require.NoError(e, err)
	if *marked {
		fc.Errors().Listen(func(err error) { markedWitness.saw(err) })
	}
	c := &client{Client: fc, net: n, env: e}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clients = append(e.clients, c)
	return c
}

// finish closes the clients and looks what they have left.
func (e *env) finish() {
	for _, c := range e.clients {
		c.net.Thaw()
		c.net.Accept()
		err := c.Close()
		assert.True(e, err == nil || c.gone || e.endsLater(err), "close: %v", err)
		c.net.Close()
	}
	// A server answers the end of a session before it forgets its connection.
	kit.Eventually(e, "no watches left", func() error {
		if left := e.b.watches(e, e.chroot); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
	kit.Eventually(e, "nothing ephemeral left", func() error {
		if left := e.ephemerals(e.chroot); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	assert.NoError(e, e.admin.Delete(ctx, e.chroot, framework.AnyVersion, framework.Recursive(), framework.IfExists()))
}

// ephemerals lists those at and below a full path.
func (e *env) ephemerals(path string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	names, stat, err := e.admin.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	require.NoError(e, err)
	var all []string
	if stat.EphemeralOwner != 0 {
		all = append(all, path)
	}
	for _, name := range names {
		all = append(all, e.ephemerals(path+"/"+name)...)
	}
	return all
}

// children lists what is below a path of the case.
func (e *env) children(path string) []string {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	current(ctx, e, e.admin, e.chroot)
	names, _, err := e.admin.Children(ctx, e.chroot+path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	require.NoError(e, err)
	return names
}

// empties waits until nothing is below a path of the case, nor watched there.
func (e *env) empties(paths ...string) {
	e.Helper()
	for _, path := range paths {
		kit.Eventually(e, path+" is empty", func() error {
			if names := e.children(path); len(names) > 0 {
				return fmt.Errorf("%q", names)
			}
			if watched := e.b.watches(e, e.chroot+path); len(watched) > 0 {
				return fmt.Errorf("watched: %q", watched)
			}
			return nil
		})
	}
}

// refused waits so long for a lock that somebody else has. That a server takes
// longer to answer, which is told apart, is no refusal.
func (e *env) refused(lock locks.Lock, wait time.Duration) {
	e.Helper()
	kit.Eventually(e, "an answer in time", func() error {
		h, err := lock.TryAcquire(e.soon(), wait)
		if errors.Is(err, framework.ErrNotConnected) {
			return err
		}
		require.ErrorIs(e, err, locks.ErrNotAcquired)
		assert.Nil(e, h)
		return nil
	})
}

// within is a context for one step of a case.
func (e *env) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(e.Context(), d)
	e.Cleanup(cancel)
	return ctx
}

// soon is a context for a step that should not take long.
func (e *env) soon() context.Context { return e.within(patience) }

// current lets a client see what others have written.
func (c *client) current() *client {
	c.env.Helper()
	current(c.env.soon(), c.env, c.Client, "/")
	return c
}

// current is a write of a client's own: behind it nothing is missing, as behind
// a sync something may be.
func current(ctx context.Context, e *env, c *framework.Client, path string) {
	e.Helper()
	kit.Eventually(e, "an answer", func() error {
		tx := c.Transaction()
		tx.Check(path, framework.AnyVersion)
		_, err := tx.Commit(ctx)
		if errors.Is(err, framework.ErrNotConnected) || errors.Is(err, framework.ErrOutcomeUnknown) {
			return err // the case may just have cut the connection
		}
		require.NoError(e, err)
		return nil
	})
}

// expire ends the client's session on the servers. The client does not get in
// between: it would be welcome on another member for a moment.
func (c *client) expire() {
	c.env.Helper()
	c.net.Refuse()
	defer c.net.Accept()
	c.end(c.SessionID())
}

// end ends a session of the client's on the servers.
func (c *client) end(session int64) {
	c.env.Helper()
	if b, ok := c.env.b.(inKeeper); ok {
		require.NoError(c.env, b.expire(session))
		return
	}
	require.NoError(c.env, c.net.Expire(c.env.soon(), session))
}

// endsLater is whether a client could not end a session, as the servers do not take it up
// again after a lost connection.
func (e *env) endsLater(err error) bool {
	_, keeper := e.b.(inKeeper)
	return keeper && strings.Contains(err.Error(), "the servers do not take the session up again")
}

// awaitState waits until the client's states have shown one.
func (c *client) awaitState(sub *listeners.Subscription[listeners.State], want listeners.State) {
	c.env.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case s := <-sub.C:
			if s == want {
				return
			}
		case <-limit.C:
			require.FailNow(c.env, "no state", "want %v, is %v", want, c.State())
		}
	}
}

// fired waits until a rule has had its effect.
func (e *env) fired(r *faultnet.Rule) {
	e.Helper()
	select {
	case <-r.Fired:
	case <-time.After(patience):
		require.FailNow(e, "the fault did not happen")
	}
}

// event waits for a watch's event.
func (e *env) event(w *framework.Watch) framework.Event {
	e.Helper()
	select {
	case ev := <-w.C:
		return ev
	case <-time.After(patience):
		require.FailNow(e, "no event")
		return framework.Event{}
	}
}

// done waits for a channel to close.
func (e *env) done(ch <-chan struct{}, what string) {
	e.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		require.FailNow(e, "waited for nothing", what)
	}
}

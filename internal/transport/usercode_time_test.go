package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trap is a connection one of whose methods does what a test says, once it is set.
type trap struct {
	net.Conn
	method string
	set    *atomic.Bool
	spring func()
}

func (c trap) in(method string) {
	if c.method == method && c.set.Load() {
		c.spring()
	}
}

func (c trap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p) // what comes springs it, as the client is waiting here
	c.in("Read")
	return n, err
}
func (c trap) Write(p []byte) (int, error) { c.in("Write"); return c.Conn.Write(p) }
func (c trap) Close() error                { c.in("Close"); return c.Conn.Close() }
func (c trap) SetReadDeadline(t time.Time) error {
	c.in("SetReadDeadline")
	return c.Conn.SetReadDeadline(t)
}
func (c trap) SetWriteDeadline(t time.Time) error {
	c.in("SetWriteDeadline")
	return c.Conn.SetWriteDeadline(t)
}

// endings are how a function of the user's may end other than by returning.
var endings = map[string]func(){"panics": func() { panic("mine") }, "ends its goroutine": runtime.Goexit}

// sessions is a cache of TLS sessions, which TLS asks first of all.
type sessions func()

func (fn sessions) Get(string) (*tls.ClientSessionState, bool) { fn(); return nil, false }
func (fn sessions) Put(string, *tls.ClientSessionState)        { fn() }

// The dialer, what TLS calls and the look-up of names are the user's.
func TestFunctionsThatDoNotReturn(t *testing.T) {
	for how, end := range endings {
		for name, tc := range map[string]struct {
			set  func(cfg *Config, broken *atomic.Bool)
			want string
		}{
			"dialer": {func(cfg *Config, broken *atomic.Bool) {
				dial := cfg.Dial
				cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if broken.Load() {
						end()
					}
					return dial(ctx, network, addr)
				}
			}, "Config.DialContext"},
			"look-up": {func(cfg *Config, broken *atomic.Bool) {
				cfg.LookupHost = func(context.Context, string) ([]string, error) {
					if broken.Load() {
						end()
					}
					return []string{"10.0.0.1"}, nil
				}
			}, "Config.LookupHost"},
			"TLS": {func(cfg *Config, _ *atomic.Bool) {
				cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientSessionCache: sessions(end)}
			}, "Config.TLS"},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newScript(t, well)
					var broken atomic.Bool
					broken.Store(true)
					l, r := open(t, s, func(cfg *Config) { tc.set(cfg, &broken) })
					time.Sleep(time.Minute)
					var panicked *PanicError
					require.NotEmpty(t, r.failures())
					for _, err := range r.failures() {
						require.ErrorAs(t, err, &panicked)
						require.ErrorContains(t, err, tc.want)
						assert.NotEmpty(t, panicked.Stack)
					}
					broken.Store(false)
					if name != "TLS" { // the script has none
						r.await(t, "up", 1)
					}
					shut(t, l, s)
				})
			})
		}
	}
}

// A connection of the user's that does such things ends, and nothing else.
func TestConnectionsThatDoNotReturn(t *testing.T) {
	for how, end := range endings {
		for _, method := range []string{"Read", "Write", "Close", "SetReadDeadline", "SetWriteDeadline"} {
			for _, up := range []bool{false, true} {
				name := method + " " + how + ", in the handshake"
				if up {
					name = method + " " + how
				}
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newScript(t, well)
						var set atomic.Bool
						set.Store(!up)
						l, r := open(t, s, func(cfg *Config) {
							dial, first := cfg.Dial, true
							cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
								nc, err := dial(ctx, network, addr)
								if first && err == nil {
									nc = trap{nc, method, &set, end}
								}
								first = false
								return nc, err
							}
						})
						if up {
							r.await(t, "up", 1)
							set.Store(true)
							ask(r.current())
						}
						if method == "Close" {
							r.await(t, "up", 1)
							r.current().Kill(errors.New("test"))
							r.await(t, "up", 2)
						} else {
							time.Sleep(20 * time.Second)
							var panicked *PanicError
							require.NotEmpty(t, r.failures())
							require.ErrorAs(t, r.failures()[0], &panicked)
						}
						call := ask(r.current())
						require.NotNil(t, call)
						<-call.Done()
						assert.NoError(t, call.Err(), "the next connection works")
						set.Store(false)
						shut(t, l, s)
					})
				})
			}
		}
	}
}

// A connection that does not close is not waited for.
func TestConnectionThatDoesNotClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, well)
		var set atomic.Bool
		set.Store(true)
		l, r := open(t, s, func(cfg *Config) {
			dial := cfg.Dial
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				nc, err := dial(ctx, network, addr)
				return trap{nc, "Close", &set, func() { time.Sleep(time.Second) }}, err
			}
		})
		r.await(t, "up", 1)
		began := time.Now()
		r.current().Kill(errors.New("test"))
		assert.LessOrEqual(t, time.Since(began), 200*time.Millisecond)
		r.await(t, "up", 2)
		shut(t, l, s)
	})
}

// A dialer that does not end with its context holds up its own address only, and
// is not asked again before it has ended.
func TestDialerThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serving("good:1", well)
		hang, closed := make(chan struct{}), new(atomic.Int32)
		hung := 0
		l, r := open(t, s, func(cfg *Config) {
			cfg.Servers = []string{"bad:1", "good:1"}
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == "good:1" {
					return s.dial(ctx, network, addr)
				}
				hung++
				<-hang
				near, far := net.Pipe()
				_ = far.Close()
				set := new(atomic.Bool)
				set.Store(true)
				return trap{near, "Close", set, func() { closed.Add(1) }}, nil
			}
		})
		began := time.Now()
		r.await(t, "up", 1)
		assert.LessOrEqual(t, time.Since(began), 3*time.Second+slowEnd, "one ConnectTimeout, and a little")
		for i := range 5 {
			time.Sleep(time.Minute)
			r.current().Kill(errors.New("test"))
			r.await(t, "up", 2+i)
		}
		s.serving("good:1", nil)
		r.current().Kill(errors.New("test"))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, hung)
		close(hang)
		synctest.Wait()
		assert.Equal(t, int32(1), closed.Load(), "a connection that nobody waits for is closed")
		shut(t, l, s)
	})
}

// An address that cannot be asked for is nil.
func TestConnectionWithoutAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, well)
		l, r := open(t, s, func(cfg *Config) {
			dial := cfg.Dial
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				nc, err := dial(ctx, network, addr)
				return nowhere{nc}, err
			}
		})
		r.await(t, "up", 1)
		assert.Nil(t, r.current().LocalAddr())
		assert.Nil(t, r.current().RemoteAddr())
		shut(t, l, s)
	})
}

// nowhere is a connection whose methods for addresses panic.
type nowhere struct{ net.Conn }

func (nowhere) LocalAddr() net.Addr  { panic("mine") }
func (nowhere) RemoteAddr() net.Addr { panic("mine") }

func TestDialerWithoutAResult(t *testing.T) {
	for name, none := range map[string]net.Conn{"nil": nil, "nil in an interface": (*net.TCPConn)(nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t)
				l, r := open(t, s, func(cfg *Config) {
					cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return none, nil }
				})
				r.await(t, "failed", 1)
				assert.EqualError(t, r.failures()[0], "Config.DialContext returned neither a connection nor an error")
				shut(t, l, s)
			})
		})
	}
}

// The search for a server with a majority dials as well.
func TestSearchWithADialerThatDoesNotReturn(t *testing.T) {
	for how, end := range endings {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t)
				s.serving("a:1", readOnlyServer("ro"))
				s.serving("b:1", readOnlyServer("rw"))
				var broken, set atomic.Bool
				set.Store(true)
				l, r := open(t, s, func(cfg *Config) {
					cfg.ReadOnly, cfg.Servers = true, []string{"a:1"}
					dial, n := cfg.Dial, 0
					cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
						nc, err := dial(ctx, network, addr)
						if broken.Load() {
							if n++; n%2 == 0 {
								end()
							}
							nc = trap{nc, "Read", &set, end}
						}
						return nc, err
					}
				})
				r.await(t, "up", 1)
				broken.Store(true)
				l.SetServers([]string{"b:1"})
				time.Sleep(time.Minute)
				assert.Equal(t, []string{"up"}, r.trace(), "they are passed over")
				broken.Store(false)
				r.await(t, "up", 2)
				assert.False(t, r.current().ReadOnly())
				shut(t, l, s)
			})
		})
	}
}

package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/transport/random"
)

// well serves a session.
func well(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) }

// mutely accepts a connection and says nothing.
func mutely(p *peer) {
	for p.frame() != nil {
	}
}

// names is a resolver with a table of its own.
type names struct {
	mu    sync.Mutex // guards the fields below
	table map[string][]string
	slow  map[string]time.Duration
	asked []string
}

func (n *names) lookUp(ctx context.Context, host string) ([]string, error) {
	n.mu.Lock()
	n.asked = append(n.asked, host)
	addrs, ok := n.table[host]
	slow := n.slow[host]
	n.mu.Unlock()
	if !sleep(ctx, slow) {
		return nil, ctx.Err()
	}
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

func (n *names) set(host string, addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.table[host] = addrs
}

func (n *names) count(host string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.asked {
		if h == host {
			count++
		}
	}
	return count
}

// resolving is a configuration of servers that are names.
func resolving(n *names, servers ...string) func(*Config) {
	return func(cfg *Config) { cfg.Servers, cfg.LookupHost = servers, n.lookUp }
}

// A server that accepts and says nothing costs one ConnectTimeout, and then the
// next address is tried, of the same name or of another.
func TestEachAddressOfANameIsTried(t *testing.T) {
	table := map[string][]string{"zk": {"10.0.0.1", "10.0.0.2", "10.0.0.3", "fe80::1%eth0"}, "zk1": {"10.0.0.1"}, "zk2": {"10.0.0.2", "10.0.0.3"}, "zk3": {"fe80::1%eth0"}}
	for name, servers := range map[string][]string{
		"one name": {"zk:2181"}, "three names": {"zk1:2181", "zk2:2181", "zk3:2181"}, "a name twice": {"zk:2181", "zk:2181"},
		"names that overlap": {"zk:2181", "zk2:2181"}, "beside a name that does not resolve": {"zk:2181", "nowhere:2181"},
		"no names": {"10.0.0.1:2181", "10.0.0.2:2181", "10.0.0.3:2181", "[fe80::1%eth0]:2181"},
	} {
		t.Run(name, func(t *testing.T) {
			firsts := make(map[string]int)
			for seed := range uint64(20) {
				synctest.Test(t, func(t *testing.T) {
					s := newScript(t)
					s.serving("10.0.0.1:2181", mutely)
					s.serving("10.0.0.2:2181", mutely)
					s.serving("[fe80::1%eth0]:2181", well)
					n := &names{table: table}
					began := time.Now()
					l, r := open(t, s, resolving(n, servers...), func(cfg *Config) { cfg.Random = random.Seeded(seed) })
					r.await(t, "up", 1)
					assert.LessOrEqual(t, time.Since(began), 2*3*time.Second, "a ConnectTimeout for each silent server")
					dialled := s.places()
					slices.Sort(dialled)
					assert.Equal(t, slices.Compact(slices.Clone(dialled)), dialled, "no address is tried twice")
					firsts[s.places()[0]]++
					shut(t, l, s)
				})
			}
			assert.Len(t, firsts, 4, "each is the first for somebody: %v", firsts)
		})
	}
}

// Server and address are both named.
func TestErrorsNameServerAndAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serving("10.0.0.1:2181", well)
		n := &names{table: map[string][]string{"zk": {"10.0.0.1"}, "down": {"::1"}, "none": {""}}}
		l, r := open(t, s, resolving(n, "down:2181", "none:2181", "nowhere:2181", "192.0.2.1:2181"))
		time.Sleep(10 * time.Millisecond)
		l.SetServers([]string{"zk:2181"})
		r.await(t, "up", 1)
		assert.Equal(t, "zk:2181 (10.0.0.1:2181)", r.current().Addr())
		told := r.tellings()
		assert.Contains(t, told, "down:2181 ([::1]:2181): nobody listens")
		assert.Contains(t, told, "none:2181: name not resolved: it has no address")
		assert.Contains(t, told, "nowhere:2181: name not resolved: lookup nowhere: no such host")
		assert.Contains(t, told, "192.0.2.1:2181: nobody listens", "what is an address is not looked up")
		assert.Zero(t, n.count("192.0.2.1"))
		shut(t, l, s)
	})
}

// Without a look-up of names, the dialer gets them as they are written.
func TestNamesForTheDialer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, well)
		l, r := open(t, s, func(cfg *Config) { cfg.Servers = []string{"behind.a.proxy:2181"} })
		r.await(t, "up", 1)
		assert.Equal(t, []string{"behind.a.proxy:2181"}, s.places())
		assert.Equal(t, "behind.a.proxy:2181", r.current().Addr())
		shut(t, l, s)
	})
}

func TestNamesAreLookedUpInEachCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		n := &names{table: map[string][]string{"zk": {"10.0.0.1", "10.0.0.2"}}}
		l, r := open(t, s, resolving(n, "zk:2181"))
		time.Sleep(time.Minute)
		dialled, asked := len(s.places()), n.count("zk")
		assert.InDelta(t, 2*asked, dialled, 2, "once for all its addresses")

		n.set("zk", "10.0.0.9")
		s.serving("10.0.0.9:2181", well)
		r.await(t, "up", 1)
		n.set("zk", "10.0.0.10")
		s.serving("10.0.0.9:2181", mutely)
		s.serving("10.0.0.10:2181", well)
		time.Sleep(time.Hour)
		assert.Equal(t, 1, n.count("zk")-asked, "not while connected")
		began := time.Now()
		r.current().Kill(errors.New("test"))
		r.await(t, "up", 2)
		assert.Zero(t, time.Since(began), "the address that it has now, at once")
		assert.Equal(t, "10.0.0.10:2181", s.places()[len(s.places())-1])
		shut(t, l, s)
	})
}

// A resolver that is slow for one name, or never answers, leaves all others the
// time that they have.
func TestSlowLookups(t *testing.T) {
	for name, slow := range map[string]time.Duration{"slow": 2 * time.Second, "too slow": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t)
				s.serving("10.0.0.1:2181", well)
				n := &names{table: map[string][]string{"good": {"10.0.0.1"}, "slow": {"10.0.0.2"}}, slow: map[string]time.Duration{"slow": slow}}
				began := time.Now()
				l, r := open(t, s, resolving(n, "slow:2181", "good:2181"))
				r.await(t, "up", 1)
				assert.LessOrEqual(t, time.Since(began), 100*time.Millisecond)

				// The good one goes away and comes back while the slow one is looked up.
				s.serving("10.0.0.1:2181", nil)
				time.Sleep(time.Minute)
				r.current().Kill(errors.New("test"))
				time.Sleep(1500 * time.Millisecond)
				s.serving("10.0.0.1:2181", well)
				began = time.Now()
				r.await(t, "up", 2)
				assert.LessOrEqual(t, time.Since(began), 2*longestPause+100*time.Millisecond, "a pause before each of two")
				shut(t, l, s)
			})
		})
	}
}

// What a slow look-up finds is tried as soon as it is known, if it was never tried before.
func TestAddressThatIsKnownLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serving("10.0.0.2:2181", well)
		n := &names{table: map[string][]string{"down": {"10.0.0.1"}, "slow": {"10.0.0.2"}}, slow: map[string]time.Duration{"slow": 1234 * time.Millisecond}}
		began := time.Now()
		l, r := open(t, s, resolving(n, "slow:2181", "down:2181"))
		r.await(t, "up", 1)
		assert.Equal(t, 1234*time.Millisecond, time.Since(began))
		assert.Equal(t, 1, n.count("slow"), "a name has one look-up at a time")
		shut(t, l, s)
	})
}

// An address that was tried before and is known late again is tried after a pause, like those
// that are known in time.
func TestDialsOfAddressesThatAreKnownLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		slow := map[string]time.Duration{"b": 150 * time.Millisecond, "c": 400 * time.Millisecond}
		n := &names{table: map[string][]string{"a": {"10.0.0.1"}, "b": {"10.0.0.2"}, "c": {"10.0.0.3"}}, slow: slow}
		l, _ := open(t, s, resolving(n, "a:2181", "b:2181", "c:2181"))
		time.Sleep(time.Minute)
		synctest.Wait()
		dials := s.dials()
		least, most := Pause(100, 9*time.Second, 0, false)
		tried := make(map[string]int)
		for i, place := range s.places() {
			if dials[i].Sub(dials[0]) < 20*time.Second {
				continue
			}
			tried[place]++
			assert.GreaterOrEqual(t, dials[i].Sub(dials[i-1]), least)
			assert.LessOrEqual(t, dials[i].Sub(dials[i-1]), most+slow["c"])
		}
		assert.Len(t, tried, 3)
		for place, times := range tried {
			assert.InDelta(t, tried["10.0.0.1:2181"], times, 2, place)
		}
		shut(t, l, s)
	})
}

// An address that kept us waiting is tried behind all others, though it was tried
// longer ago.
func TestSilentAddressComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		var silent []string
		for i := range 4 {
			addr := fmt.Sprintf("10.0.0.%d:2181", i)
			s.serving(addr, mutely)
			silent = append(silent, addr)
		}
		s.serving("10.0.0.9:2181", well)
		n := &names{table: map[string][]string{"zk": {"10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9"}}}
		l, r := open(t, s, resolving(n, "zk:2181"), func(cfg *Config) {
			for i := uint64(0); ; i++ { // the good one comes last
				h := newHosts(Config{Random: random.Seeded(i)})
				for _, addr := range append(silent, "10.0.0.9:2181") {
					h.addLocked(target{"zk:2181", addr})
				}
				if slices.MaxFunc(h.untried, h.compareLocked).addr == "10.0.0.9:2181" {
					cfg.Random = random.Seeded(i)
					return
				}
			}
		})
		r.await(t, "up", 1)
		require.Len(t, s.places(), 5)
		for i := range 3 {
			time.Sleep(time.Minute)
			began := time.Now()
			r.current().Kill(errors.New("reset"))
			r.await(t, "up", 2+i)
			assert.Zero(t, time.Since(began))
		}

		// Once it has been silent itself it is the last.
		s.serving("10.0.0.9:2181", mutely)
		r.current().Kill(fmt.Errorf("%w: test", errNoAnswer))
		for _, addr := range silent {
			s.serving(addr, well)
		}
		r.await(t, "up", 5)
		assert.NotContains(t, r.current().Addr(), "10.0.0.9")
		shut(t, l, s)
	})
}

func TestSetServersEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		s.serving("10.0.0.1:2181", well)
		n := &names{table: map[string][]string{"good": {"10.0.0.1"}, "bad": nil}, slow: map[string]time.Duration{"bad": time.Hour}}
		l, r := open(t, s, resolving(n, "bad:2181"))
		time.Sleep(time.Second)
		began := time.Now()
		l.SetServers([]string{"good:2181"})
		r.await(t, "up", 1)
		assert.Zero(t, time.Since(began))
		assert.Equal(t, []string{"good:2181"}, l.Servers())
		shut(t, l, s)
	})
}

package transport

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/wire"
)

func TestReadOnlyServerIsLeftForAWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readOnly := func(p *peer) {
			p.asked()
			p.send(&wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: true})
			p.answer(1)
		}
		var asked atomic.Int32
		isro := func(p *peer) {
			word := make([]byte, 4)
			_, _ = p.in.Read(word)
			assert.Equal(t, "isro", string(word))
			if asked.Add(1) < 3 {
				_, _ = p.Write([]byte("ro"))
				return
			}
			_, _ = p.Write([]byte("rw"))
		}
		s := newScript(t, readOnly, isro, isro, isro, func(p *peer) { p.welcome(session1, 9*time.Second); p.answer(1) })
		l, r := open(t, s, func(c *Config) { c.ReadOnly, c.Servers = true, []string{"a:1", "b:1"} })
		r.await(t, "up", 1)
		assert.True(t, r.current().ReadOnly())
		first := r.current().Addr()
		r.await(t, "up", 2)
		assert.False(t, r.current().ReadOnly())
		assert.NotEqual(t, first, r.current().Addr())
		assert.ErrorIs(t, r.failures()[0], errFoundWriter)
		shut(t, l, s)
	})
}

// A server without a majority is left for one with, also behind the same name.
func TestWriterBehindTheSameName(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"one name":  resolving(&names{table: map[string][]string{"zk": {"10.0.0.1", "10.0.0.2"}}}, "zk:2181"),
		"addresses": func(cfg *Config) { cfg.Servers = []string{"10.0.0.1:2181", "10.0.0.2:2181"} },
		"a balancer, for the dialer": func(cfg *Config) {
			cfg.Servers = []string{"zk:2181"}
			dial, n := cfg.Dial, 0
			cfg.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				n++
				return dial(ctx, network, fmt.Sprintf("10.0.0.%d:2181", 1+(n-1)/2%2))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t)
				s.serving("10.0.0.1:2181", readOnlyServer("ro"))
				s.serving("10.0.0.2:2181", readOnlyServer("ro"))
				l, r := open(t, s, change, func(cfg *Config) { cfg.ReadOnly = true })
				r.await(t, "up", 1)
				assert.True(t, r.current().ReadOnly())
				time.Sleep(time.Minute)
				s.serving("10.0.0.1:2181", readOnlyServer("rw"))
				s.serving("10.0.0.2:2181", readOnlyServer("rw"))
				r.await(t, "up", 2)
				assert.False(t, r.current().ReadOnly())
				assert.ErrorIs(t, r.failures()[0], errFoundWriter)
				shut(t, l, s)
			})
		})
	}
}

// readOnlyServer answers isro with the word given, and lets clients in
// accordingly.
func readOnlyServer(word string) func(*peer) {
	return func(p *peer) {
		if b, err := p.in.Peek(4); err != nil || string(b) == "isro" {
			_, _ = p.Write([]byte(word))
			return
		}
		p.asked()
		p.send(&wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: word == "ro"})
		p.answer(1)
	}
}

// The search for a server with a majority goes on as DNS takes addresses away that it has not tried yet.
func TestAddressesGoDuringTheSearchForAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t)
		old := []string{"10.0.0.1", "10.0.0.2", "10.0.0.4"}
		for _, addr := range old {
			s.serving(addr+":2181", func(p *peer) {
				p.asked()
				p.send(&wire.ConnectResponse{Timeout: 9000, SessionID: session1, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: true})
				p.answer(1)
			})
		}
		s.serving("10.0.0.3:2181", func(p *peer) {
			if word, err := p.in.Peek(4); err == nil && string(word) == "isro" {
				_, _ = p.Write([]byte("rw"))
				return
			}
			p.welcome(session1, 9*time.Second)
			p.answer(1)
		})
		n := &names{table: map[string][]string{"zk": old}}
		l, r := open(t, s, resolving(n, "zk:2181"), func(cfg *Config) { cfg.ReadOnly = true })
		r.await(t, "up", 1)
		n.set("zk", "10.0.0.3")
		r.await(t, "up", 2)
		assert.Contains(t, r.current().Addr(), "10.0.0.3")
		shut(t, l, s)
	})
}

package transport

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// A parent counts the contexts that hang on it.
type parent struct {
	context.Context
	done     chan struct{}
	children atomic.Int32
}

func (l *parent) Done() <-chan struct{} { return l.done }

// AfterFunc is what package context asks a parent that is none of its own for.
func (l *parent) AfterFunc(func()) (stop func() bool) {
	l.children.Add(1)
	return func() bool { l.children.Add(-1); return true }
}

// Handshakes of TLS leave nothing with the client, which may live for years.
func TestHandshakesOfTLSLeaveNothing(t *testing.T) {
	cfg := Config{Servers: []string{"a:1"}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Logger: zap.NewNop()}
	cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		return ours, theirs.Close()
	}
	l, of := New(cfg, nil), &parent{Context: context.Background(), done: make(chan struct{})}
	for range 3 {
		_, err := l.open(of, target{server: "a:1", addr: "a:1"}, newPatience(time.Second, 0))
		require.Error(t, err)
	}
	assert.Zero(t, of.children.Load())
}

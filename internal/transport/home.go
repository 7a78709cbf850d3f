package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strings"
	"time"
)

var errGoingHome = errors.New("a preferred server serves again")

const (
	// homeEvery is how often a client looks for a preferred server on average. They all
	// look at times of their own, and so come home one by one.
	homeEvery = 30 * time.Second
	// A client that has found one waits for a moment without requests, so often at most.
	idleTries = 100
	idleEvery = 10 * time.Millisecond
	mostSrvr  = 4 << 10 // bytes of the answer
)

// near is whether an address, or the name that it was looked up for, is preferred.
func (h *hosts) near(t target) bool {
	return slices.ContainsFunc(h.home, func(pattern string) bool {
		return matches(pattern, t.server) || matches(pattern, t.addr)
	})
}

func matches(pattern, hostPort string) bool {
	host, _, _ := net.SplitHostPort(hostPort)
	ok, _ := path.Match(pattern, host) // patterns are checked before they come here
	return ok
}

// seekHome looks for a preferred server while c, which leads to another one, is up. Once
// there is one it ends c, in a moment in which the session holds nothing and no request is
// on its way. So nobody notices more than a short outage.
func (l *Transport) seekHome(c *Conn) {
	for sleep(c.life, homeEvery/2+l.hosts.random.UpTo(homeEvery)) {
		for _, t := range l.hosts.targets(c.life) {
			if !l.hosts.near(t) || l.cfg.Holding() || !l.serves(c.life, t) {
				continue
			}
			l.hosts.prefer(t)
			for range idleTries {
				if !l.cfg.Holding() && c.end(fmt.Errorf("%w: %v", errGoingHome, t), true) {
					return
				}
				if !sleep(c.life, idleEvery) {
					return
				}
			}
			break
		}
	}
}

// serves asks a server by the four-letter word srvr, which servers answer by default,
// whether it serves and has a majority.
func (l *Transport) serves(ctx context.Context, t target) bool {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.ConnectTimeout)
	defer cancel()
	nc, err := l.open(ctx, t)
	if err != nil {
		return false
	}
	defer func() { _ = nc.Close() }()
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })()
	if _, err := nc.Write([]byte("srvr")); err != nil {
		return false
	}
	answer, _ := io.ReadAll(io.LimitReader(nc, mostSrvr)) // a server may reset the connection behind it
	_, mode, found := strings.Cut(string(answer), "\nMode: ")
	return found && !strings.HasPrefix(mode, "read-only")
}

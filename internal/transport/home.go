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

	"go.uber.org/zap"
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
	// mostInVain bounds how seldom it looks: each move in vain doubles the time up to then.
	mostInVain = 4
)

// near is whether an address, or the name that it was looked up for, is preferred.
func (h *hosts) near(t target) bool {
	return slices.ContainsFunc(h.cfg.Prefer, func(pattern string) bool {
		return matches(pattern, t.server) || matches(pattern, t.addr)
	})
}

func matches(pattern, hostPort string) bool {
	host, _, _ := net.SplitHostPort(hostPort)
	ok, _ := path.Match(strings.ToLower(pattern), strings.ToLower(host)) // patterns are checked before they come here
	return ok
}

// seekHome looks for a preferred server while c, which leads to another one, is up. Once
// there is one it ends c, in a moment in which the session holds nothing and no request is
// on its way. So nobody notices more than a short outage. After each move that did not lead
// home, it looks half as often: a server may tell that it serves and not let us in.
func (l *Transport) seekHome(c *Conn) {
	every, told := homeEvery<<l.hosts.movesInVain(), false
	for sleep(c.life, every/2+l.cfg.Random.UpTo(every)) {
		servers := l.hosts.targets(c.life)
		if !told && len(servers) > 0 && !slices.ContainsFunc(servers, l.hosts.near) &&
			// One whose name cannot be looked up now may be preferred all the same.
			!slices.ContainsFunc(l.Servers(), func(s string) bool { return l.hosts.near(target{server: s}) }) {
			told = true
			l.cfg.Logger.Warn("none of the servers matches Config.Prefer", zap.Strings("prefer", l.cfg.Prefer), zap.Stringers("servers", servers))
		}
		l.cfg.Random.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
		for _, t := range servers {
			if t.sameServer(c.target) || !l.hosts.near(t) || !l.serves(c.life, t) {
				continue
			}
			l.hosts.prefer(t)
			for range idleTries {
				if l.cfg.Holding() <= 0 && c.end(fmt.Errorf("%w: %v", errGoingHome, t), true) {
					return
				}
				if !sleep(c.life, idleEvery) {
					return
				}
			}
			l.hosts.prefer(target{})
			break
		}
	}
}

// serves asks a server by the four-letter word srvr, which servers answer by default,
// whether it serves and has a majority.
func (l *Transport) serves(ctx context.Context, t target) bool {
	_, mode, found := strings.Cut(l.ask(ctx, t, "srvr", mostSrvr), "\nMode: ")
	return found && !strings.HasPrefix(mode, "read-only")
}

// ask asks a server a four-letter word. It returns what has come of the answer, up to that
// many bytes: a server may reset the connection behind it.
func (l *Transport) ask(ctx context.Context, t target, word string, most int64) string {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.ConnectTimeout)
	defer cancel()
	nc, err := l.open(ctx, t, newPatience(l.cfg.ConnectTimeout, 0))
	if err != nil {
		return ""
	}
	defer func() { _ = nc.Close() }()
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })()
	if _, err := io.WriteString(nc, word); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(io.LimitReader(nc, most))
	return string(answer)
}

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

var errFoundWriter = errors.New("another server has a majority")

const (
	firstSearch = 100 * time.Millisecond
	mostSearch  = time.Minute
)

// seekWriter looks for a server that has a majority while c, which has none,
// is up, and ends c when it has found one.
//
// Source: ClientCnxn.pingRwServer; the pauses are the same.
func (l *Transport) seekWriter(c *Conn) {
	for pause := firstSearch; ; pause = min(2*pause, mostSearch) {
		if !sleep(c.life, pause) {
			return
		}
		for _, t := range l.hosts.targets(c.life) {
			// A name that is dialed as it is may lead to another server each time.
			if t.addr == c.target.addr && isAddress(t.addr) {
				continue
			}
			if l.isWriter(c.life, t) {
				l.hosts.prefer(t)
				c.Kill(fmt.Errorf("%w: %v", errFoundWriter, t))
				return
			}
		}
	}
}

// isWriter asks a server the four-letter word isro.
func (l *Transport) isWriter(ctx context.Context, t target) bool {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.ConnectTimeout)
	defer cancel()
	nc, err := l.open(ctx, t)
	if err != nil {
		return false
	}
	defer func() { _ = nc.Close() }()
	return askIsRO(ctx, nc) == "rw"
}

func askIsRO(ctx context.Context, nc net.Conn) string {
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	if _, err := nc.Write([]byte("isro")); err != nil {
		return ""
	}
	answer := make([]byte, 2)
	if _, err := io.ReadFull(nc, answer); err != nil {
		return ""
	}
	return string(answer)
}

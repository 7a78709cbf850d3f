package transport

import (
	"errors"
	"fmt"
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
			if t.sameServer(c.target) {
				continue
			}
			if l.ask(c.life, t, "isro", 2) == "rw" {
				l.hosts.prefer(t)
				c.Kill(fmt.Errorf("%w: %v", errFoundWriter, t))
				return
			}
		}
	}
}

package transport

import (
	"net"
	"sync/atomic"
	"time"
)

// patience is how long a client waits for a server that it tries: for ConnectTimeout, and anew
// with each step of the handshake that is answered, up to twice that in all. A silent server is
// left soon, as another one may answer. One at which a whole fleet arrives answers each step
// late: whoever left it and came again would have it begin anew. If all do, nobody gets in. So each
// attempt in vain of that kind but the first makes the next one longer by half, up to three times
// as long. After the first a session may be left to lose by waiting for a silent server.
type patience struct {
	each       time.Duration
	ends, most time.Time
	begun      atomic.Bool // the server has said something
}

// newPatience is that of the next attempt, after so many that a server had begun to answer and
// not ended in time.
func newPatience(each time.Duration, inVain int32) *patience {
	most := 3 * each
	for range min(inVain-1, 3) {
		each = min(each*3/2, most)
	}
	now := time.Now()
	return &patience{each: each, ends: now.Add(each), most: now.Add(2 * each)}
}

// heard is told that the server has said something.
func (p *patience) heard() {
	p.begun.Store(true)
	if p.ends = time.Now().Add(p.each); p.ends.After(p.most) {
		p.ends = p.most
	}
}

// listened is a connection of which heard is told what it reads, if it is not nil.
type listened struct {
	net.Conn
	heard func()
}

// Read implements net.Conn.
func (l *listened) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 && l.heard != nil {
		l.heard()
	}
	return n, err
}

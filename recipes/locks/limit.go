package locks

import (
	"context"
	"time"

	"github.com/paddock-zk/paddock/internal/session"
)

// limit is how long an acquisition may wait.
type limit struct {
	bounded bool
	wait    time.Duration
}

var noLimit = limit{}

// once is to ask and not to queue.
func (l limit) once() bool { return l.bounded && l.wait <= 0 }

// begin starts the clock. A caller that does not want to wait for a lock gets an error at
// once if there is no connection. The time to ask is limited to how long a server may be
// silent.
func (l limit) begin(ctx context.Context, s *session.Session, lock string) (context.Context, context.CancelFunc, error) {
	switch {
	case !l.bounded:
		return ctx, func() {}, nil
	case !l.once():
		limited, cancel := context.WithTimeout(ctx, l.wait)
		return limited, cancel, nil
	case !s.Writable():
		return nil, nil, &WaitError{Lock: lock, Err: s.NotConnected("")}
	}
	limited, cancel := context.WithTimeout(ctx, s.Timeout()*2/3)
	return limited, cancel, nil
}

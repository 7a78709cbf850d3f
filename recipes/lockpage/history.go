package lockpage

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework/monitor"
)

// LongWait is how long a wait has to be for a History to remember it.
const LongWait = 10 * time.Second

// remembered is how many losses and how many waits a History remembers.
const remembered = 20

// History remembers the last 20 losses of a client and its last 20 long waits, which have
// ended. It is a tracer: give it to the client, beside others by monitor.Join, and to the
// page with Remember. The zero value is ready. Do not copy it after first use.
type History struct {
	monitor.Nothing

	mu     sync.Mutex // guards the fields below
	losses []event    // the latest last
	waits  []event
}

// event is something that a History remembers.
type event struct {
	At      time.Time
	Lasted  time.Duration
	Lock    monitor.Lock
	Outcome monitor.Outcome
	Err     error // tells more once the client knows more, so it stays an error until it is shown
}

// End implements monitor.Tracer.
func (h *History) End(_ context.Context, op monitor.Operation, result monitor.Result) {
	one := event{result.Ended, result.Ended.Sub(op.Began), result.Lock, result.Outcome, result.Err}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case op.Kind == monitor.Hold && result.Outcome == monitor.Lost:
		h.losses = keep(h.losses, one)
	case op.Kind == monitor.Acquire && one.Lasted >= LongWait && !isElection(op.Lock.Kind):
		h.waits = keep(h.waits, one)
	}
}

// isElection is whether it is normal to wait for long.
func isElection(kind string) bool { return kind == monitor.Latch || kind == monitor.Selector }

func keep(all []event, one event) []event {
	if len(all) == remembered {
		all = slices.Delete(all, 0, 1)
	}
	return append(all, one)
}

// latest are copies, the latest first.
func (h *History) latest() (losses, waits []event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	losses, waits = slices.Clone(h.losses), slices.Clone(h.waits)
	slices.Reverse(losses)
	slices.Reverse(waits)
	return losses, waits
}

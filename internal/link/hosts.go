package link

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/internal/chance"
)

// hosts is the order in which servers are tried, and the pauses between the
// tries. It is go-zookeeper's HostProvider. Names stay names: the dialer
// resolves them each time, so that one which does not resolve, or whose
// address has changed, harms nobody else, and so that TLS can verify them.
//
// After the loss of a connection that had lasted, each server is tried at
// once. From the second round on there are pauses, doubling with each round.
type hosts struct {
	chance *chance.Source

	mu      sync.Mutex // guards the fields below
	servers []string
	next    int
	tries   int // since a connection lasted
	done    bool
}

const (
	firstPause = 50 * time.Millisecond
	mostPause  = time.Second
	// lasting is how long a connection must have been up to be replaced at once:
	// a server that accepts and drops everybody must not be asked in a tight loop.
	lasting = time.Second
)

func newHosts(servers []string, by *chance.Source) *hosts {
	shuffled := append([]string(nil), servers...)
	by.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return &hosts{chance: by, servers: shuffled}
}

// Init is go-zookeeper's. Its servers are a placeholder.
func (h *hosts) Init([]string) error { return nil }

// Len is go-zookeeper's.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next is go-zookeeper's. The second result makes go-zookeeper fail what waits
// on the raw connection with zk.ErrNoServer and pause for a second, so it is
// true once our own pauses have become as long.
func (h *hosts) Next() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server := h.servers[h.next%len(h.servers)]
	h.next++
	return server, !h.done && h.atFirstLocked() && h.pauseLocked() >= mostPause
}

// Connected is go-zookeeper's.
func (h *hosts) Connected() {}

// begin counts a try and returns how long to wait before it.
func (h *hosts) begin() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	var pause time.Duration
	if p := h.pauseLocked(); h.atFirstLocked() && p < mostPause {
		pause = p/2 + h.chance.Below(p/2+1)
	}
	h.tries++
	return pause
}

func (h *hosts) atFirstLocked() bool { return h.tries%len(h.servers) == 0 }

// pauseLocked is the pause before the present round.
func (h *hosts) pauseLocked() time.Duration {
	round := h.tries / len(h.servers)
	if round == 0 {
		return 0
	}
	return min(mostPause, firstPause<<min(round-1, 10))
}

// ended is told how a connection was that has been up: for how long, and
// whether the server has answered anything. A good one is replaced at once, one
// that answered and ended soon after the first pause.
func (h *hosts) ended(upFor time.Duration, answered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case upFor >= lasting:
		h.tries = 0
	case answered:
		h.tries = min(h.tries, len(h.servers))
	}
}

// stop ends the pauses of go-zookeeper.
func (h *hosts) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = true
}

// others are all servers but one.
func (h *hosts) others(addr string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var others []string
	for _, s := range h.servers {
		if s != addr {
			others = append(others, s)
		}
	}
	return others
}

// all are all servers.
func (h *hosts) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.servers)
}

// replace makes others the servers, if they are others. The connection there is
// stays; they count from the next one on.
func (h *hosts) replace(servers []string) {
	others := newHosts(servers, h.chance).servers
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(slices.Sorted(slices.Values(h.servers)), slices.Sorted(slices.Values(others))) {
		h.servers, h.next, h.tries = others, 0, 0
	}
}

// prefer makes a server the next one.
func (h *hosts) prefer(addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.servers, addr); i >= 0 {
		h.next = i
	}
}

// sleep waits for d and reports whether ctx has not ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

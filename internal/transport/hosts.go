package transport

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// hosts is the order in which servers are tried, and the pauses between the
// tries. It is go-zookeeper's HostProvider.
//
// Servers are tried in cycles. Each cycle looks up all names anew (lookup.go)
// and tries every address once. Within the first cycle there are no pauses. Within the
// second one and all further ones there is a pause before each address. It doubles
// from cycle to cycle (pause.go). An address that a slow look-up finds when its cycle has
// ended has a pause of its own too, unless it was never tried or the cycle is the first.
// The loss of a connection that has lasted begins anew with a first cycle: after a
// pause if the other side has ended it, as it may have ended many, and else at once.
//
// Servers that were learned may have moved. So all cycles but the first also try those that
// the client began with.
//
// The address that was tried longest ago comes first. Those that kept us waiting
// when they were last tried come behind all others, as each can cost a
// ConnectTimeout or two. Among the others, preferred ones come first (home.go).
type hosts struct {
	cfg     Config
	lookUp  func(server string, lk *lookup) // begins a look-up, which ends in found; nil if names are dialed
	rawUsed atomic.Bool                     // Transport.Raw was called

	mu        sync.Mutex    // guards the fields below
	timeout   time.Duration // of the session, or a shorter time after which it is given up
	most      time.Duration // of timeout
	servers   []string
	first     []string               // what there was before others were learned: names that may lead to servers again
	lookups   map[string]*lookup     // those that have not ended, by server
	history   map[target]*dialResult // of the addresses that are known
	tries     uint64                 // so far
	cycle     int                    // how many have begun since a connection lasted
	going     bool                   // a cycle has begun and not ended
	due       time.Time              // of the next cycle, or the next address
	owed      bool                   // a pause has to come before the next address of the cycle
	gathering time.Time              // until when the cycle waits for names, to choose among all addresses
	tried     bool                   // something was tried in this cycle
	untried   []target               // of this cycle
	chosen    *target                // what go-zookeeper is to dial next
	atOnce    *target                // what comes next, without a pause
	againAt   time.Time              // when atOnce was last set
	preferred target                 // what comes first in its cycle
	inVain    int                    // moves home since we were there last, see home.go
	misses    []miss                 // that nobody has been told of yet
	flushedAt time.Time              // when Next last had go-zookeeper fail what waits
	changed   chan struct{}          // closed and replaced when a wait in choose may be over
	done      bool
}

// dialResult is what came of trying an address.
type dialResult struct {
	rank   time.Duration // drawn at random, for the order of what was never tried
	tried  uint64        // which try it was, 0 for none
	silent bool          // the last try ended in waiting for an answer
}

// miss is a server that could not even be dialed.
type miss struct {
	server string
	err    error
}

const (
	// lasting is how long a connection must have been up to be replaced at once:
	// a server that accepts and drops everybody must not be asked in a tight loop.
	lasting = time.Second
	// cyclesOfShort bounds the pauses between connections that do not last.
	cyclesOfShort = 3
	// mostGathering is how long addresses that are known wait for names that are
	// still being looked up.
	mostGathering = 100 * time.Millisecond
	// flushEvery is how often at most go-zookeeper may pause, for a second, to
	// fail requests on the raw connection. cyclesToFlush is how many cycles it does not.
	flushEvery    = 5 * time.Second
	cyclesToFlush = 4
	// mostHastened makes the longest pause a third of a second.
	mostHastened = 2500 * time.Millisecond
)

func newHosts(cfg Config) *hosts {
	most := cmp.Or(cfg.LostAfter, math.MaxInt64)
	return &hosts{
		cfg: cfg, servers: slices.Clone(cfg.Servers), first: slices.Clone(cfg.Servers), most: most, timeout: min(cfg.SessionTimeout, most),
		lookups: make(map[string]*lookup), history: make(map[target]*dialResult),
		changed: make(chan struct{}),
	}
}

// Init is go-zookeeper's. Its servers are a placeholder.
func (h *hosts) Init([]string) error { return nil }

// Len is go-zookeeper's.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// placeholder is what go-zookeeper dials to have an address chosen.
const placeholder = "placeholder:1"

// Next is go-zookeeper's. It may not block, and choosing may take long. So it
// gives a placeholder first, whose dialing chooses, and then what was chosen.
//
// If the second result is true, go-zookeeper fails requests that wait on the raw
// connection with zk.ErrNoServer, and pauses for a second. So it is true only while
// the application uses that connection, and seldom then.
func (h *hosts) Next() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.chosen != nil {
		return h.chosen.addr, false
	}
	now := time.Now()
	if !h.rawUsed.Load() || h.done || h.cycle < cyclesToFlush || now.Sub(h.flushedAt) < flushEvery {
		return placeholder, false
	}
	h.flushedAt = now
	return placeholder, true
}

// Connected is go-zookeeper's.
func (h *hosts) Connected() {}

// take returns what was chosen, once.
func (h *hosts) take() (target, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.chosen
	h.chosen = nil
	if t == nil {
		return target{}, false
	}
	return *t, true
}

// choose waits until an address is to be tried, which take returns then. It tells
// failed of names that have none, and reports false if ctx has ended.
func (h *hosts) choose(ctx context.Context, failed func(server string, err error)) bool {
	for ctx.Err() == nil {
		left := h.cfg.Holding()
		h.mu.Lock()
		until := h.stepLocked(time.Now(), left)
		chosen, misses, changed := h.chosen != nil, h.misses, h.changed
		h.misses = nil
		h.mu.Unlock()
		for _, m := range misses {
			failed(m.server, m.err)
		}
		if chosen {
			return true
		}
		waitUntil(ctx, until, changed)
	}
	return false
}

// stepLocked chooses an address, or returns until when to wait for a change. left is as for Pause.
func (h *hosts) stepLocked(now time.Time, left time.Duration) (until time.Time) {
	if h.atOnce != nil {
		h.chooseLocked(*h.atOnce)
		return time.Time{}
	}
	for {
		asked := h.pendingLocked()
		gathering := h.going && asked && now.Before(h.gathering)
		switch {
		case h.owed && len(h.untried) > 0:
			h.owed, h.due = false, now.Add(h.pauseLocked(h.cycle-1, left))
		case now.Before(h.due) && (h.going || !h.hurriesLocked()):
			return h.due
		case len(h.untried) > 0 && !gathering:
			h.chooseLocked(slices.MinFunc(h.untried, h.compareLocked))
			return time.Time{}
		case gathering && len(h.untried) > 0:
			return h.gathering
		case h.going && asked && !h.tried:
			return now.Add(time.Minute) // a look-up ends before, which is a change
		case h.going || h.owed:
			h.going, h.owed, h.due = false, false, now.Add(h.pauseLocked(h.cycle, left))
		default:
			h.beginLocked(now)
		}
	}
}

// hurriesLocked is whether an address that was found between cycles does not wait for the next
// one: it comes late for the first cycle, or was never tried.
func (h *hosts) hurriesLocked() bool {
	return slices.ContainsFunc(h.untried, func(t target) bool { return h.cycle == 1 || h.history[t].tried == 0 })
}

// beginLocked begins a cycle.
func (h *hosts) beginLocked(now time.Time) {
	h.going, h.tried, h.owed, h.gathering = true, false, false, now.Add(mostGathering)
	h.cycle++
	for _, server := range h.cycleLocked() {
		if h.lookUp == nil || isAddress(server) {
			h.addLocked(target{server: server, addr: server})
			continue
		}
		h.lookUpLocked(server).wanted = true
	}
}

// cycleLocked are the servers of the present cycle.
func (h *hosts) cycleLocked() []string {
	servers := h.servers
	if h.cycle > 1 {
		for _, server := range h.first {
			if !slices.Contains(servers, server) {
				servers = append(slices.Clip(servers), server)
			}
		}
	}
	return servers
}

// addLocked adds an address to what is to be tried: one under two names under both with TLS,
// which verifies names.
func (h *hosts) addLocked(t target) {
	if slices.ContainsFunc(h.untried, func(other target) bool {
		return other.addr == t.addr && (h.cfg.TLS == nil || other.server == t.server)
	}) {
		return
	}
	if h.history[t] == nil {
		h.history[t] = &dialResult{rank: h.cfg.Random.For([]byte(t.String())).UpTo(math.MaxInt64)}
	}
	h.untried = append(h.untried, t)
}

// compareLocked is less than 0 if a is to be tried before b.
func (h *hosts) compareLocked(a, b target) int {
	x, y := h.history[a], h.history[b]
	return cmp.Or(
		first(a == h.preferred, b == h.preferred),
		first(!x.silent, !y.silent),
		first(h.near(a), h.near(b)),
		cmp.Compare(x.tried, y.tried),
		cmp.Compare(x.rank, y.rank),
	)
}

// first orders what is so before what is not.
func first(a, b bool) int {
	switch {
	case a && !b:
		return -1
	case b && !a:
		return 1
	}
	return 0
}

func (h *hosts) chooseLocked(t target) {
	h.chosen, h.atOnce, h.tried, h.owed = &t, nil, true, h.cycle > 1
	h.untried = slices.DeleteFunc(h.untried, func(other target) bool { return other == t })
	h.tries++
	if x := h.history[t]; x != nil {
		x.tried = h.tries
	}
}

// pauseLocked draws a pause before an address of the cycle that follows so many.
func (h *hosts) pauseLocked(cycles int, left time.Duration) time.Duration {
	least, most := Pause(cycles, h.timeout, left, h.cfg.TLS != nil || h.cfg.SASL != nil)
	return least + h.cfg.Random.UpTo(most-least+1)
}

// up is told of a connection that can be used, and of its session's timeout.
func (h *hosts) up(t target, timeout time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timeout, h.preferred, h.misses = min(timeout, h.most), target{}, nil
	if x := h.history[t]; x != nil {
		x.silent = false
	}
	if h.near(t) {
		h.inVain = 0
	}
}

// movesInVain is how often the client has moved to a preferred server and not got there.
func (h *hosts) movesInVain() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inVain
}

// failed is told how the try of an address ended.
func (h *hosts) failed(t target, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.history[t]; x != nil {
		x.silent = isSilence(err)
	}
}

// ended is told that a connection which was up has ended, and for how long it
// was. One that has lasted is replaced at once, unless it has ended with others: as the
// other side has ended it, and no request of ours is the reason. Clients that a server keeps
// waiting give it up one by one.
func (h *hosts) ended(t target, upFor time.Duration, withOthers bool, err error) {
	h.failed(t, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(err, errGoingHome) {
		h.inVain = min(h.inVain+1, mostInVain)
	}
	if upFor < lasting {
		h.cycle = min(h.cycle, cyclesOfShort) // it grants sessions, so there is room
		return
	}
	h.resetLocked()
	if withOthers {
		h.due = time.Now().Add(h.pauseLocked(0, 0))
	}
}

// resetLocked makes the next cycle a first one.
func (h *hosts) resetLocked() {
	h.cycle, h.going, h.owed, h.due, h.untried = 0, false, false, time.Time{}, nil
	h.signalLocked()
}

// again makes an address the next one, without a pause; once a second, as a server
// may end each session that it grants.
func (h *hosts) again(t target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.againAt) >= lasting {
		h.atOnce, h.againAt = &t, now
	}
}

// prefer makes an address the first of its cycle.
func (h *hosts) prefer(t target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.preferred = t
}

// hasten makes pauses short, for a session that is to be closed: its nodes stay until a
// server is told, and nobody waits for long.
func (h *hosts) hasten() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.most = mostHastened
	h.timeout = min(h.timeout, h.most)
	if soon := time.Now().Add(h.pauseLocked(h.cycle, 0)); soon.Before(h.due) {
		h.due = soon
		h.signalLocked()
	}
}

// stop ends the pauses of go-zookeeper.
func (h *hosts) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = true
}

// all are all servers.
func (h *hosts) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.servers)
}

// replace makes others the servers, if they are others. The connection there is
// stays; they count from the next one on. Without a connection they are tried at once. But
// the pause after the end of a connection goes on: the list may be another one since a server
// has ended, and then it is so for all its clients.
func (h *hosts) replace(servers []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Equal(slices.Sorted(slices.Values(h.servers)), slices.Sorted(slices.Values(servers))) {
		return
	}
	h.servers, h.chosen, h.atOnce = slices.Clone(servers), nil, nil
	for t := range h.history {
		if !slices.Contains(servers, t.server) {
			delete(h.history, t)
		}
	}
	first, due := h.cycle == 0, h.due
	h.resetLocked()
	if first {
		h.due = due
	}
}

// signalLocked ends the wait in choose.
func (h *hosts) signalLocked() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// waitUntil waits for a time, for changed to be closed, or for the end of ctx.
func waitUntil(ctx context.Context, until time.Time, changed <-chan struct{}) {
	d := time.Until(until)
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
	}
}

// sleep waits for d and reports whether ctx has not ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	waitUntil(ctx, time.Now().Add(d), nil)
	return ctx.Err() == nil
}

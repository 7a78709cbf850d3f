package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// target is one address of one server.
type target struct {
	server string // host:port, as written in the connection string
	addr   string // what is dialed: an address of that name, or the name itself
}

// String is the server, and its address if that was looked up.
func (t target) String() string {
	if t.server == t.addr {
		return t.server
	}
	return t.server + " (" + t.addr + ")"
}

// isAddress is whether a server is written as an address, so that there is
// nothing to look up.
func isAddress(server string) bool {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err == nil
}

// lookup is the look-up of one name. Each name has one at a time, so that a
// resolver which never answers is asked once. The mutex of hosts guards it.
type lookup struct {
	until   time.Time // until when it is waited for
	late    bool      // it is not waited for any longer
	wanted  bool      // a cycle takes what it finds
	over    bool
	targets []target
}

// slowEnd is what a function of the user's has to end after its context.
const slowEnd = 100 * time.Millisecond

var (
	errSlowLookup = errors.New("name not resolved: no answer in time")
	errNoAddress  = errors.New("name not resolved: it has no address")
)

// lookUpLocked begins the look-up of a name, unless there is one.
func (h *hosts) lookUpLocked(server string, now time.Time) *lookup {
	lk := h.lookups[server]
	if lk == nil {
		lk = &lookup{until: now.Add(h.limit + slowEnd)}
		h.lookups[server] = lk
		h.lookUp(server, lk)
	}
	return lk
}

// pendingLocked is whether there are look-ups to wait for, and until when. It
// gives up those that take too long; what they find in the end is still tried.
func (h *hosts) pendingLocked(now time.Time) (pending bool, until time.Time) {
	for _, server := range h.servers {
		lk := h.lookups[server]
		switch {
		case lk == nil || lk.late || !lk.wanted:
		case !now.Before(lk.until):
			lk.late = true
			h.misses = append(h.misses, miss{server, errSlowLookup})
		case !pending || lk.until.Before(until):
			pending, until = true, lk.until
		}
	}
	return pending, until
}

// found is told how a look-up has ended.
func (h *hosts) found(server string, lk *lookup, hosts []string, err error) {
	_, port, _ := net.SplitHostPort(server) // they are checked before they come here
	for _, host := range hosts {
		lk.targets = append(lk.targets, target{server: server, addr: net.JoinHostPort(host, port)})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.lookups, server)
	lk.over = true
	defer h.signalLocked()
	if !slices.Contains(h.servers, server) {
		return
	}
	if len(lk.targets) > 0 {
		for t := range h.history {
			if t.server == server && !slices.Contains(lk.targets, t) {
				delete(h.history, t)
			}
		}
	}
	switch {
	case !lk.wanted:
	case err != nil && !lk.late:
		h.misses = append(h.misses, miss{server, err})
	default:
		for _, t := range lk.targets {
			h.addLocked(t)
		}
	}
}

// targets looks up all names and returns every address that is found in time,
// save those whose dialer has not ended.
func (h *hosts) targets(ctx context.Context) []target {
	all := h.lookUpAll(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(all, func(t target) bool {
		_, stuck := h.dialing[t]
		return stuck
	})
}

func (h *hosts) lookUpAll(ctx context.Context) []target {
	var all []target
	var asked []*lookup
	h.mu.Lock()
	for _, server := range h.servers {
		if h.lookUp == nil || isAddress(server) {
			all = append(all, target{server: server, addr: server})
		} else if lk := h.lookUpLocked(server, time.Now()); !lk.late {
			asked = append(asked, lk)
		}
	}
	h.mu.Unlock()
	for _, lk := range asked {
		for ctx.Err() == nil {
			h.mu.Lock()
			over, changed := lk.over, h.changed
			h.mu.Unlock()
			if over {
				all = append(all, lk.targets...)
			}
			if over || !time.Now().Before(lk.until) {
				break
			}
			waitUntil(ctx, lk.until, changed)
		}
	}
	return all
}

// lookUp begins a look-up, which ends in hosts.found.
func (l *Transport) lookUp(server string, lk *lookup) {
	l.wg.Go(func() {
		var addrs []string
		var err error
		defer func() { l.hosts.found(server, lk, addrs, err) }() // also if its goroutine is ended
		ctx, cancel := context.WithTimeout(l.life, l.cfg.ConnectTimeout)
		defer cancel()
		host, _, _ := net.SplitHostPort(server)
		callUser("Config.LookupHost", &err, func() { addrs, err = l.cfg.LookupHost(ctx, host) })
		addrs = slices.DeleteFunc(slices.Clone(addrs), func(addr string) bool { return addr == "" })
		switch {
		case err != nil:
			addrs, err = nil, fmt.Errorf("name not resolved: %w", usersError(inTime(ctx, err)))
		case len(addrs) == 0:
			err = errNoAddress
		}
	})
}

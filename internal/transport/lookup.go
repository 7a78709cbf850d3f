package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
)

// target is one address of one server.
type target struct {
	server string // host:port, as written in the connection string
	addr   string // what is dialed: an address of that name, or the name itself
}

// sameServer is whether both surely lead to one server. A name that is dialed as it is may
// lead to another one each time.
func (t target) sameServer(other target) bool { return t.addr == other.addr && isAddress(t.addr) }

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

// lookup is the look-up of one name. Each name has one at a time. The mutex of hosts
// guards it.
type lookup struct {
	wanted  bool // a cycle takes what it finds
	targets []target
	over    chan struct{} // closed once it has ended
}

var errNoAddress = errors.New("name not resolved: it has no address")

// lookUpLocked begins the look-up of a name, unless there is one.
func (h *hosts) lookUpLocked(server string) *lookup {
	lk := h.lookups[server]
	if lk == nil {
		lk = &lookup{over: make(chan struct{})}
		h.lookups[server] = lk
		h.lookUp(server, lk)
	}
	return lk
}

// pendingLocked is whether there are look-ups to wait for.
func (h *hosts) pendingLocked() bool {
	return slices.ContainsFunc(h.cycleLocked(), func(server string) bool {
		lk := h.lookups[server]
		return lk != nil && lk.wanted
	})
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
	close(lk.over)
	defer h.signalLocked()
	if !slices.Contains(h.cycleLocked(), server) {
		return
	}
	if len(lk.targets) > 0 {
		gone := func(t target) bool { return t.server == server && !slices.Contains(lk.targets, t) }
		h.untried = slices.DeleteFunc(h.untried, gone)
		maps.DeleteFunc(h.history, func(t target, _ *dialResult) bool { return gone(t) })
	}
	switch {
	case !lk.wanted:
	case err != nil:
		h.misses = append(h.misses, miss{server, err})
	default:
		for _, t := range lk.targets {
			h.addLocked(t)
		}
	}
}

// targets looks up all names and returns every address that is found.
func (h *hosts) targets(ctx context.Context) []target {
	var all []target
	var asked []*lookup
	h.mu.Lock()
	for _, server := range h.cycleLocked() {
		if h.lookUp == nil || isAddress(server) {
			all = append(all, target{server: server, addr: server})
		} else {
			asked = append(asked, h.lookUpLocked(server))
		}
	}
	h.mu.Unlock()
	for _, lk := range asked {
		select {
		case <-lk.over:
			all = append(all, lk.targets...)
		case <-ctx.Done():
		}
	}
	return all
}

// lookUp begins a look-up, which ends in hosts.found.
func (l *Transport) lookUp(server string, lk *lookup) {
	l.wg.Go(func() {
		ctx, cancel := context.WithTimeout(l.life, l.cfg.ConnectTimeout)
		defer cancel()
		host, _, _ := net.SplitHostPort(server)
		addrs, err := l.cfg.LookupHost(ctx, host)
		addrs = slices.DeleteFunc(slices.Clone(addrs), func(addr string) bool { return addr == "" })
		switch {
		case err != nil:
			addrs, err = nil, fmt.Errorf("name not resolved: %w", networkError{inTime(ctx, err)})
		case len(addrs) == 0:
			err = errNoAddress
		}
		l.hosts.found(server, lk, addrs, err)
	})
}

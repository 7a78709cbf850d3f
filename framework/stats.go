package framework

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
)

// Stats is a snapshot of the connection and the session. It asks no server. A client
// made by UsingNamespace shares the session of the client that it was made from, and
// so its Stats, Holds and Waiters. The snapshot of a zero Client is zero.
func (c *Client) Stats() monitor.Stats {
	if c.unusable() {
		return monitor.Stats{}
	}
	s := session.StatsOf(c.session)
	stats := monitor.Stats{
		State: s.State, Since: s.Since, Server: s.Server, Session: s.Session, Timeout: s.Timeout, LeaseLeft: s.LeaseLeft,
		LastError: s.LastError, Holds: s.Holds, Batches: s.Batches, Batched: s.Batched, BatchesUndone: s.BatchesUndone, Unsupported: s.Unsupported,
	}
	if c.plan.files != nil {
		stats.Certificate = c.plan.files.info()
	}
	return stats
}

// Holds are the nodes that locks and elections of this client hold now, in no order. Paths
// are in full. It asks no server and takes about a millisecond for 10,000 of them.
func (c *Client) Holds() []monitor.HoldInfo {
	if c.unusable() {
		return nil
	}
	var all []monitor.HoldInfo
	for _, by := range session.Shown[inspector](c.session) {
		all = append(all, by.Holds()...)
	}
	return all
}

// Waiters are the goroutines of this client that wait for a lock or an election now.
// Goroutines with a node come first. Those that wait for another goroutine of this client
// come last, each lock's in the order in which they asked. Waiters asks no server: what
// it says of other clients may be out of date. A MultiLock's wait has one entry for each
// lock that it waits for.
func (c *Client) Waiters() []monitor.WaiterInfo {
	if c.unusable() {
		return nil
	}
	var all []monitor.WaiterInfo
	for _, by := range session.Shown[inspector](c.session) {
		all = append(all, by.Waiters()...)
	}
	return all
}

// inspector is shown by a package with locks.
type inspector interface {
	Holds() []monitor.HoldInfo
	Waiters() []monitor.WaiterInfo
}

// Entries are what recipes show besides locks and elections, such as caches and kept nodes, by
// their paths, which are in full, and then their kinds. It asks no server.
func (c *Client) Entries() []monitor.Entry {
	if c.unusable() {
		return nil
	}
	var list []monitor.Entry
	for _, s := range session.Shown[*Shown](c.session) {
		list = append(list, s.now())
	}
	slices.SortStableFunc(list, func(a, b monitor.Entry) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Kind, b.Kind))
	})
	return list
}

// Shown is something that a client shows. Make it with Client.Show.
type Shown struct {
	path   string // in full
	entry  func() monitor.Entry
	log    *zap.Logger
	remove func()

	mu   sync.Mutex // guards told
	told string     // the reason that was logged last; "" for none
}

// Show has Entries, and with it metrics and the page, show something of a recipe's at path, until
// Remove is called. They call entry, in any goroutine, and at once in several. It must not
// block. The client sets the Path of what it returns.
//
// Errors: ErrClosed, ErrInvalidPath, ErrInvalidArgument if entry is nil.
func (c *Client) Show(path string, entry func() monitor.Entry) (*Shown, error) {
	fail := func(err error) (*Shown, error) { return nil, &OpError{Op: "show", Path: path, Err: err} }
	switch {
	case entry == nil:
		return fail(fmt.Errorf("%w: entry is nil", ErrInvalidArgument))
	case c.unusable() || c.session.IsClosed():
		return fail(ErrClosed)
	}
	full, err := c.full(path, false)
	if err != nil {
		return fail(err)
	}
	s := &Shown{path: full, entry: entry, log: c.session.Log()}
	s.remove = session.Show(c.session, s)
	return s, nil
}

func (s *Shown) now() monitor.Entry {
	now := s.entry()
	now.Path = s.path
	return now
}

// Changed logs the state of the entry if it has an Err, unless that is the connection, of which
// the client has a line already. It logs the state once more when there is no Err any more.
// Recipes call it when that may have changed. It calls entry, so not under a mutex that entry takes.
func (s *Shown) Changed() {
	if s == nil || s.entry == nil {
		return
	}
	now := s.now()
	line, fields := now.Kind+" is "+now.State, []zap.Field{zap.String("kind", now.Kind), zap.String("path", now.Path)}
	switch {
	case !s.isNews(now.Err):
	case now.Err == nil:
		s.log.Info(line, fields...)
	default:
		s.log.Warn(line, append(fields, zap.Error(now.Err))...)
	}
}

// isNews is whether there is something to log.
func (s *Shown) isNews(err error) bool {
	text := ""
	switch {
	case err == nil:
	case errors.Is(err, ErrNotConnected), errors.Is(err, ErrClosed):
		return false
	default:
		text = err.Error() // the recipe's code, so without the mutex
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	news := text != s.told
	s.told = text
	return news
}

// Remove ends that it is shown. A second call does nothing.
func (s *Shown) Remove() {
	if s != nil && s.remove != nil {
		s.remove()
	}
}

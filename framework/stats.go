package framework

import (
	"errors"
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
	stats := session.Stats(c.session)
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
	return session.Inspected(c.session).Holds()
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
	return session.Inspected(c.session).Waiters()
}

// Caches are the caches of this client that are not closed, by their paths, which are in
// full. It asks no server.
func (c *Client) Caches() []monitor.CacheInfo {
	if c.unusable() {
		return nil
	}
	list := session.Caches(c.session)
	slices.SortStableFunc(list, func(a, b monitor.CacheInfo) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// ShownCache is a cache that a client shows. Make it with Client.ShowCache.
type ShownCache struct {
	info   func() monitor.CacheInfo
	log    *zap.Logger
	remove func()

	mu   sync.Mutex // guards told
	told error      // the reason that was logged last; nil for none
}

// ShowCache has Caches, and with it metrics and the page, show a cache until Remove is called.
// They call info, in any goroutine. It must not block, and the client sets its Path. It is for
// recipes, such as recipes/cache.
//
// Errors: ErrClosed, ErrInvalidPath.
func (c *Client) ShowCache(path string, info func() monitor.CacheInfo) (*ShownCache, error) {
	if c.unusable() || c.session.IsClosed() {
		return nil, &OpError{Op: "show cache", Path: path, Err: ErrClosed}
	}
	full, err := c.full(path, false)
	if err != nil {
		return nil, &OpError{Op: "show cache", Path: path, Err: err}
	}
	s := &ShownCache{log: c.session.Log(), info: func() monitor.CacheInfo {
		now := info()
		now.Path = full
		return now
	}}
	s.remove = session.Show(c.session, s.info)
	return s, nil
}

// Changed logs why a cache is not current, unless it is the connection, of which the client
// has a line already. Later it logs that the cache is current again. Recipes call it after each
// change of Current or Err.
func (s *ShownCache) Changed() {
	now := s.info()
	switch told, news := s.tell(now); {
	case !news:
	case told == nil:
		s.log.Info("cache is current again", zap.String("path", now.Path), zap.Int("nodes", now.Nodes), zap.Int64("zxid", now.Zxid))
	default:
		s.log.Warn("cache is not current", zap.String("path", now.Path), zap.Error(told))
	}
}

// tell returns what there is to log, if there is news: why the cache is not current, nil if
// it is again.
func (s *ShownCache) tell(now monitor.CacheInfo) (told error, news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case now.Current:
		news, s.told = s.told != nil, nil
	case now.Err == nil, errors.Is(now.Err, ErrNotConnected), errors.Is(now.Err, ErrClosed):
	case s.told == nil || s.told.Error() != now.Err.Error():
		news, s.told = true, now.Err
	}
	return s.told, news
}

// Remove ends that the cache is shown.
func (s *ShownCache) Remove() { s.remove() }

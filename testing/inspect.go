package zktest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// Session is one client's session.
type Session struct {
	ID      int64
	Timeout time.Duration
	Remote  string // the client's address, "" while disconnected
	Member  int    // the index of the member that serves it, in a cluster
}

// Sessions lists the sessions that are alive, by id.
func (s *Server) Sessions() []Session {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.e.sessionsLocked()
}

func (e *ensemble) sessionsLocked() []Session {
	list := make([]Session, 0, len(e.sessions.byID))
	for _, x := range e.sessions.byID {
		one := Session{ID: x.id, Timeout: x.timeout}
		if x.conn != nil {
			one.Remote, one.Member = x.conn.raw.RemoteAddr().String(), x.conn.m.index
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Session) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// WatchInfo is one watch of one session.
type WatchInfo struct {
	Path    string
	Kind    string // "data", "exist" (on a node that is not there), "child", "persistent", "persistentRecursive"
	Session int64
}

// Watches lists the watches that are set, by path, kind and session.
func (s *Server) Watches() []WatchInfo {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	var list []WatchInfo
	for _, m := range s.members {
		list = append(list, m.watchesLocked()...)
	}
	slices.SortFunc(list, func(a, b WatchInfo) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Kind, b.Kind), cmp.Compare(a.Session, b.Session))
	})
	return list
}

// watchesLocked lists the watches that are set at one member.
func (m *member) watchesLocked() []WatchInfo {
	var list []WatchInfo
	add := func(t *watchTable, plain func(path string) string, persistent bool) {
		for path, watchers := range t.byPath {
			for c, modes := range watchers {
				if modes&watchOnce != 0 {
					list = append(list, WatchInfo{path, plain(path), c.session.id})
				}
				if !persistent {
					continue // listed from the other table
				}
				if modes&watchPersistent != 0 {
					list = append(list, WatchInfo{path, "persistent", c.session.id})
				}
				if modes&watchRecursive != 0 {
					list = append(list, WatchInfo{path, "persistentRecursive", c.session.id})
				}
			}
		}
	}
	add(&m.watches.data, func(path string) string {
		if _, code := m.data.Exists(path); code != wire.CodeOK {
			return "exist"
		}
		return "data"
	}, true)
	add(&m.watches.child, func(string) string { return "child" }, false)
	return list
}

// replicaLocked is the data that the server knows: a member's own, or the
// latest of a cluster.
func (s *Server) replicaLocked() *tree.Tree {
	if len(s.members) == 1 {
		return s.members[0].data
	}
	return s.e.head.data
}

// Ephemerals lists the nodes that a session owns, sorted; of session 0, those
// of all sessions.
func (s *Server) Ephemerals(session int64) []string {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if session != 0 {
		return s.replicaLocked().Ephemerals(session)
	}
	var paths []string
	for _, id := range s.replicaLocked().Sessions() {
		paths = append(paths, s.replicaLocked().Ephemerals(id)...)
	}
	slices.Sort(paths)
	return paths
}

// Requests counts the requests that were answered or applied since the start,
// under the names of Match.Op.
func (s *Server) Requests() map[string]int {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return maps.Clone(s.e.requests)
}

// Dump writes the tree, one line for each node: its path, its data as a Go
// string, its version, and what kind of node it is.
func (s *Server) Dump(w io.Writer) error {
	var b strings.Builder
	s.e.mu.Lock()
	s.replicaLocked().Walk(func(path string, data []byte, stat wire.Stat, owner int64) {
		fmt.Fprintf(&b, "%s %q version %d%s\n", path, data, stat.Version, ownerText(owner))
	})
	s.e.mu.Unlock()
	_, err := io.WriteString(w, b.String())
	return err
}

func ownerText(owner int64) string {
	switch ttl, timed := tree.TTL(owner); {
	case owner == 0:
		return ""
	case owner == tree.OwnerContainer:
		return " container"
	case timed:
		return " ttl " + ttl.String()
	}
	return fmt.Sprintf(" ephemeral of %#x", owner)
}

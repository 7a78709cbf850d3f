package lockview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// Lock is a lock or an election that somebody has or waits for. Who came first is read; of
// the others only the names are known.
type Lock struct {
	Path    string    `json:"path"`
	Kind    Kind      `json:"kind"`
	Node    string    `json:"node,omitempty"` // of whoever has it for longest
	Holder  Text      `json:"holder,omitempty"`
	Session SessionID `json:"session,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when that node was made, by the servers' clock; zero if it could not be read
	Age     float64   `json:"age_seconds"`
	Holds   int       `json:"holds"`
	Waits   int       `json:"waits"`
	Waiter  Text      `json:"waiter,omitempty"` // who waits for longest
	Oldest  float64   `json:"oldest_wait_seconds,omitempty"`

	waiter string // path of the node
}

// Survey has the locks below a path, the oldest first.
type Survey struct {
	Locks  []Lock
	Hidden int      // paths that we may not list
	Odd    []string // what is wrong with paths that look like locks
}

// SurveyOf finds the locks at and below a path. It takes a request for each 256 nodes: first
// for names, from level to level, and then for who is first in each queue.
func SurveyOf(ctx context.Context, client *framework.Client, path string) (*Survey, error) {
	return survey(ctx, client, []place{{path: path}}, true)
}

// LocksAt looks at the locks at some paths. Those that nobody has or waits for are left out.
func LocksAt(ctx context.Context, client *framework.Client, paths []string) (*Survey, error) {
	level := make([]place, len(paths))
	for i, path := range paths {
		level[i].path = path
	}
	return survey(ctx, client, level, false)
}

// survey looks at places, and at what is below them if it is to go deep.
func survey(ctx context.Context, client *framework.Client, level []place, deep bool) (*Survey, error) {
	s := new(Survey)
	var found []*Lock
	for first := true; len(level) > 0; first = false {
		lists, err := readAll(ctx, client, len(level), func(i int) ask { return ask{level[i].path, false} })
		if err != nil {
			return nil, err
		}
		if err := lists[0].err; deep && first && err != nil {
			return nil, err
		}
		var below []place
		for i, list := range lists {
			names, err := s.listed(level[i].path, list)
			if err != nil {
				return nil, err
			}
			lock, folders := s.judge(level[i], names)
			if below = append(below, folders...); lock != nil {
				found = append(found, lock)
			}
		}
		if level = below; !deep {
			level = slices.DeleteFunc(level, func(p place) bool { return p.of == nil })
		}
	}
	found = slices.DeleteFunc(found, func(l *Lock) bool { return l.Holds+l.Waits == 0 })
	if err := readFirst(ctx, client, found); err != nil {
		return nil, err
	}
	for _, l := range found {
		s.Locks = append(s.Locks, *l)
	}
	slices.SortStableFunc(s.Locks, func(a, b Lock) int { return cmp.Or(cmp.Compare(b.Age, a.Age), strings.Compare(a.Path, b.Path)) })
	return s, nil
}

// place is a path to look at.
type place struct {
	path string
	of   *Lock // the semaphore whose queue it is, if that is one
}

// listed are the names below a path. One that has gone or may not be read has none.
func (s *Survey) listed(path string, list answer) ([]string, error) {
	switch {
	case errors.Is(list.err, framework.ErrNoNode):
		return nil, nil
	case errors.Is(list.err, framework.ErrNoAuth):
		s.Hidden++
		return nil, nil
	case errors.Is(list.err, framework.ErrReplyTooLarge):
		s.Odd = append(s.Odd, fmt.Sprintf("%s: %v", path, list.err))
		return nil, nil
	case list.err != nil:
		return nil, list.err
	}
	slices.Sort(list.names)
	return list.names, nil
}

// judge returns the lock that a path is by the names below, nil if it is none, and the places
// below to look at. Two folders may be a semaphore's, which shows when they are listed.
func (s *Survey) judge(at place, names []string) (lock *Lock, folders []place) {
	var queue []string
	for _, name := range names {
		if IsContender(name) {
			queue = append(queue, name)
			continue
		}
		folders = append(folders, place{path: framework.MakePath(at.path, name)})
	}
	inOrder(queue)
	if at.of != nil {
		at.of.enqueueAt(at.path, queue)
		return nil, folders
	}
	is, err := KindOf(names)
	if err != nil {
		s.Odd = append(s.Odd, fmt.Sprintf("%s: %v", at.path, err))
		return nil, folders
	}
	lock = &Lock{Path: at.path, Kind: is}
	switch {
	case len(queue) > 0:
		lock.enqueue(queue)
	case slices.Contains(names, Leases):
		lock.Kind = Semaphore
		for i := range folders {
			if _, name := framework.PathAndNode(folders[i].path); name == Leases || name == Turns {
				folders[i].of = lock
			}
		}
	default:
		return nil, folders
	}
	return lock, folders
}

// inOrder sorts the names of a queue. A downgraded reader comes behind its write node, whose
// number it has.
func inOrder(queue []string) {
	const digits = 10
	side := func(name string) nodename.Kind { kind, _ := nodename.KindOf(name); return kind }
	slices.SortFunc(queue, func(a, b string) int {
		return cmp.Or(strings.Compare(a[len(a)-digits:], b[len(b)-digits:]), -strings.Compare(string(side(a)), string(side(b))), strings.Compare(a, b))
	})
}

// enqueue counts who has a lock and who waits. Readers that are first have it together.
func (l *Lock) enqueue(queue []string) {
	reads := func(name string) bool { kind, _ := nodename.KindOf(name); return kind == nodename.Read }
	l.Holds = 1
	for reads(queue[0]) && l.Holds < len(queue) && reads(queue[l.Holds]) {
		l.Holds++
	}
	l.Node = framework.MakePath(l.Path, queue[0])
	if l.Waits = len(queue) - l.Holds; l.Waits > 0 {
		l.waiter = framework.MakePath(l.Path, queue[l.Holds])
	}
}

// enqueueAt counts a semaphore's leases, each of which is held as far as its name says, or
// those who wait for one.
func (l *Lock) enqueueAt(folder string, queue []string) {
	switch _, name := framework.PathAndNode(folder); {
	case len(queue) == 0:
	case name == Leases:
		l.Holds, l.Node = len(queue), framework.MakePath(folder, queue[0])
	default:
		l.Waits, l.waiter = len(queue), framework.MakePath(folder, queue[0])
	}
}

// readFirst reads who has each lock for longest, and who waits for longest. Nodes that have
// gone meanwhile leave their lock as it was listed.
func readFirst(ctx context.Context, client *framework.Client, found []*Lock) error {
	nodes := make([]string, 0, 2*len(found))
	take := make([]func(answer, float64), 0, 2*len(found))
	for _, l := range found {
		if l.Node != "" {
			nodes = append(nodes, l.Node)
			take = append(take, func(a answer, age float64) {
				l.Holder, l.Session, l.Since, l.Age = a.data, SessionID(a.stat.EphemeralOwner), time.UnixMilli(a.stat.Ctime).UTC(), age
			})
		}
		if l.waiter != "" {
			nodes = append(nodes, l.waiter)
			take = append(take, func(a answer, age float64) { l.Waiter, l.Oldest = a.data, age })
		}
	}
	read, err := readAll(ctx, client, len(nodes), func(i int) ask { return ask{nodes[i], true} })
	if err != nil {
		return err
	}
	now := time.Now()
	for i, a := range read {
		switch {
		case a.err == nil:
			take[i](a, max(0, now.Sub(time.UnixMilli(a.stat.Ctime)).Seconds()))
		case errors.Is(a.err, framework.ErrNoNode), errors.Is(a.err, framework.ErrNoAuth), errors.Is(a.err, framework.ErrReplyTooLarge):
		default:
			return a.err
		}
	}
	return nil
}

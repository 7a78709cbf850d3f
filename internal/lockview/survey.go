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
	Waiter  Text      `json:"waiter,omitempty"` // who waits for longest, if that was read
	Oldest  float64   `json:"oldest_wait_seconds,omitempty"`

	// Has are the locks below the path of SurveyOf that the owner who waits for longest has,
	// and Wants those that it waits for. Only nodes of Paddock's say so.
	Has   []string `json:"waiter_has,omitempty"`
	Wants []string `json:"waiter_wants,omitempty"`

	// HolderWants are the locks below the path of SurveyOf that the owner of Node waits for, as
	// a MultiLock or an owner that nests does. A crowd waits for the owners who want none.
	HolderWants []string `json:"holder_wants,omitempty"`

	waiter string // path of the node
}

// Survey has the locks below a path, the oldest first.
type Survey struct {
	Locks  []Lock
	Hidden int      // paths that we may not list
	Odd    []string // what is wrong with paths that look like locks

	owners map[string]*owner // by tag; nil if it is not to say what they have
}

// owner is who has several nodes, by the paths of their locks.
type owner struct{ has, wants []string }

// SurveyOf finds the locks at and below a path. It reads many nodes with each request:
// first names, from level to level, and then who is first in each queue. It says nothing of
// those who wait for locks that are younger than older.
func SurveyOf(ctx context.Context, client *framework.Client, path string, older time.Duration) (*Survey, error) {
	return survey(ctx, client, []place{{path: path}}, true, older)
}

// LocksAt looks at the locks at some paths. Those that nobody has or waits for are left out.
func LocksAt(ctx context.Context, client *framework.Client, paths []string) (*Survey, error) {
	level := make([]place, len(paths))
	for i, path := range paths {
		level[i].path = path
	}
	return survey(ctx, client, level, false, 0)
}

// survey looks at places, and at what is below them if it is to go deep.
func survey(ctx context.Context, client *framework.Client, level []place, deep bool, older time.Duration) (*Survey, error) {
	s := new(Survey)
	if deep {
		s.owners = make(map[string]*owner)
	}
	var found []*Lock
	for first := true; len(level) > 0; first = false {
		lists, err := client.ReadAll(ctx, listsOf(level)...)
		if err != nil {
			return nil, err
		}
		if err := lists[0].Err; deep && first && err != nil {
			return nil, err
		}
		var below []place
		for i, list := range lists {
			names, err := s.listed(list)
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
	found = slices.DeleteFunc(found, (*Lock).free)
	if err := readFirst(ctx, client, found, older); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, (*Lock).free)
	for _, l := range found {
		l.Has, l.Wants = s.standing(l.waiter)
		_, l.HolderWants = s.standing(l.Node)
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

func listsOf(level []place) []framework.Read {
	lists := make([]framework.Read, len(level))
	for i, p := range level {
		lists[i] = framework.Read{Path: p.path, Children: true}
	}
	return lists
}

// listed are the names below a path. One that has gone or may not be read has none.
func (s *Survey) listed(list framework.ReadResult) ([]string, error) {
	switch {
	case errors.Is(list.Err, framework.ErrNoNode):
		return nil, nil
	case errors.Is(list.Err, framework.ErrNoAuth):
		s.Hidden++
		return nil, nil
	case errors.Is(list.Err, framework.ErrReplyTooLarge):
		s.Odd = append(s.Odd, fmt.Sprintf("%s: %v", list.Path, list.Err))
		return nil, nil
	case list.Err != nil:
		return nil, list.Err
	}
	slices.Sort(list.Names)
	return list.Names, nil
}

// judge returns the lock that a path is by the names below, nil if it is none, and the places
// below to look at. Two folders may be a semaphore's, which shows when they are listed.
func (s *Survey) judge(at place, names []string) (lock *Lock, folders []place) {
	queue := queueOf(names)
	for _, name := range names {
		if !IsContender(name) {
			folders = append(folders, place{path: framework.MakePath(at.path, name)})
		}
	}
	if at.of != nil {
		s.own(at.of.Path, queue, at.of.enqueueAt(at.path, queue))
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
		s.own(lock.Path, queue, lock.Holds)
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

const digits = 10 // that a server puts behind a name

// queueOf are those of the names that stand in a queue, in its order. A downgraded reader comes
// behind its write node, whose number it has.
func queueOf(names []string) (queue []string) {
	for _, name := range names {
		if IsContender(name) {
			queue = append(queue, name)
		}
	}
	side := func(name string) nodename.Kind { kind, _ := nodename.KindOf(name); return kind }
	slices.SortFunc(queue, func(a, b string) int {
		return cmp.Or(strings.Compare(a[len(a)-digits:], b[len(b)-digits:]), -strings.Compare(string(side(a)), string(side(b))), strings.Compare(a, b))
	})
	return queue
}

// holders is how many of a queue have the lock. Readers that are first have it together, and so
// do a write node and the reader that was downgraded from it.
func holders(queue []string) (n int) {
	reads := func(name string) bool { kind, _ := nodename.KindOf(name); return kind == nodename.Read }
	for n < len(queue) && (n == 0 || reads(queue[n]) && (reads(queue[0]) || queue[n][len(queue[n])-digits:] == queue[0][len(queue[0])-digits:])) {
		n++
	}
	return n
}

// enqueue counts who has a lock and who waits.
func (l *Lock) enqueue(queue []string) {
	l.Holds = holders(queue)
	l.Node = framework.MakePath(l.Path, queue[0])
	if l.Waits = len(queue) - l.Holds; l.Waits > 0 {
		l.waiter = framework.MakePath(l.Path, queue[l.Holds])
	}
}

// enqueueAt counts a semaphore's leases, each of which is held as far as its name says, or
// those who wait for one. It returns how many of these nodes are held.
func (l *Lock) enqueueAt(folder string, queue []string) (held int) {
	switch _, name := framework.PathAndNode(folder); {
	case len(queue) == 0:
	case name == Leases:
		l.Holds, l.Node = len(queue), framework.MakePath(folder, queue[0])
		return l.Holds
	default:
		l.Waits, l.waiter = len(queue), framework.MakePath(folder, queue[0])
	}
	return 0
}

// own notes whose nodes are in a queue, of which the first ones hold the lock.
func (s *Survey) own(path string, queue []string, held int) {
	for i, name := range queue {
		tag := nodename.TagOf(name)
		if tag == "" || s.owners == nil {
			continue
		}
		if s.owners[tag] == nil {
			s.owners[tag] = new(owner)
		}
		if o := s.owners[tag]; i < held {
			o.has = append(o.has, path)
		} else if nodename.WayOf(name) != nodename.Unknown { // its goroutine may have given the lock to another one
			o.wants = append(o.wants, path)
		}
	}
}

// standing is what the owner of a node has and waits for, in order. Who waits for a semaphore may have
// made its lease already.
func (s *Survey) standing(node string) (has, wants []string) {
	_, name := framework.PathAndNode(node)
	o := s.owners[nodename.TagOf(name)]
	if o == nil {
		return nil, nil
	}
	wants = slices.Compact(slices.Sorted(slices.Values(o.wants)))
	has = slices.Compact(slices.Sorted(slices.Values(o.has)))
	has = slices.DeleteFunc(has, func(path string) bool { return slices.Contains(wants, path) })
	return has, wants
}

// readFirst reads who has each lock for longest, and who waits for longest for those that are
// old enough. Only for a semaphore can somebody wait for longer than others have it.
func readFirst(ctx context.Context, client *framework.Client, found []*Lock, older time.Duration) error {
	read := func(l *Lock) string { return l.Node }
	take := func(l *Lock, r framework.ReadResult, age float64) {
		l.Holder, l.Session, l.Since, l.Age = r.Data, SessionID(r.Stat.EphemeralOwner), time.UnixMilli(r.Stat.Ctime).UTC(), age
	}
	gone, err := readEach(ctx, client, found, read, take)
	if err != nil {
		return err
	}
	gone, err = readEach(ctx, client, slices.DeleteFunc(gone, func(l *Lock) bool { return !l.handOn() }), read, take)
	if err != nil {
		return err
	}
	for _, l := range gone {
		l.handOn()
	}
	read = func(l *Lock) string {
		if l.Age < older.Seconds() && !l.Since.IsZero() && l.Kind != Semaphore {
			return ""
		}
		return l.waiter
	}
	_, err = readEach(ctx, client, found, read, func(l *Lock, r framework.ReadResult, age float64) { l.Waiter, l.Oldest = r.Data, age })
	return err
}

// free is whether nobody has the lock or waits for it.
func (l *Lock) free() bool { return l.Holds+l.Waits == 0 }

// handOn counts whoever had the lock for longest out, since that node has gone. It is true if
// whoever waited for longest has the lock now.
func (l *Lock) handOn() bool {
	l.Holds, l.Node = max(0, l.Holds-1), ""
	if l.Holds > 0 || l.waiter == "" || l.Kind == Semaphore {
		return false
	}
	l.Holds, l.Waits, l.Node, l.waiter = 1, l.Waits-1, l.waiter, ""
	return true
}

// readEach reads a node of each lock, unless that is "", and returns the locks whose node has
// gone meanwhile.
func readEach(ctx context.Context, client *framework.Client, found []*Lock, node func(*Lock) string, take func(*Lock, framework.ReadResult, float64)) (gone []*Lock, err error) {
	var of []*Lock
	var reads []framework.Read
	for _, l := range found {
		if path := node(l); path != "" {
			of, reads = append(of, l), append(reads, framework.Read{Path: path})
		}
	}
	results, err := client.ReadAll(ctx, reads...)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i, r := range results {
		switch {
		case r.Err == nil:
			take(of[i], r, max(0, now.Sub(time.UnixMilli(r.Stat.Ctime)).Seconds()))
		case errors.Is(r.Err, framework.ErrNoNode):
			gone = append(gone, of[i])
		case errors.Is(r.Err, framework.ErrNoAuth), errors.Is(r.Err, framework.ErrReplyTooLarge):
		default:
			return nil, r.Err
		}
	}
	return gone, nil
}

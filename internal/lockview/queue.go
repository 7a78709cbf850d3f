// Package lockview reads the queue of any lock or election from the servers, for people who
// look at it. It uses the public packages alone.
package lockview

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// Kind is which recipe a path belongs to, as far as the names of the nodes below it
// say.
type Kind string

// These are all whose queues Look can read.
const (
	None      Kind = ""
	Mutex     Kind = nodename.Mutex // or the election of a Selector, which has the same nodes
	ReadWrite Kind = nodename.ReadWrite
	Semaphore Kind = nodename.Semaphore // or a semaphore mutex, which is one with one lease
	Latch     Kind = nodename.Latches
)

// The queues of a semaphore, which are children of its node.
const (
	Turns  = nodename.Turns
	Leases = nodename.Leases
)

// ErrNoLock reports a path that has no lock's nodes below it.
var ErrNoLock = errors.New("no lock")

// IsContender is whether a name is that of a node in a queue.
func IsContender(name string) bool {
	kind, _ := nodename.KindOf(name)
	return kind != ""
}

// KindOf guesses by the names below a path. Names of another form say nothing.
func KindOf(names []string) (found Kind, err error) {
	add := func(is Kind) {
		if found != None && found != is && err == nil {
			err = fmt.Errorf("%w: the nodes are of a %s and of a %s", ErrNoLock, found, is)
		}
		found = is
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if kind, recipe := nodename.KindOf(name); kind != "" && kind != nodename.Lease { // those are in a folder
			add(Kind(recipe))
		}
	}
	if slices.Contains(names, Leases) && (slices.Contains(names, Turns) || len(names) == 1) { // the servers remove an empty folder
		add(Semaphore)
	}
	if err == nil && found == nodename.Kazoo {
		err = fmt.Errorf("%w: the nodes are of a %s, which Paddock cannot read", ErrNoLock, found)
	}
	if err != nil {
		return None, err
	}
	return found, nil
}

// Participant is one place in a queue, as it is printed.
type Participant struct {
	Node    string    `json:"node"`
	Data    Text      `json:"data"`
	Holds   bool      `json:"holds"`
	Side    string    `json:"side,omitempty"` // of a read/write lock: read or write
	Session SessionID `json:"session"`
	Token   int64     `json:"token"`
	Since   time.Time `json:"since,omitzero"` // by the servers' clock
	Age     float64   `json:"age_seconds"`
	Behind  string    `json:"behind,omitempty"` // the node that it waits for
	Owner   string    `json:"owner,omitempty"`  // the same for all nodes of one owner, of a MultiLock's members too
	Multi   bool      `json:"multilock,omitempty"`
	Way     Way       `json:"way,omitempty"`
}

// Way is how the owner of a node takes its locks, as the name says. It is "" for plain users
// and for nodes of other libraries.
type Way string

// What Paddock's names say beside that.
const (
	Joint    Way = "joint"    // a MultiLock, in one step
	Ordered  Way = "ordered"  // a MultiLock, in the order of the paths
	Backward Way = "backward" // a MultiLock, in the reverse order of the paths
	Nesting  Way = "nesting"  // has other locks, all at earlier paths
	Reverse  Way = "reverse"  // has a lock at a later path
)

var ways = map[nodename.Way]Way{
	nodename.Joint: Joint, nodename.Ordered: Ordered, nodename.Backward: Backward, nodename.Nesting: Nesting, nodename.Unknown: Nesting, nodename.Reverse: Reverse,
}

// Queue is a lock or an election as one Look at the servers shows it.
type Queue struct {
	Path         string        `json:"path"`
	Kind         Kind          `json:"kind"`
	AgeBy        string        `json:"age_by"` // whose clock the ages are by
	Participants []Participant `json:"participants"`
}

// manyLeases stands for the number of a semaphore's leases where nobody said it. Each
// lease that there is then counts as held.
const manyLeases = 1 << 30

// Look reads the queue at a path.
func Look(ctx context.Context, client *framework.Client, path string, leases int) (*Queue, error) {
	names, _, err := client.Children(ctx, path)
	if err != nil {
		return nil, err
	}
	is, err := KindOf(names)
	if err != nil {
		return nil, err
	}
	return LookAt(ctx, client, path, is, leases)
}

// LookAt reads the queue at a path whose kind is known.
func LookAt(ctx context.Context, client *framework.Client, path string, is Kind, leases int) (q *Queue, err error) {
	if leases == 0 {
		leases = manyLeases
	}
	q = &Queue{Path: path, Kind: is, AgeBy: "client", Participants: []Participant{}}
	var all []locks.Participant
	switch is {
	case Mutex:
		all, err = locks.NewInterProcessMutex(client, path).Participants(ctx)
	case ReadWrite:
		all, err = locks.NewInterProcessReadWriteLock(client, path).WriteLock().Participants(ctx)
	case Semaphore:
		all, err = locks.NewInterProcessSemaphore(client, path, leases).Participants(ctx)
	case Latch:
		all, err = candidates(ctx, client, path)
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, p := range all {
		q.add(p, now)
	}
	return q, nil
}

// candidates are the participants of an election as those of a lock.
func candidates(ctx context.Context, client *framework.Client, path string) (all []locks.Participant, err error) {
	candidates, err := leader.NewLatch(client, path).Participants(ctx)
	for _, c := range candidates {
		all = append(all, locks.Participant{
			Path: c.Path, Data: []byte(c.ID), Holds: c.Leads, Session: c.Session, Token: c.Number, Since: c.Since,
		})
	}
	return all, err
}

// add puts a participant behind the others.
func (q *Queue) add(p locks.Participant, now time.Time) {
	one := Participant{Node: p.Path, Data: p.Data, Holds: p.Holds, Session: SessionID(p.Session), Token: p.Token, Since: p.Since.UTC()}
	if p.Since.IsZero() {
		one.Since = time.Time{}
	} else {
		one.Age = max(0, now.Sub(p.Since).Seconds())
	}
	if one.Owner, one.Multi = ownerOf(p.Path); one.Owner != "" {
		_, name := framework.PathAndNode(p.Path)
		one.Way = ways[nodename.WayOf(name)]
	}
	if q.Kind == ReadWrite {
		one.Side = "read"
		if p.Write {
			one.Side = "write"
		}
	}
	if !p.Holds {
		one.Behind = q.ahead(one)
	}
	q.Participants = append(q.Participants, one)
}

// ahead is the node that a participant waits for, who comes last: for a reader the
// last writer, otherwise whoever is last.
func (q *Queue) ahead(p Participant) string {
	for i := len(q.Participants) - 1; i >= 0; i-- {
		if other := q.Participants[i]; p.Side != "read" || other.Side == "write" {
			return other.Node
		}
	}
	return ""
}

// ownerName is the protection in front of the names of our nodes: a UUID of version 8.
// Its last part is the same for all nodes of one owner. Its first bit is set for
// MultiLocks, which yield to others.
var ownerName = regexp.MustCompile(`/_c_([0-9a-f])[0-9a-f]{7}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-([0-9a-f]{12})-[^/]+$`)

// ownerOf is what a node's name says of its owner. Names of other libraries say
// nothing.
func ownerOf(path string) (owner string, multi bool) {
	m := ownerName.FindStringSubmatch(path)
	if m == nil {
		return "", false
	}
	return m[2], m[1] >= "8"
}

// Place is where in the queue a node is, from 1; 0 if it is not there.
func (q *Queue) Place(node string) int {
	for i, p := range q.Participants {
		if p.Node == node {
			return i + 1
		}
	}
	return 0
}

// Words are what holders and waiters of a kind do.
func (k Kind) Words(holds bool) string {
	switch {
	case k == Latch && holds:
		return "leads"
	case holds:
		return "holds"
	}
	return "waits"
}

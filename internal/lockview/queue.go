// Package lockview reads the queue of any lock or election from the servers, for people who
// look at it. It knows the queues by the names of their nodes alone.
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
	Unknown  Way = "unknown"  // its goroutine has another lock, of which its context does not say
)

var ways = map[nodename.Way]Way{
	nodename.Joint: Joint, nodename.Ordered: Ordered, nodename.Backward: Backward, nodename.Nesting: Nesting, nodename.Unknown: Unknown, nodename.Reverse: Reverse,
}

// Queue is a lock or an election as one Look at the servers shows it.
type Queue struct {
	Path         string        `json:"path"`
	Kind         Kind          `json:"kind"`
	AgeBy        string        `json:"age_by"` // whose clock the ages are by
	Participants []Participant `json:"participants"`
}

// Look reads the queue at a path. The first leases of a semaphore count as held, and all of them
// if that is 0.
func Look(ctx context.Context, client *framework.Client, path string, leases int) (*Queue, error) {
	names, _, err := client.Children(ctx, path)
	if err != nil {
		return nil, err
	}
	return LookAt(ctx, client, path, names, leases)
}

// LookAt is Look with the names below the path. Nodes that have gone meanwhile are left out. Of
// those that may not be read only the names are known.
func LookAt(ctx context.Context, client *framework.Client, path string, names []string, leases int) (*Queue, error) {
	is, err := KindOf(names)
	if err != nil {
		return nil, err
	}
	q := &Queue{Path: path, Kind: is, AgeBy: "client", Participants: []Participant{}}
	var places []Participant
	switch is {
	case None:
		return q, nil
	case Semaphore:
		places, err = semaphorePlaces(ctx, client, path, leases)
	default:
		queue := queueOf(names)
		places = placesIn(path, queue, holders(queue))
		err = checkFolder(ctx, client, path, is)
	}
	if err != nil {
		return nil, err
	}
	reads := make([]framework.Read, len(places))
	for i, p := range places {
		reads[i].Path = p.Node
	}
	results, err := client.ReadAll(ctx, reads...)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i, r := range results {
		p := places[i]
		switch {
		case r.Err == nil:
			since := time.UnixMilli(r.Stat.Ctime)
			p.Data, p.Session, p.Token, p.Since, p.Age = r.Data, SessionID(r.Stat.EphemeralOwner), r.Stat.Czxid, since.UTC(), max(0, now.Sub(since).Seconds())
		case errors.Is(r.Err, framework.ErrNoNode):
			continue
		case !errors.Is(r.Err, framework.ErrNoAuth):
			return nil, r.Err
		}
		q.add(p)
	}
	return q, nil
}

// semaphorePlaces are the leases, and then those who wait for their turn.
func semaphorePlaces(ctx context.Context, client *framework.Client, path string, held int) (all []Participant, err error) {
	lists, err := client.ReadAll(ctx, listsOf([]place{{path: framework.MakePath(path, Leases)}, {path: framework.MakePath(path, Turns)}})...)
	if err != nil {
		return nil, err
	}
	for i, list := range lists {
		if list.Err != nil && !errors.Is(list.Err, framework.ErrNoNode) {
			return nil, list.Err
		}
		queue := queueOf(list.Names)
		switch {
		case i > 0:
			held = 0
		case held == 0:
			held = len(queue)
		}
		all = append(all, placesIn(list.Path, queue, held)...)
	}
	return all, nil
}

// checkFolder refuses the folder in which a semaphore has its turns, whose nodes look like
// those of a mutex.
func checkFolder(ctx context.Context, client *framework.Client, path string, is Kind) error {
	above, folder := framework.PathAndNode(path)
	if is != Mutex || folder != Turns {
		return nil
	}
	leases, err := client.ReadAll(ctx, framework.Read{Path: framework.MakePath(above, Leases)})
	if err == nil && !errors.Is(leases[0].Err, framework.ErrNoNode) {
		err = fmt.Errorf("%w: the nodes are those who wait for their turn at the semaphore %s", ErrNoLock, above)
	}
	return err
}

// placesIn are the nodes of a queue, of which the first ones hold the lock.
func placesIn(folder string, queue []string, held int) (all []Participant) {
	for i, name := range queue {
		all = append(all, Participant{Node: framework.MakePath(folder, name), Holds: i < held})
	}
	return all
}

// add puts a participant behind the others.
func (q *Queue) add(p Participant) {
	_, name := framework.PathAndNode(p.Node)
	if p.Owner, p.Multi = ownerOf(p.Node); p.Owner != "" {
		p.Way = ways[nodename.WayOf(name)]
	}
	switch kind, _ := nodename.KindOf(name); kind {
	case nodename.Read:
		p.Side = "read"
	case nodename.Write:
		p.Side = "write"
	}
	if !p.Holds {
		p.Behind = q.ahead(p)
	}
	q.Participants = append(q.Participants, p)
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

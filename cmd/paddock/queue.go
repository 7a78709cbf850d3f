package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// kind is which recipe a path belongs to, as far as the names of the nodes below it
// say.
type kind string

const (
	kindNone      kind = ""
	kindMutex     kind = "mutex" // or the election of a Selector, which has the same nodes
	kindReadWrite kind = "read/write lock"
	kindSemaphore kind = "semaphore" // or a semaphore mutex, which is one with one lease
	kindLatch     kind = "latch"
)

// contenderName is how the names of nodes in a queue end.
var contenderName = regexp.MustCompile(`(lock-|__READ__|__WRIT__|lease-|latch-)[0-9]{10}$`)

// kindOf guesses by the names below a path. Names of another form say nothing.
func kindOf(names []string) (kind, error) {
	found := kindNone
	below := make(map[string]bool)
	for _, name := range slices.Sorted(slices.Values(names)) {
		below[name] = true
		m := contenderName.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		is := map[string]kind{"lock-": kindMutex, "__READ__": kindReadWrite, "__WRIT__": kindReadWrite, "latch-": kindLatch}[m[1]]
		if is == kindNone {
			continue
		}
		if found != kindNone && found != is {
			return kindNone, fmt.Errorf("%w: the nodes are of a %s and of a %s", errNoLock, found, is)
		}
		found = is
	}
	if below["locks"] && below["leases"] {
		if found != kindNone {
			return kindNone, fmt.Errorf("%w: the nodes are of a %s and of a %s", errNoLock, found, kindSemaphore)
		}
		return kindSemaphore, nil
	}
	return found, nil
}

// participant is one place in a queue, as it is printed.
type participant struct {
	Node    string    `json:"node"`
	Data    text      `json:"data"`
	Holds   bool      `json:"holds"`
	Side    string    `json:"side,omitempty"` // of a read/write lock: read or write
	Session session   `json:"session"`
	Token   int64     `json:"token"`
	Since   time.Time `json:"since,omitzero"` // by the servers' clock
	Age     float64   `json:"age_seconds"`
	Behind  string    `json:"behind,omitempty"` // the node that it waits for
	Owner   string    `json:"owner,omitempty"`  // the same for all nodes of one owner, of a MultiLock's members too
	Multi   bool      `json:"multilock,omitempty"`
}

// queueState is a lock or an election as one look at the servers shows it.
type queueState struct {
	Path         string        `json:"path"`
	Kind         kind          `json:"kind"`
	AgeBy        string        `json:"age_by"` // whose clock the ages are by
	Participants []participant `json:"participants"`
}

// manyLeases stands for the number of a semaphore's leases where nobody said it. Each
// lease that there is then counts as held.
const manyLeases = 1 << 30

// look reads the queue at a path.
func look(ctx context.Context, client *framework.Client, path string, leases int) (*queueState, error) {
	names, _, err := client.Children(ctx, path)
	if err != nil {
		return nil, err
	}
	is, err := kindOf(names)
	if err != nil {
		return nil, err
	}
	if leases == 0 {
		leases = manyLeases
	}
	q := &queueState{Path: path, Kind: is, AgeBy: "client", Participants: []participant{}}
	var all []locks.Participant
	switch is {
	case kindMutex:
		all, err = locks.NewInterProcessMutex(client, path).Participants(ctx)
	case kindReadWrite:
		all, err = locks.NewInterProcessReadWriteLock(client, path).WriteLock().Participants(ctx)
	case kindSemaphore:
		all, err = locks.NewInterProcessSemaphore(client, path, leases).Participants(ctx)
	case kindLatch:
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
func (q *queueState) add(p locks.Participant, now time.Time) {
	one := participant{Node: p.Path, Data: p.Data, Holds: p.Holds, Session: session(p.Session), Token: p.Token, Since: p.Since.UTC()}
	if p.Since.IsZero() {
		one.Since = time.Time{}
	} else {
		one.Age = max(0, now.Sub(p.Since).Seconds())
	}
	one.Owner, one.Multi = ownerOf(p.Path)
	if q.Kind == kindReadWrite {
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
func (q *queueState) ahead(p participant) string {
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

// place is where in the queue a node is, from 1; 0 if it is not there.
func (q *queueState) place(node string) int {
	for i, p := range q.Participants {
		if p.Node == node {
			return i + 1
		}
	}
	return 0
}

// who prints who holds a lock or leads, and who waits.
func who(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	if err != nil {
		return err
	}
	return inv.withClient(ctx, func(ctx context.Context, client *framework.Client) error {
		q, err := look(ctx, client, path, inv.semaphore)
		switch {
		case errors.Is(err, framework.ErrNoNode):
			return fmt.Errorf("%w (nobody has taken this lock, or the servers have removed its empty node)", err)
		case err != nil:
			return err
		case inv.json:
			return writeJSON(inv.sys.out, q)
		}
		return q.print(inv)
	})
}

// words are what holders and waiters of a kind do.
func (k kind) words(holds bool) string {
	switch {
	case k == kindLatch && holds:
		return "leads"
	case holds:
		return "holds"
	}
	return "waits"
}

// print writes a queue for people.
func (q *queueState) print(inv *invocation) error {
	var b strings.Builder
	title := string(q.Kind)
	if q.Kind == kindNone {
		title = "no participants, so the kind is not known"
	}
	fmt.Fprintf(&b, "%s: %s\n", printable(q.Path), title)
	for i, p := range q.Participants {
		does := q.Kind.words(p.Holds)
		if p.Side != "" {
			does += " (" + p.Side + ")"
		}
		if p.Behind != "" {
			does += fmt.Sprintf(" behind %d", q.place(p.Behind))
		}
		fmt.Fprintf(&b, "%d. %s  %s\n", i+1, does, excerpt(p.Data))
		if p.Session == 0 {
			b.WriteString("   (no right to read it)\n")
		} else {
			fmt.Fprintf(&b, "   since %s, for %s\n", p.Since.Format(time.RFC3339), age(time.Duration(p.Age*float64(time.Second))))
			fmt.Fprintf(&b, "   session %v, token %d\n", p.Session, p.Token)
		}
		fmt.Fprintf(&b, "   node %s\n", printable(p.Node))
		if p.Multi {
			fmt.Fprintf(&b, "   a MultiLock's member, of owner %s\n", p.Owner)
		}
	}
	if q.Kind == kindSemaphore && inv.semaphore == 0 {
		b.WriteString("Every lease that there is counts as held, as no node shows how many there may be: --semaphore N says it.\n")
	}
	if len(q.Participants) > 0 {
		b.WriteString("Times are by the servers' clock, ages by the difference to the clock of this machine.\n")
	}
	return inv.print(b.String())
}

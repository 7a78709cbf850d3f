package deadlock

import (
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// History is what a MultiLock has learned while it waits. It is a value. A copy is
// independent, except for the heads of the queues and the suspicions, which it shares.
type History struct {
	sure    backoff       // with an owner that waits for us
	unsure  backoff       // with one that may
	stall   stallTimeout  // with any other
	checkIn time.Duration // until the next check, if nothing else is due
	checkBy time.Time     // the next check comes no later, whatever happens meanwhile; zero for none
	yielded time.Time     // by Decide, for the last time
	queues  int
	heads   []head // by queue; nil until a holder is seen, so that a free MultiLock allocates none
	cycles  []suspectedCycle
}

// head is the node that has what we wait for in a queue.
type head struct {
	name   string
	since  time.Time // it was seen there
	other  time.Time // when it was last seen not to be there
	listed time.Time // the queue, for the last time
}

// grade is whose backoff it is.
type grade int

const (
	none grade = iota
	unsure
	sure
)

// suspectedCycle says that an owner that has what we wait for may wait behind us.
type suspectedCycle struct {
	grade grade
	at    int    // the queue where we were first
	own   string // our node there
	waits string // theirs
	of    int    // the queue that we wait in
	has   string // their node there
}

const (
	firstCheck = time.Millisecond
	mostCheck  = 256 * time.Millisecond
)

// Begin is called at first and in each new session, with the number of queues. lease is whether one
// of them is of leases. Then we are as patient as after TurnRound, or we would hardly ever be served
// where leases are held for long.
func (h *History) Begin(queues int, lease bool, now time.Time) {
	*h = History{
		sure:    backoff{first: firstBackoff, most: mostBackoff},
		unsure:  backoff{first: firstUnsure, most: mostBackoff},
		stall:   stallTimeout{waiting: now, patient: lease},
		checkIn: firstCheck,
		queues:  queues,
		heads:   h.heads,
	}
}

// Connected says that a connection has replaced another.
func (h *History) Connected(now time.Time) { h.stall.waiting = now }

// CameFirst says that our node has become first in a queue: there may be others behind
// it now.
func (h *History) CameFirst() { h.checkIn = firstCheck }

// SawHolder says which node has what we wait for in a queue, "" for none.
func (h *History) SawHolder(queue int, name string, now time.Time) {
	if h.heads == nil && name == "" {
		return
	}
	if h.heads == nil {
		h.heads = make([]head, h.queues)
	}
	at := &h.heads[queue]
	if at.name != name {
		*at = head{name: name, since: now, other: at.listed}
	}
	at.listed = now
}

// since is when the holder in a queue was first seen there. If it was not seen, it counts
// as there for ever.
func (h *History) since(queue int) time.Time {
	if h.heads == nil {
		return time.Time{}
	}
	return h.heads[queue].since
}

// undisturbed is since when the holder in a queue has been there, and we have not yielded. A
// yield has that time to be of use. Otherwise we would soon yield to an innocent one as well.
func (h *History) undisturbed(queue int) time.Time {
	if since := h.since(queue); since.After(h.yielded) {
		return since
	}
	return h.yielded
}

// TurnRound says that the queues come in reverse from now on.
func (h *History) TurnRound() {
	slices.Reverse(h.heads)
	h.stall.patient = true
	h.cycles = nil
}

// Suspects is whether there is something to learn from a view.
func (h *History) Suspects() bool { return len(h.cycles) > 0 }

// Learn looks whether suspicions were right. An owner that gave back what we wait for,
// while it still waits itself, was not waiting for us. An owner that no longer waits,
// although we never let it pass, has given up. In both cases waiting has paid, or would
// have.
func (h *History) Learn(v *View) {
	h.cycles = slices.DeleteFunc(h.cycles, func(c suspectedCycle) bool {
		at, of := &v.Queues[c.at], &v.Queues[c.of]
		if !at.Listed || !of.Listed {
			return false
		}
		waits, has := at.Has(c.waits), of.Has(c.has)
		switch {
		case waits && has:
			return false
		case waits, has && at.First && at.Own == c.own:
			h.of(c.grade).worth()
		}
		return true
	})
}

// patience is the backoff with an owner that waits behind us. Without a tag it may be any
// thread of a session. In a crowd of such threads, that all take their locks in one order,
// to yield to each of them makes a queue of everything. There waits are long.
func (h *History) patience(g grade, now time.Time) time.Duration {
	patience := h.of(g).time()
	if g == unsure {
		patience = max(patience, min(h.stall.time(now), mostUntagged))
	}
	return patience
}

func (h *History) of(g grade) *backoff {
	if g == sure {
		return &h.sure
	}
	return &h.unsure
}

// match compares a node behind us with one that has what we wait for, by all that we have seen.
func (h *History) match(has holder, waits *Node) ownerMatch {
	m := has.match(waits)
	if m == perhaps && h.differ(has, waits) {
		return unlike
	}
	return m
}

// differ is whether the owner of a node behind us, of which only the session shows, is not the
// one that has what we wait for. It makes no node while it waits, and waits in one queue at a
// time. So its node there is older than the one behind us, and had the lock before that was
// made. Readers and leases have it before they are at the head.
func (h *History) differ(has holder, waits *Node) bool {
	kind, _ := nodename.KindOf(has.Name)
	return has.Made > waits.Made || kind != nodename.Read && kind != nodename.Lease && h.heads != nil && waits.Seen.Before(h.heads[has.queue].other)
}

// remember keeps a suspicion until it has turned out right or wrong. It leaves out other
// MultiLocks, since their nodes also go when they yield.
func (h *History) remember(c suspectedCycle, multi bool) {
	if !multi && !slices.Contains(h.cycles, c) {
		h.cycles = append(h.cycles, c)
	}
}

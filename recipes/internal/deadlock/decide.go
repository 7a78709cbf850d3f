package deadlock

import (
	"time"

	"github.com/paddock-zk/paddock/internal/session/nodename"
)

// Reason is why to yield.
type Reason int

// The reasons to yield.
const (
	Time    Reason = iota // nothing has moved
	Among                 // the same, and who waits takes its locks in another way
	Matched               // an owner waits for us there, or may
)

// Decide says in which queues to yield now. The view must have all owners that matter.
// Decide counts the yield.
func (h *History) Decide(v *View) (yield []int, why Reason) {
	h.checkBy = time.Time{}
	held := v.held()
	h.stall.library = false
	var certain, uncertain, circled, beside []int
	for i := range v.Queues {
		q := &v.Queues[i]
		if !q.inTheWay() || len(q.Followers) == 0 {
			continue
		}
		switch {
		case v.isOutOfOrder(i):
			circled = append(circled, i)
		case q.Behind != nodename.Ways(0).With(v.Ours):
			beside = append(beside, i)
		}
		h.stall.library = h.stall.library || q.Behind.Has(nodename.Unknown)
		switch h.suspect(v, i, held) {
		case sure:
			certain = append(certain, i)
		case unsure:
			uncertain = append(uncertain, i)
		}
	}
	switch {
	case len(certain) > 0:
		h.sure.yielded()
		yield, why = certain, Matched
	case len(uncertain) > 0:
		h.unsure.yielded()
		yield, why = uncertain, Matched
	case len(circled) > 0 && h.stalled(v, h.stall.time(v.Now)):
		yield = circled
	case len(beside) > 0 && h.stalled(v, h.stall.beside(v.Now)):
		yield, why = beside, Among
	default:
		return nil, Time
	}
	h.checkIn, h.yielded = firstCheck, v.Now
	return yield, why
}

// holder is a node that has what we wait for in a queue.
type holder struct {
	*Node
	queue int
}

func (v *View) held() (all []holder) {
	for i := range v.Queues {
		for j := range v.Queues[i].Holders {
			if n := &v.Queues[i].Holders[j]; n.Known {
				all = append(all, holder{n, i})
			}
		}
	}
	return all
}

// suspect looks for an owner behind us in a queue that has what we wait for. It returns the
// grade whose backoff is over, if any.
func (h *History) suspect(v *View, at int, held []holder) (due grade) {
	q := &v.Queues[at]
	for i := range q.Followers {
		waits := &q.Followers[i]
		if !waits.Known {
			continue
		}
		for _, has := range held {
			var g grade
			switch m := h.match(has, waits); {
			case m == alike && q.defers(waits):
				g = sure
			case m == perhaps:
				g = unsure
			default:
				continue
			}
			h.remember(suspectedCycle{grade: g, at: at, own: q.Own, waits: waits.Name, of: has.queue, has: has.Name}, waits.Way.Yields())
			if v.Now.Sub(h.undisturbed(has.queue)) >= h.patience(g, v.Now) {
				due = max(due, g)
			}
		}
	}
	return due
}

// isOutOfOrder is whether a circle of owners that wait for each other may lead through us
// here, where we are first, and nobody else in it needs to see that. Everybody behind us
// may take its locks in our way. Then such a circle has an owner whose places are out of
// order, and it is for that owner to yield. [Decision 23] has the proof.
//
// [Decision 23]: https://github.com/paddock-zk/paddock/blob/main/docs/decisions/023-nobody-is-stuck.md
func (v *View) isOutOfOrder(at int) bool {
	here := &v.Queues[at]
	for i := range v.Queues {
		there := &v.Queues[i]
		inOrder := i > at
		if v.Ours == nodename.Joint {
			inOrder = here.Made != 0 && there.Made != 0 && there.Made <= here.Made
		}
		// While we wait for a lease, our turn keeps all other waiting MultiLocks from it.
		if there.Waits && !there.Lease && !inOrder {
			return true
		}
	}
	return false
}

// stalled is whether an owner has had what we wait for, for longer than that, and we have not
// yielded meanwhile.
func (h *History) stalled(v *View, patience time.Duration) bool {
	return min(h.longest(v), v.Now.Sub(h.yielded)) >= patience
}

// longest is how long an owner has had what we wait for, at most.
func (h *History) longest(v *View) (had time.Duration) {
	for i := range v.Queues {
		if len(v.Queues[i].Holders) > 0 {
			had = max(had, v.Now.Sub(h.since(i)))
		}
	}
	return had
}

// Next is the time to the next check. If an owner may wait for us, that is when it will
// have had what we wait for as long as our backoff. Otherwise, or if that is far off,
// checks come less and less often, since another owner may have come behind us. The check
// is no later than the end of the backoff with owners of which nothing shows. waits is
// whether another owner has what we wait for in a queue. below draws a time from 0 up to
// a limit.
//
// An earlier answer holds until that check, and is 0 or less if it is due. Otherwise newcomers that
// come over and over would put it off for ever.
func (h *History) Next(now time.Time, waits func(queue int) bool, below func(time.Duration) time.Duration) time.Duration {
	next := h.next(now, waits, below)
	if by := now.Add(next); h.checkBy.IsZero() || by.Before(h.checkBy) {
		h.checkBy = by
	}
	return h.checkBy.Sub(now)
}

func (h *History) next(now time.Time, waits func(queue int) bool, below func(time.Duration) time.Duration) time.Duration {
	next := h.checkIn/2 + below(h.checkIn)
	for i := range h.heads {
		if !waits(i) {
			continue
		}
		since := h.since(i)
		for _, patience := range []time.Duration{h.sure.time(), h.unsure.time()} {
			if left := h.undisturbed(i).Add(patience).Sub(now); left > 0 && left <= mostCheck {
				h.checkIn = firstCheck
				return left + below(patience/2)
			}
		}
		for _, stall := range []time.Duration{h.stall.time(now), h.stall.beside(now)} {
			if left := since.Add(stall).Sub(now); left > 0 {
				next = min(next, left+below(stall/stallJitter))
			}
		}
	}
	h.checkIn = min(2*h.checkIn, mostCheck)
	return next
}

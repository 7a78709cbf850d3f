package session

import "time"

// claims are the claims of a session, in lists, so that what a call or a look
// of the minder costs does not grow with their number. The session's mu guards
// them.
//
// Each claim is in the one list that fits its state, and besides in unwatched
// until somebody sets a watch on its node.
type claims struct {
	sure      claimList // held; those that were not checked for longest first
	doubted   claimList // uncertain
	asked     claimList // uncertain, with a check on its way
	blind     claimList // held, and we may not read the node
	unseen    claimList // uncertain, and we may not read the node
	waiting   claimList // not granted yet, as the session lease is too short
	unwatched claimList // the oldest first
}

// claimList is a list of claims through one of their links, first to last.
type claimList struct {
	link        int // which of a claim's links
	first, last *Claim
	n           int
}

// claimLink is a claim's place in a list, in none if in is nil.
type claimLink struct {
	in         *claimList
	prev, next *Claim
}

const (
	linkState = iota
	linkWatch
)

func newClaims() *claims { return &claims{unwatched: claimList{link: linkWatch}} }

func (l *claimList) push(cl *Claim) {
	cl.links[l.link] = claimLink{in: l, prev: l.last}
	if l.last != nil {
		l.last.links[l.link].next = cl
	} else {
		l.first = cl
	}
	l.last = cl
	l.n++
}

func (l *claimList) pushFirst(cl *Claim) {
	cl.links[l.link] = claimLink{in: l, next: l.first}
	if l.first != nil {
		l.first.links[l.link].prev = cl
	} else {
		l.last = cl
	}
	l.first = cl
	l.n++
}

// drop takes a claim out of the list that it is in by one of its links.
func drop(cl *Claim, link int) {
	at := cl.links[link]
	l := at.in
	if l == nil {
		return
	}
	if at.prev != nil {
		at.prev.links[link].next = at.next
	} else {
		l.first = at.next
	}
	if at.next != nil {
		at.next.links[link].prev = at.prev
	} else {
		l.last = at.prev
	}
	cl.links[link] = claimLink{}
	l.n--
}

// all are every claim.
func (c *claims) all() []*Claim {
	all := make([]*Claim, 0, c.len())
	for _, l := range []*claimList{&c.sure, &c.blind, &c.doubted, &c.asked, &c.unseen, &c.waiting} {
		for cl := l.first; cl != nil; cl = cl.links[linkState].next {
			all = append(all, cl)
		}
	}
	return all
}

func (c *claims) len() int { return c.granted() + c.waiting.n }

// granted is how many are or were held.
func (c *claims) granted() int { return c.sure.n + c.doubted.n + c.asked.n + c.blind.n + c.unseen.n }

func (c *claims) has(cl *Claim) bool { return cl.links[linkState].in != nil }

// doubt is whether a claim waits to be checked, which is not put off.
func (c *claims) doubt() bool { return c.doubted.n > 0 }

// add takes in a claim that is held.
func (c *claims) add(cl *Claim) {
	c.grade(cl, ClaimHeld, false)
	c.unwatched.push(cl)
}

// await takes in a claim that is to be granted.
func (c *claims) await(cl *Claim) { c.waiting.push(cl) }

func (c *claims) remove(cl *Claim) {
	cl.held.Store(false)
	drop(cl, linkState)
	drop(cl, linkWatch)
}

// grade says how sure a claim is from now on, and whether it can be checked.
func (c *claims) grade(cl *Claim, state ClaimState, blind bool) {
	cl.state, cl.blind = state, blind
	cl.held.Store(state == ClaimHeld)
	drop(cl, linkState)
	switch {
	case state == ClaimUncertain && blind:
		c.unseen.push(cl)
	case state == ClaimUncertain:
		c.doubted.push(cl)
	case blind:
		c.blind.push(cl)
	default:
		c.sure.push(cl)
	}
}

// pick returns claims to check, those in doubt first and, unless verify is set,
// others. What is picked comes last the next time. Only if there is no other it is
// one that is being checked, or cannot be.
func (c *claims) pick(most room, verify bool) []*Claim {
	lists := []*claimList{&c.doubted, &c.waiting, &c.sure}
	if verify {
		lists = lists[:1]
	}
	var picked []*Claim
	for _, l := range lists {
		for range l.n {
			cl := l.first
			if !most.take(cl.path) && len(picked) > 0 {
				return picked
			}
			drop(cl, linkState)
			if l == &c.doubted {
				c.asked.push(cl)
			} else {
				l.push(cl)
			}
			picked = append(picked, cl)
		}
	}
	if len(picked) > 0 || verify {
		return picked
	}
	for _, l := range []*claimList{&c.asked, &c.blind, &c.unseen} {
		if l.first != nil {
			return []*Claim{l.first}
		}
	}
	return nil
}

// unasked says that the checks of claims have not told how they stand.
func (c *claims) unasked(all []*Claim) {
	for _, cl := range all {
		if cl.links[linkState].in == &c.asked {
			drop(cl, linkState)
			c.doubted.push(cl)
		}
	}
}

// unchecked are the claims in doubt that no check can verify.
func (c *claims) unchecked() []*Claim {
	var found []*Claim
	for cl := c.unseen.first; cl != nil; cl = cl.links[linkState].next {
		found = append(found, cl)
	}
	return found
}

// lasted takes out claims without a watch that were made by the time given, as
// many as most: the caller sets their watches. next is when the first of the others
// was made; more says that there are others.
func (c *claims) lasted(by time.Duration, most int) (due []*Claim, next time.Duration, more bool) {
	for cl := c.unwatched.first; cl != nil; cl = c.unwatched.first {
		if cl.since > by || len(due) == most {
			return due, cl.since, true
		}
		drop(cl, linkWatch)
		due = append(due, cl)
	}
	return due, 0, false
}

// unwatch lets a watch be set again, before those of later claims.
func (c *claims) unwatch(cl *Claim) {
	if cl.links[linkWatch].in == nil {
		c.unwatched.pushFirst(cl)
	}
}

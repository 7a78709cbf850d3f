package session

import "time"

// trackedNodes are the tracked nodes of a session, in lists, so that what a call or a look
// of the run loop costs does not grow with their number. The session's mu guards
// them.
//
// Each tracked node is in the one list that fits its state. It is also in unwatched until
// the session sets a watch on its node.
type trackedNodes struct {
	held      trackedList // held; those that were not checked for longest first
	uncertain trackedList
	asked     trackedList // uncertain, with a check on its way
	blind     trackedList // held, and we may not read the node
	unseen    trackedList // uncertain, and we may not read the node
	waiting   trackedList // not granted yet, as the session lease is too short
	unwatched trackedList // the oldest first
}

// trackedList is a list of tracked nodes through one of their links, first to last.
type trackedList struct {
	link        int // which of a tracked node's links
	first, last *TrackedNode
	n           int
}

// trackedLink is a tracked node's place in a list, in none if in is nil.
type trackedLink struct {
	in         *trackedList
	prev, next *TrackedNode
}

const (
	linkState = iota
	linkWatch
)

func newTrackedNodes() *trackedNodes { return &trackedNodes{unwatched: trackedList{link: linkWatch}} }

func (l *trackedList) push(node *TrackedNode) {
	node.links[l.link] = trackedLink{in: l, prev: l.last}
	if l.last != nil {
		l.last.links[l.link].next = node
	} else {
		l.first = node
	}
	l.last = node
	l.n++
}

func (l *trackedList) pushFirst(node *TrackedNode) {
	node.links[l.link] = trackedLink{in: l, next: l.first}
	if l.first != nil {
		l.first.links[l.link].prev = node
	} else {
		l.last = node
	}
	l.first = node
	l.n++
}

// drop takes a tracked node out of the list that it is in by one of its links.
func drop(node *TrackedNode, link int) {
	at := node.links[link]
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
	node.links[link] = trackedLink{}
	l.n--
}

// all are every tracked node.
func (c *trackedNodes) all() []*TrackedNode {
	all := make([]*TrackedNode, 0, c.len())
	for _, l := range []*trackedList{&c.held, &c.blind, &c.uncertain, &c.asked, &c.unseen, &c.waiting} {
		for node := l.first; node != nil; node = node.links[linkState].next {
			all = append(all, node)
		}
	}
	return all
}

func (c *trackedNodes) len() int { return c.granted() + c.waiting.n }

// granted is how many are or were held.
func (c *trackedNodes) granted() int {
	return c.held.n + c.uncertain.n + c.asked.n + c.blind.n + c.unseen.n
}

func (c *trackedNodes) has(node *TrackedNode) bool { return node.links[linkState].in != nil }

// hasUncertain is whether a tracked node waits for a check that must not be put off.
func (c *trackedNodes) hasUncertain() bool { return c.uncertain.n > 0 }

// add takes in a tracked node that is held.
func (c *trackedNodes) add(node *TrackedNode) {
	c.grade(node, NodeHeld, false)
	c.unwatched.push(node)
}

// await takes in a tracked node that is to be granted.
func (c *trackedNodes) await(node *TrackedNode) { c.waiting.push(node) }

func (c *trackedNodes) remove(node *TrackedNode) {
	node.held.Store(false)
	drop(node, linkState)
	drop(node, linkWatch)
}

// grade says how sure a tracked node is from now on, and whether it can be checked.
func (c *trackedNodes) grade(node *TrackedNode, state TrackedState, blind bool) {
	node.state, node.blind = state, blind
	node.held.Store(state == NodeHeld)
	drop(node, linkState)
	switch {
	case state == NodeUncertain && blind:
		c.unseen.push(node)
	case state == NodeUncertain:
		c.uncertain.push(node)
	case blind:
		c.blind.push(node)
	default:
		c.held.push(node)
	}
}

// pick returns tracked nodes to check, those in doubt first and, unless verify is set,
// others. A node that was picked comes last the next time. Only if there is no other it is
// one that is being checked, or cannot be.
func (c *trackedNodes) pick(most Room, verify bool) []*TrackedNode {
	lists := []*trackedList{&c.uncertain, &c.waiting, &c.held}
	if verify {
		lists = lists[:1]
	}
	var picked []*TrackedNode
	for _, l := range lists {
		for range l.n {
			node := l.first
			if !most.Take(node.path) && len(picked) > 0 {
				return picked
			}
			drop(node, linkState)
			if l == &c.uncertain {
				c.asked.push(node)
			} else {
				l.push(node)
			}
			picked = append(picked, node)
		}
	}
	if len(picked) > 0 || verify {
		return picked
	}
	for _, l := range []*trackedList{&c.asked, &c.blind, &c.unseen} {
		if l.first != nil {
			return []*TrackedNode{l.first}
		}
	}
	return nil
}

// checkDone says that the checks of these tracked nodes have told nothing of them.
func (c *trackedNodes) checkDone(all []*TrackedNode) {
	for _, node := range all {
		if node.links[linkState].in == &c.asked {
			drop(node, linkState)
			c.uncertain.push(node)
		}
	}
}

// unseenNodes are the tracked nodes in doubt that no check can verify.
func (c *trackedNodes) unseenNodes() []*TrackedNode {
	var found []*TrackedNode
	for node := c.unseen.first; node != nil; node = node.links[linkState].next {
		found = append(found, node)
	}
	return found
}

// lasted takes out tracked nodes without a watch that were made by the time given, as many
// as most. The caller sets their watches. next is when the first of the others was made;
// more says that there are others.
func (c *trackedNodes) lasted(by time.Duration, most int) (due []*TrackedNode, next time.Duration, more bool) {
	for node := c.unwatched.first; node != nil; node = c.unwatched.first {
		if node.since > by || len(due) == most {
			return due, node.since, true
		}
		drop(node, linkWatch)
		due = append(due, node)
	}
	return due, 0, false
}

// requeueWatch lets a watch be set again, before those of later tracked nodes.
func (c *trackedNodes) requeueWatch(node *TrackedNode) {
	if node.links[linkWatch].in == nil {
		c.unwatched.pushFirst(node)
	}
}

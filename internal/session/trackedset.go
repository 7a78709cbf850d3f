package session

import (
	"time"

	"github.com/paddock-zk/paddock/internal/session/list"
)

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

type trackedList = list.List[TrackedNode]

// all are every tracked node.
func (c *trackedNodes) all() []*TrackedNode {
	all := make([]*TrackedNode, 0, c.len())
	for _, l := range []*trackedList{&c.held, &c.blind, &c.uncertain, &c.asked, &c.unseen, &c.waiting} {
		for node := range l.All() {
			all = append(all, node)
		}
	}
	return all
}

func (c *trackedNodes) len() int { return c.granted() + c.waiting.Len() }

// granted is how many are or were held.
func (c *trackedNodes) granted() int {
	return c.held.Len() + c.uncertain.Len() + c.asked.Len() + c.blind.Len() + c.unseen.Len()
}

func (c *trackedNodes) has(node *TrackedNode) bool { return node.graded.In() != nil }

// hasUncertain is whether a tracked node waits for a check that must not be put off.
func (c *trackedNodes) hasUncertain() bool { return c.uncertain.Len() > 0 }

// add takes in a tracked node that is held.
func (c *trackedNodes) add(node *TrackedNode) {
	c.grade(node, NodeHeld, false)
	c.unwatched.Push(node, &node.unwatched)
}

// await takes in a tracked node that is to be granted.
func (c *trackedNodes) await(node *TrackedNode) { c.waiting.Push(node, &node.graded) }

func (c *trackedNodes) remove(node *TrackedNode) {
	node.held.Store(false)
	node.graded.Remove()
	node.unwatched.Remove()
}

// grade says how sure a tracked node is from now on, and whether it can be checked.
func (c *trackedNodes) grade(node *TrackedNode, state TrackedState, blind bool) {
	node.state, node.blind = state, blind
	node.held.Store(state == NodeHeld)
	node.graded.Remove()
	switch {
	case state == NodeUncertain && blind:
		c.unseen.Push(node, &node.graded)
	case state == NodeUncertain:
		c.uncertain.Push(node, &node.graded)
	case blind:
		c.blind.Push(node, &node.graded)
	default:
		c.held.Push(node, &node.graded)
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
		for range l.Len() {
			node := l.First()
			if !most.Take(node.path) && len(picked) > 0 {
				return picked
			}
			node.graded.Remove()
			if l == &c.uncertain {
				c.asked.Push(node, &node.graded)
			} else {
				l.Push(node, &node.graded)
			}
			picked = append(picked, node)
		}
	}
	if len(picked) > 0 || verify {
		return picked
	}
	for _, l := range []*trackedList{&c.asked, &c.blind, &c.unseen} {
		if node := l.First(); node != nil {
			return []*TrackedNode{node}
		}
	}
	return nil
}

// checkDone says that the checks of these tracked nodes have told nothing of them.
func (c *trackedNodes) checkDone(all []*TrackedNode) {
	for _, node := range all {
		if node.graded.In() == &c.asked {
			node.graded.Remove()
			c.uncertain.Push(node, &node.graded)
		}
	}
}

// unseenNodes are the tracked nodes in doubt that no check can verify.
func (c *trackedNodes) unseenNodes() []*TrackedNode {
	var found []*TrackedNode
	for node := range c.unseen.All() {
		found = append(found, node)
	}
	return found
}

// lasted takes out tracked nodes without a watch that were made by the time given, as many
// as most. The caller sets their watches. next is when the first of the others was made;
// more says that there are others.
func (c *trackedNodes) lasted(by time.Duration, most int) (due []*TrackedNode, next time.Duration, more bool) {
	for node := c.unwatched.First(); node != nil; node = c.unwatched.First() {
		if node.since > by || len(due) == most {
			return due, node.since, true
		}
		node.unwatched.Remove()
		due = append(due, node)
	}
	return due, 0, false
}

// requeueWatch lets a watch be set again, before those of later tracked nodes.
func (c *trackedNodes) requeueWatch(node *TrackedNode) {
	if node.unwatched.In() == nil {
		c.unwatched.PushFront(node, &node.unwatched)
	}
}

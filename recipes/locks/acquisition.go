package locks

import (
	"slices"

	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// acquisition is one that asks the servers for the node of a mutex.
type acquisition struct {
	acquire.Single
	mutex *InterProcessMutex
	local *localQueue // those of this process who wait behind it, nil if each has a contender
	owned *ownership  // what came of it
	wait  *wait       // once it waits for others
	told  *acquiring  // as which the tracer knows it, nil for none
}

func (m *InterProcessMutex) newAcquisition(tag nodename.Tag, told *acquiring, local *localQueue) *acquisition {
	a := &acquisition{mutex: m, local: local, told: told}
	a.Init(&m.queue.Queue, tag, a, a)
	if local != nil {
		a.NoteMulti()
	}
	return a
}

// result is what came of a run: the ownership, or the error and who was in the way. After
// an error the caller has to leave the attempt, or another goroutine goes on with it.
func (a *acquisition) result(err error) (*ownership, *acquire.Obstacle, error) {
	if err != nil {
		return nil, obstacleOf(&a.Attempt, a.mutex.queue.Lock), err
	}
	return a.owned, nil, nil
}

// adopt goes on for another lock object, which makes the same node.
func (a *acquisition) adopt(m *InterProcessMutex, told *acquiring) {
	a.mutex, a.owned, a.told = m, nil, told
	a.Adopt(&m.queue.Queue, a, a)
}

// Own makes the ownership. The local queue knows it before the session can tell of its
// node.
func (a *acquisition) Own(_ int, node acquire.Node) acquire.Owner {
	a.owned = a.mutex.own(node)
	a.owned.local = a.local
	a.local.taken(a.owned)
	return a.owned
}

// Withdrawn says that the ownership has not got its node.
func (a *acquisition) Withdrawn(acquire.Owner) {
	a.owned = nil
	a.local.taken(nil)
}

// Observe tells the local queue and the log of waits.
func (a *acquisition) Observe(e acquire.Event) {
	switch e.Kind {
	case acquire.Begin:
		a.local.moved(e.Session)
	case acquire.Blocked:
		a.local.sawAhead(e.Position)
	case acquire.Wait:
		if a.wait == nil {
			a.wait = sharedOf(e.Queue.Core.Session()).waitLog.begin(e.Queue, 0)
		}
		a.wait.stands(&e)
	case acquire.End:
		a.wait.end()
		a.wait = nil
	}
	a.told.observe(&e)
}

// nodes are what an attempt for several nodes gets.
type nodes struct {
	own   func(i int, node acquire.Node) *ownership
	owned []*ownership
	waits []*wait
	spare int // leases of a semaphore that it does not need
	told  *acquiring
}

// Own makes one of the ownerships.
func (n *nodes) Own(i int, node acquire.Node) acquire.Owner {
	o := n.own(i, node)
	n.owned = append(n.owned[:i], o)
	return o
}

// Withdrawn says that an ownership has not got its node.
func (n *nodes) Withdrawn(acquire.Owner) { n.owned = nil }

// Observe tells the log of waits.
func (n *nodes) Observe(e acquire.Event) {
	switch e.Kind {
	case acquire.Wait:
		i := slices.IndexFunc(n.waits, func(w *wait) bool { return w.queue == e.Queue })
		if i < 0 {
			i = len(n.waits)
			n.waits = append(n.waits, sharedOf(e.Queue.Core.Session()).waitLog.begin(e.Queue, n.spare))
		}
		n.waits[i].stands(&e)
	case acquire.End:
		for _, w := range n.waits {
			w.end()
		}
		n.waits = nil
	}
	n.told.observe(&e)
}

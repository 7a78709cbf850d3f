package locks

import (
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// inspector shows what the locks of one client hold and wait for.
type inspector struct {
	session *session.Session
	shared  *shared
}

// Holds implements session.Inspector.
func (in inspector) Holds() []monitor.HoldInfo {
	owners := session.Owners(in.session)
	holds := make([]monitor.HoldInfo, 0, len(owners))
	participants := make(participants)
	for _, owner := range owners {
		o, ours := owner.(*ownership)
		if !ours || o.queue == nil {
			continue
		}
		info := monitor.HoldInfo{Since: o.since, Session: o.node.SessionID()}
		o.mu.Lock()
		info.Holds, info.Uncertain, info.MultiLock = len(o.holds), o.state.is == Uncertain, len(o.groups) > 0
		over := o.state.over()
		o.mu.Unlock()
		if over || info.Holds == 0 {
			continue
		}
		info.Lock = monitor.Lock{Kind: o.queue.Recipe, Path: o.queue.Lock, Node: o.node.Path(), Token: o.node.Token(), Participant: participants.of(&o.queue.Queue)}
		holds = append(holds, info)
	}
	return holds
}

// Waiters implements session.Inspector.
func (in inspector) Waiters() []monitor.WaiterInfo {
	var queues []*acquire.Queue
	var waiters []monitor.WaiterInfo
	note := func(q *acquire.Queue, w monitor.WaiterInfo) {
		queues, waiters = append(queues, q), append(waiters, w)
	}
	in.shared.waitLog.each(note)
	in.shared.localQueues.each(note)
	participants := make(participants)
	for i, q := range queues {
		w := &waiters[i]
		w.Lock.Kind, w.Lock.Path, w.Lock.Participant = q.Recipe, q.Lock, participants.of(q)
	}
	return waiters
}

// each reports the acquisitions that wait on the servers, by the queue they wait in.
func (wl *waitLog) each(note func(*acquire.Queue, monitor.WaiterInfo)) {
	wl.mu.Lock()
	defer wl.mu.Unlock()
	for w := wl.first; w != nil; w = w.next {
		if w.stands != acquire.Wait {
			continue
		}
		info := monitor.WaiterInfo{Lock: monitor.Lock{Node: w.node}, Since: w.since, Ahead: w.ahead}
		if w.predecessor != "" {
			info.Behind = w.queue.PathOf(w.predecessor)
		}
		info.Has, info.Wants = w.multi.standing()
		note(w.queue, info)
	}
}

// each reports the goroutines that wait in local queues.
func (lqs *localQueues) each(note func(*acquire.Queue, monitor.WaiterInfo)) {
	lqs.mu.Lock()
	defer lqs.mu.Unlock()
	for _, lq := range lqs.all {
		for ; lq != nil; lq = lq.other {
			for w := lq.first; w != nil; w = w.next {
				note(&lq.q.Queue, monitor.WaiterInfo{Since: lqs.made.Add(w.since), Local: true})
			}
		}
	}
}

// participants is the text that each queue's nodes have: all nodes of a queue have the
// same.
type participants map[*acquire.Queue]string

func (ps participants) of(q *acquire.Queue) string {
	participant, known := ps[q]
	if !known {
		participant = participantOf(q)
		ps[q] = participant
	}
	return participant
}

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
	in.shared.waitLog.each(func(of *acquisition, w *wait) {
		info := monitor.WaiterInfo{Lock: monitor.Lock{Node: w.node}, Since: w.since, Local: w.local}
		info.Ahead, info.Behind = w.at.Ahead(w.queue)
		info.Has, info.Wants = of.standing()
		queues, waiters = append(queues, w.queue), append(waiters, info)
	})
	participants := make(participants)
	for i, q := range queues {
		w := &waiters[i]
		w.Lock.Kind, w.Lock.Path, w.Lock.Participant = q.Recipe, q.Lock, participants.of(q)
	}
	return waiters
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

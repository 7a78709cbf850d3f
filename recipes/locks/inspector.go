package locks

import (
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// Holds implements session.Inspector.
func (sh *shared) Holds() []monitor.HoldInfo {
	owners := session.Owners(sh.waitLog.session)
	holds := make([]monitor.HoldInfo, 0, len(owners))
	for _, owner := range owners {
		o, ours := owner.(*ownership)
		if !ours {
			continue
		}
		info := monitor.HoldInfo{Since: o.since, Session: o.node.SessionID()}
		o.mu.Lock()
		info.Holds, info.Uncertain, info.MultiLock = len(o.holds), o.state == Uncertain, len(o.groups) > 0
		ended := o.err != nil
		o.mu.Unlock()
		if ended || info.Holds == 0 {
			continue
		}
		info.Lock = o.lock()
		holds = append(holds, info)
	}
	return holds
}

// Waiters implements session.Inspector.
func (sh *shared) Waiters() []monitor.WaiterInfo {
	var queues []*acquire.Queue
	var waiters []monitor.WaiterInfo
	sh.waitLog.each(func(of *acquisition, w *wait) {
		info := monitor.WaiterInfo{Lock: monitor.Lock{Node: w.node}, Since: w.since, Local: w.local}
		info.Ahead, info.Behind = w.at.Ahead(w.queue)
		info.Has, info.Wants = of.standing()
		queues, waiters = append(queues, w.queue), append(waiters, info)
	})
	var lock monitor.Lock
	for i, q := range queues {
		if i == 0 || q != queues[i-1] { // those in a local queue have one
			lock = lockOf(q) // under no mutex, as it asks the session
		}
		lock.Node = waiters[i].Lock.Node
		waiters[i].Lock = lock
	}
	return waiters
}

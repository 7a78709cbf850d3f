package zktest

import (
	"fmt"

	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// member is one server of an ensemble: a replica of the data, and an endpoint
// for clients with their watches.
type member struct {
	e        *ensemble
	index    int
	endpoint endpoint

	// guarded by ensemble.mu
	data    *tree.Tree
	applied int64 // zxid of the transaction that data has seen last
	watches watches
	conns   map[*conn]struct{} // until their goroutines have ended
	down    bool               // not opened yet, or stopped
	refuses bool               // new connections are turned away
	thaw    chan struct{}      // closed by Thaw; nil while not frozen
}

func newMember(e *ensemble, index int) *member {
	addr := e.cfg.listen
	if e.cfg.memory {
		addr = fmt.Sprintf("%s:%d", e.host, 1+index)
	}
	return &member{
		e:        e,
		index:    index,
		endpoint: endpoint{addr: addr},
		down:     true,
		data:     tree.New(),
		watches:  newWatches(),
		conns:    make(map[*conn]struct{}),
	}
}

// applyLocked brings the replica one transaction further. Events go out before
// the answer, so that no client sees an effect before the event that tells of it.
func (m *member) applyLocked(txn *tree.Txn, to reply) tree.Outcome {
	out := m.data.Apply(txn)
	m.applied = txn.Zxid
	for _, ev := range out.Events {
		m.watches.fireLocked(ev)
	}
	if to.conn != nil && to.conn.m == m {
		to.conn.answerLocked(to.xid, txn, out)
	}
	return out
}

package zktest

import (
	"bytes"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// Transaction is one write, as all members apply it. A refused one has a zxid
// too and changes nothing.
type Transaction struct {
	Zxid    int64
	At      time.Duration // since the start, by the clock that sessions are timed by
	Session int64         // that made it; for a "closeSession", the one that ended; 0 for the server itself
	Op      string        // under the names of Match.Op, or "createSession"
	Refused bool
	Changes []Change // in the order in which they happened
}

// Change is what a transaction did to one node.
type Change struct {
	Kind  ChangeKind
	Path  string
	Owner int64  // of a created ephemeral node, its session
	Data  []byte // of a created or changed node, as the transaction left it
}

// ChangeKind is what happened to a node.
type ChangeKind int

// The kinds of change.
const (
	Created ChangeKind = iota + 1
	Deleted
	DataSet
)

// String names the kind.
func (k ChangeKind) String() string {
	switch k {
	case Created:
		return "created"
	case Deleted:
		return "deleted"
	case DataSet:
		return "set"
	}
	return "unknown"
}

// TransactionLog keeps all transactions for Server.Transactions. A test can
// compare them with what its clients believed.
func TransactionLog() Option { return optionFunc(func(c *config) { c.log = true }) }

// Transactions returns what TransactionLog has kept, in the order of the zxids.
func (s *Server) Transactions() []Transaction {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return slices.Clone(s.e.log)
}

// logLocked keeps a transaction that data has just applied.
func (e *ensemble) logLocked(data *tree.Tree, txn *tree.Txn, out tree.Outcome) {
	if !e.cfg.log {
		return
	}
	t := Transaction{
		Zxid: txn.Zxid, At: time.Since(e.begun), Session: txn.Session, Op: txn.Op.String(),
		Refused: out.Result.Op == wire.OpError || txn.Op == wire.OpMulti && len(out.Multi) > 0 && out.Multi[0].Op == wire.OpError,
	}
	for _, ev := range out.Events {
		c := Change{Path: ev.Path}
		switch ev.Type {
		case wire.EventNodeCreated:
			c.Kind = Created
		case wire.EventNodeDeleted:
			c.Kind = Deleted
		case wire.EventNodeDataChanged:
			c.Kind = DataSet
		default:
			continue
		}
		if c.Kind != Deleted {
			text, stat, _ := data.Get(tree.Caller{IDs: []tree.ID{tree.SuperID}}, ev.Path)
			c.Data = bytes.Clone(text)
			if c.Kind == Created {
				c.Owner = stat.EphemeralOwner
			}
		}
		t.Changes = append(t.Changes, c)
	}
	e.log = append(e.log, t)
}

package acquire

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/cleanup"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// phase is how far a contender has come. Whether it is first is no phase: a list says
// so each time.
type phase uint8

const (
	absent    phase = iota // it has no node
	creating               // a request that makes its node has no known outcome
	queued                 // its node stands in the queue
	replacing              // a transaction that puts a new node in the place of its node has no known outcome
	givenAway              // its node belongs to an owner
)

// contender is one node in a queue, from the request that makes it until it is
// first or has left.
//
// It belongs to the session that its attempt is in. If that ends, the contender is absent
// again. A list may still show a node of the former session, which the servers are about
// to delete.
type contender struct {
	queue *Queue
	phase phase
	// mayStillAppear is whether an earlier creation had no reply and no list shows its node,
	// yet a server may still apply it. No phase: a later node may be queued meanwhile.
	mayStillAppear bool
	first          bool           // the latest list showed nobody ahead; no phase: each list says it anew
	behindOther    bool           // the latest list showed a node of another kind of lock ahead
	parentMade     bool           // the attempt has made its parent, which was missing
	admitted       bool           // a list has shown that the queue belongs to its kind of lock
	listsBehind    uint8          // how many in a row showed nobody ahead but a node of another kind
	beside         string         // of a part of a lock: who came first to the path of the lock itself, as another kind of lock; "" for nobody
	later          int32          // the lowest number there of those who came after our node, 0 as long as it is not known
	owner          nodename.Owner // whose it is

	prefix  string          // of the name of its node
	path    string          // of its node, in full; of the former one while replacing
	czxid   int64           // of its node, 0 if it is not known
	request *transport.Call // creating and replacing: that has no known outcome

	stat   *transport.Call // that asks for the czxid, nil for none
	statOn *transport.Conn // where it was sent

	snapshot *znode.Snapshot // of the queue, as the latest list showed it
	list     *transport.Call // whose reply that lies in, nil if others share it
}

// unknown is whether a request for the contender has no known outcome.
func (k *contender) unknown() bool { return k.phase == creating || k.phase == replacing }

// name is that of its node.
func (k *contender) name() string { return k.path[strings.LastIndexByte(k.path, '/')+1:] }

// creation is what makes its node.
func (k *contender) creation(c *transport.Conn) *wire.CreateRequest {
	path := session.Join(k.queue.Path, k.prefix+string(k.queue.Kind))
	return &wire.CreateRequest{Path: path, Data: k.queue.NodeData(c), ACL: k.queue.Core.ACL(path), Flags: wire.FlagEphemeralSequence}
}

// sent notes that a request is on its way that makes its node.
func (k *contender) sent(request *transport.Call) { k.phase, k.request = creating, request }

// refused notes that the request has made nothing.
func (k *contender) refused() { k.phase, k.request = absent, nil }

// made learns the name that the server has given its node: the name asked for, and a
// number. After any other name it is not known what the server has made.
func (k *contender) made(path string, czxid int64) error {
	at := strings.LastIndexByte(path, '/')
	if number, ok := strings.CutPrefix(path[at+1:], k.prefix); path[:max(at, 0)] != k.queue.Path || !ok || !strings.HasPrefix(number, string(k.queue.Kind)) {
		return fmt.Errorf("%w: the server says it made %q instead of %s and a number", session.ErrOutcomeUnknown,
			path, session.Join(k.queue.Path, k.prefix+string(k.queue.Kind)))
	}
	k.phase, k.path, k.czxid, k.request = queued, path, czxid, nil
	k.prefix = k.name()[:len(k.prefix)] // what lasts shares one string
	return nil
}

// find learns from a list whether a request of unknown outcome was applied. The session
// is the same, so a node with the contender's prefix is its own.
func (k *contender) find(children wire.Names) {
	former, found := k.name(), ""
	stands := false
	for _, name := range children.All() {
		if bytes.HasPrefix(name, []byte(k.prefix)) {
			found = string(name)
		}
		stands = stands || k.phase == replacing && string(name) == former
	}
	switch {
	case found != "":
		k.phase, k.path, k.czxid, k.request = queued, session.Join(k.queue.Path, found), 0, nil
	case stands: // it was not replaced
		k.phase, k.request, k.mayStillAppear = queued, nil, true
	default:
		// A server that had read the request when the connection was lost might apply
		// it only now. Nobody has seen that happen; it costs one look when we leave.
		k.phase, k.path, k.czxid, k.request, k.mayStillAppear = absent, "", 0, nil, true
	}
}

// lookAround looks for other kinds of locks at the path of the contender's lock. The first
// list after its node was made shows all that came before that. Those who come later see
// the parts of the lock, and are refused.
func (k *contender) lookAround(children wire.Names) {
	k.beside = ""
	if k.phase != queued {
		return
	}
	var lowest, next int32 = 0, 1
	for _, name := range children.All() {
		seq, ok := znode.Contender(name)
		if !ok || k.later != 0 && seq >= k.later {
			continue
		}
		if k.beside == "" || seq < lowest {
			k.beside, lowest = string(name), seq
		}
		next = max(next, seq+1)
	}
	if k.later == 0 {
		k.later = next
	}
}

// forget makes it absent, since its node is gone: its session has ended, or another
// client has deleted it.
func (k *contender) forget(id int64) {
	k.rename(id, k.owner.Way)
	k.drop()
	k.gone()
}

// rename gives its next node another name, which says that way, unless the owner has other locks.
func (k *contender) rename(id int64, way nodename.Way) {
	k.sweep(id)
	if k.owner.Way.Yields() {
		k.owner.Way = way
	}
	k.prefix = session.Protection(k.queue.Core.Session(), k.owner)
}

// gone notes that it has no node.
func (k *contender) gone() {
	k.phase, k.path, k.czxid, k.request, k.stat = absent, "", 0, nil, nil
	k.first, k.behindOther, k.admitted, k.listsBehind = false, false, false, 0
	k.beside, k.later = "", 0
}

// sweep looks for a second node, made by a creation that was applied late.
func (k *contender) sweep(id int64) {
	if k.mayStillAppear {
		k.mayStillAppear = false
		cleanup.Sweep(k.queue.Core.Session(), id, k.queue.Path, k.prefix)
	}
}

// drop gives back the memory of the latest list.
func (k *contender) drop() {
	if k.list != nil {
		k.snapshot.Free()
		k.list.Free()
	}
	k.snapshot, k.list = nil, nil
}

// leave gives up contenders of one client: in the background, if need be, until their
// nodes are known to be gone or the session is. They are absent afterwards, and have
// to get a new prefix before they queue again.
func leave(s *session.Session, id int64, all ...*contender) {
	var nodes []string
	for _, k := range all {
		switch k.phase {
		case queued:
			nodes = append(nodes, k.path)
		case replacing: // either of the two nodes may be there
			nodes = append(nodes, k.path)
			cleanup.RemoveDoubtful(s, id, k.request, k.queue.Path, k.prefix)
		case creating:
			cleanup.RemoveDoubtful(s, id, k.request, k.queue.Path, k.prefix)
		}
		k.sweep(id)
		k.drop()
		if k.phase != givenAway {
			k.gone()
		}
	}
	if len(nodes) > 0 {
		cleanup.RemoveAll(s, id, nodes)
	}
}

package transport

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// unanswered are the requests of a connection that were sent and have no reply, in the
// order of sending: calls of ours, and go-zookeeper's pings and requests.
//
// Servers answer in that order. So a reply to a later request shows that the reply to the
// first will never come, and its caller would wait for ever.
//
// Source: ZooKeeper's ClientCnxn, "Xid out of order".
type unanswered struct {
	queue []request
	first int // those before it are answered
}

// request is one that was sent.
type request struct {
	xid    int32
	call   *Call // nil if it is go-zookeeper's
	sentAt time.Time
}

func (u *unanswered) all() []request { return u.queue[u.first:] }

func (u *unanswered) add(r request) {
	if u.first > len(u.queue)/2 {
		left := copy(u.queue, u.all())
		clear(u.queue[left:])
		u.queue, u.first = u.queue[:left], 0
	}
	u.queue = append(u.queue, r)
}

// find returns the request of a reply, and nil if there is none.
func (u *unanswered) find(xid int32) *request {
	all := u.all()
	i := slices.IndexFunc(all, func(r request) bool { return r.xid == xid })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// take takes out the request of a reply. ok is whether there is one. The error is that a
// reply is missing before it.
func (u *unanswered) take(h wire.ReplyHeader) (r request, ok bool, err error) {
	found := u.find(h.Xid)
	if found == nil {
		return r, false, nil
	}
	r = *found
	switch next := &u.all()[0]; {
	case found == next:
		*next = request{}
		u.first++
	case overtakes(h.Code):
		u.queue = slices.DeleteFunc(u.queue, func(other request) bool { return other == r })
	default:
		return r, true, fmt.Errorf("%w: no reply to request %#x, but to %#x behind it", ErrProtocol, next.xid, h.Xid)
	}
	return r, true, nil
}

// overtakes is whether servers give a refusal at once, before the replies to earlier
// requests.
//
// Source: ZooKeeper's ReadOnlyRequestProcessor, UnimplementedRequestProcessor.
func overtakes(code wire.Code) bool {
	return code == wire.CodeNotReadOnly || code == wire.CodeUnimplemented
}

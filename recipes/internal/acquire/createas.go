package acquire

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// CreateAs makes a node in a queue that has the number, the tag and the session of a
// node that is held: without a contest. It is tried again until the node is known to
// have been made, or the session is over, which is session.ErrSessionOver. After an
// error nothing is left that is not being cleaned up; the node then only says what its
// path is.
func CreateAs(ctx context.Context, q *Queue, held *Node) (Node, error) {
	s := q.Core.Session()
	k := &contender{queue: q, tag: held.tag, prefix: session.Protection(s, held.tag, false)}
	path := session.Below(q.Path, k.prefix+string(q.Kind)+held.Digits())
	node := Node{queue: q, id: held.id, path: path, tag: held.tag}
	made := false
	defer func() {
		if !made { // also if a function of the caller's has panicked
			leave(s, held.id, k)
		}
	}()
	for failures := 0; ; failures++ {
		c, err := s.ConnIn(ctx, held.id)
		if err != nil {
			return node, err
		}
		create := transport.NewCall(wire.OpCreate2, &wire.CreateRequest{Path: path, Data: q.Data(c), ACL: q.Core.ACL(path), Flags: wire.FlagEphemeral})
		if err = s.Send(ctx, c, create); err == nil {
			before := *k
			k.sent(create)
			if err = s.Await(ctx, c, create, true); !errors.Is(err, session.ErrOutcomeUnknown) {
				k.phase, k.request = before.phase, before.request
			}
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists): // after a lost reply: nobody else has the name
			made = true
			return node, nil
		case ctx.Err() != nil, !passing(err):
			return node, err
		}
		if err := pause(ctx, failures); err != nil {
			return node, err
		}
	}
}

// Track makes the session answer for the node of an owner. The error is that of
// session.Session.Track.
func Track(ctx context.Context, o Owner) (err error) {
	n := o.Node()
	n.tracked, err = n.Session().Track(ctx, n.id, n.path, o.NodeChanged)
	return err
}

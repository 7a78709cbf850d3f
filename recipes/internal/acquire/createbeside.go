package acquire

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// CreateBeside makes a node in a queue that has the number, the tag and the session of a
// node that is held. So the new node has the lock without waiting. CreateBeside tries
// again until it knows that the node was made, or the session is over: then the error is
// session.ErrSessionOver. If the held node has gone, the error is zk.ErrNoNode. After an
// error CreateBeside cleans up, in the background if need be, and the node only has its
// path.
func CreateBeside(ctx context.Context, q *Queue, held *Node) (Node, error) {
	s := q.Core.Session()
	owner := nodename.Owner{Tag: held.tag, Way: nodename.Nesting}
	k := &contender{queue: q, owner: owner, prefix: session.Protection(s, owner)}
	path := session.Join(q.Path, k.prefix+string(q.Kind)+znode.Digits(held.path, held.queue.Kind))
	node := Node{queue: q, id: held.id, path: path, tag: held.tag}
	made := false
	defer func() {
		if !made {
			leave(s, held.id, k)
		}
	}()
	for failures := 0; ; failures++ {
		c, err := s.AwaitConnOf(ctx, held.id)
		if err != nil {
			return node, err
		}
		// If the held node has gone, it makes nothing: another owner may be first then, and a
		// node with the same number would stand ahead of it.
		create, err := transaction(&wire.MultiRequest{Ops: []wire.MultiOp{
			{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: held.path, Version: -1}},
			{Op: wire.OpCreate, Request: &wire.CreateRequest{Path: path, Data: q.NodeData(c), ACL: q.Core.ACL(path), Flags: wire.FlagEphemeral}},
		}})
		if err != nil {
			return node, err
		}
		if err = s.Send(ctx, c, create); err == nil {
			before := *k
			k.sent(create) // and stays so only without a known outcome, for leave
			if err = besideCreated(ctx, s, c, path, create); !errors.Is(err, session.ErrOutcomeUnknown) {
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

// besideCreated takes in the reply to that transaction.
func besideCreated(ctx context.Context, s *session.Session, c *transport.Conn, path string, create *transport.Call) error {
	results, err := results(ctx, s, c, create, 2)
	if err != nil {
		return err
	}
	at, code, err := refusal(results)
	if err != nil && at > 0 && code != wire.CodeOK {
		return s.Refusal(wire.OpCreate, path, code)
	}
	return err
}

package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// KeptNode is an ephemeral node that a client keeps, across connections and sessions: if it
// is gone, the client makes it again. Make it with Client.Keep, and end it with Remove. Its
// methods are safe for use by many goroutines.
type KeptNode struct {
	client *Client
	op     *op
	path   string // as the caller knows it
	data   []byte
	opts   []CreateOption
	stop   func()
	ended  chan struct{} // closed behind the last request
	left   error         // why the node could not be deleted; written before ended is closed

	mu    sync.Mutex    // guards the fields below
	first chan struct{} // closed once the node is there, nil then
	err   error
	since time.Time // since when the node is there, or is not
}

// kept has the nodes that a client keeps, by their paths in full.
var kept = session.Slot[sync.Map]{New: func(*session.Session) *sync.Map { return new(sync.Map) }}

// Keep makes an ephemeral node, and makes it again whenever it is gone: since a session has
// ended, or somebody has deleted it. It returns once the node is there; ctx bounds the call
// only. A client keeps a path once: of two, each would make the node again that the other
// removes.
//
// While the node of another session stands at path, Keep waits until that has gone. So it
// waits for up to a session timeout after a program was killed and started again. Data that
// others set stays, until the node is gone. data is copied. The client must have the right to
// read the node. Of another session's node that it may not read, it sees the end within half
// a minute; ZooKeeper 3.9 refuses with ErrNoAuth.
//
// Client.Entries, metrics and the page show it until Remove is called.
//
// Keeping does not renew the session lease as holding a lock does. So others may see the
// node gone, and one of theirs in its place, before Err says so. To exclude others, take a
// lock.
//
// Errors: those of Create, of which ErrNoNode says that the parent is missing, unless
// Parents is given; ErrUnsupported as of Subscribe; ctx.Err() together with the reason why
// the node is not there. Nothing is kept then, and what may have been made is deleted in the
// background. Protected and OrSet are ErrInvalidArgument, and so is a path that this client
// keeps already.
//
// Source: Curator's PersistentNode.
func (c *Client) Keep(ctx context.Context, path string, data []byte, opts ...CreateOption) (*KeptNode, error) {
	o, err := c.begin(ctx, "keep", path, true, false)
	if err != nil {
		return nil, err
	}
	options, err := createOptionsOf(Ephemeral, opts)
	switch {
	case err != nil:
	case options.protected:
		err = fmt.Errorf("%w: Protected would give each node another path", ErrInvalidArgument)
	case options.orSet:
		err = fmt.Errorf("%w: OrSet would overwrite what others set: leave it out, as Keep takes a node of this session for its own", ErrInvalidArgument)
	default:
		err = contextend.Of(ctx)
	}
	if err != nil {
		return nil, o.fail(err)
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	first := make(chan struct{})
	k := &KeptNode{client: c, op: o, path: path, data: bytes.Clone(data), opts: slices.Clone(opts), ended: make(chan struct{}), first: first, since: time.Now()}
	k.stop = func() {
		kept.Of(o.session).CompareAndDelete(o.path, k)
		stop()
	}
	if _, already := kept.Of(o.session).LoadOrStore(o.path, k); already {
		stop()
		return nil, o.fail(fmt.Errorf("%w: this client keeps it already: Remove that first", ErrInvalidArgument))
	}
	if !o.session.Go(func(life context.Context) { k.run(life, keeping) }) {
		k.stop()
		return nil, o.fail(ErrClosed)
	}
	select {
	case <-first:
		return k, nil
	case <-k.ended:
		return nil, k.Err()
	case <-ctx.Done():
		err := contextend.Of(ctx)
		if why := k.reason(); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		k.stop()
		return nil, o.fail(err)
	}
}

// Err is nil while the node is there, as far as the client knows. Otherwise it says why the
// node is not there: ErrNotConnected, or ErrNoNode, which is about to be cured, or
// ErrNodeExists, or a refusal. After Remove and Close it is ErrClosed.
func (k *KeptNode) Err() error {
	if k == nil || k.op == nil {
		return &OpError{Op: "keep", Err: ErrClosed}
	}
	return k.op.fail(k.reason())
}

// Remove deletes the node, and keeps it no more. It also deletes what may come of a creation
// that is on its way. If ctx ends first, that goes on in the background, and a later call
// waits for it.
//
// Errors: ErrClosed, since the node goes with the session, ctx.Err(), and ErrNoAuth: the node
// then stays until the session ends or somebody deletes it. A later call returns the same.
func (k *KeptNode) Remove(ctx context.Context) error {
	if k == nil || k.op == nil {
		return &OpError{Op: "keep", Err: ErrClosed}
	}
	if ctx == nil {
		return k.op.fail(ErrNilContext)
	}
	k.stop()
	select {
	case <-k.ended:
		return k.op.fail(k.left)
	case <-ctx.Done():
		return k.op.fail(contextend.Of(ctx))
	}
}

// String is the path and how the node is, for logs.
func (k *KeptNode) String() string {
	if k == nil || k.op == nil {
		return "kept node without a client"
	}
	if err := k.reason(); err != nil {
		return "kept node " + k.path + ": " + err.Error()
	}
	return "kept node " + k.path
}

func (k *KeptNode) reason() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// never is whether the node has not been there yet.
func (k *KeptNode) never() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.first != nil
}

// set takes in whether the node is there.
func (k *KeptNode) set(err error) {
	var op *OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if there := k.thereLocked(); there != (err == nil) {
		k.since = time.Now()
	}
	if err == nil && k.first != nil {
		close(k.first)
		k.first = nil
	}
	k.err = err
}

// thereLocked is whether the node is there, as far as the client knows.
func (k *KeptNode) thereLocked() bool { return k.first == nil && k.err == nil }

// entry is what the client shows.
func (k *KeptNode) entry() monitor.Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := monitor.Entry{Kind: "kept node", State: "missing", Since: k.since, Err: k.err}
	if k.thereLocked() {
		e.State = "there"
	}
	return e
}

// run keeps the node until keeping ends, and then deletes it.
func (k *KeptNode) run(life, keeping context.Context) {
	defer close(k.ended)
	defer context.AfterFunc(life, k.stop)()
	if shown, err := k.client.Show(k.path, k.entry); err == nil { // or it is closed
		defer shown.Remove()
	}
	err := k.keep(keeping)
	if errors.Is(err, ErrClosed) && life.Err() == nil {
		err = endedError("it was removed")
	}
	k.set(err)
	k.stop()
	err = session.RetryUntilDone(life, k.op.session, k.remove)
	switch {
	case err == nil:
	case life.Err() != nil:
		k.left = ErrClosed
	default:
		k.left = err
		k.report(err)
	}
}

func (k *KeptNode) report(err error) {
	k.op.session.Report("the servers refuse to keep a node", k.op.fail(err))
}

// keep follows the node for as long as it may. What is refused before the node was there
// once ends it.
func (k *KeptNode) keep(ctx context.Context) error {
	for pause := session.FirstPause; ; pause = min(2*pause, session.MostPause) {
		began := time.Now()
		err := k.follow(ctx)
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return ErrClosed
		}
		before := k.reason()
		k.set(err)
		if !session.Passing(err) && !errors.Is(err, ErrSessionExpired) {
			if k.never() {
				return err
			}
			if now := k.reason(); before == nil || before.Error() != now.Error() {
				k.report(now)
			}
		}
		if time.Since(began) > session.MostPause {
			pause = session.FirstPause
		}
		if session.Pause(ctx, k.op.session, pause) != nil {
			return ErrClosed
		}
	}
}

// follow makes the node whenever one subscription tells that it may be gone.
func (k *KeptNode) follow(ctx context.Context) error {
	sub, err := k.client.Subscribe(ctx, k.path)
	if err != nil {
		return err
	}
	defer sub.Stop()
	for {
		ev, err := k.next(ctx, sub)
		switch {
		case err != nil:
			return err
		case ev.Type == Gap:
			k.set(ev.Err)
			continue
		case ev.Type == NodeDeleted:
			k.set(ErrNoNode)
		case ev.Type != Established:
			continue
		}
		if err := k.make(ctx); err != nil {
			return err
		}
	}
}

// lookAgain is how often a node that is in the way is looked at.
const lookAgain = 30 * time.Second

// next is the next event, and Established now and then while a node of another session is in
// the way: servers do not tell a client of the end of a node that it may not read.
func (k *KeptNode) next(ctx context.Context, sub *Subscription) (Event, error) {
	if !errors.Is(k.reason(), ErrNodeExists) {
		return sub.Next(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	ev, err := sub.Next(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return Event{Type: Established}, nil
	}
	return ev, err
}

// make makes the node, or sees whose is in its place. An error is one after which no event
// need come.
func (k *KeptNode) make(ctx context.Context) error {
	for {
		_, err := k.client.Create(ctx, k.path, k.data, Ephemeral, k.opts...)
		if !errors.Is(err, ErrNodeExists) {
			if err == nil {
				k.set(nil)
			}
			return err
		}
		there, now, err := k.client.Exists(ctx, k.path)
		switch {
		case err != nil:
			return err
		case !there:
			continue
		}
		err = otherOwner(wire.FlagEphemeral, k.client.SessionID(), now.EphemeralOwner)
		if err != nil && now.EphemeralOwner == 0 {
			return err
		}
		k.set(err) // nil for our own; a session's end deletes its node, which is told
		return nil
	}
}

// remove deletes the node if it is of this session. Another session's goes with that.
func (k *KeptNode) remove(ctx context.Context) error {
	s := k.op.session
	c, err := s.AwaitConn(ctx, true)
	if err != nil {
		return err
	}
	// Behind a write, a creation whose reply was lost is not applied any more.
	barrier, look := session.Barrier(k.op.path), transport.NewCall(wire.OpExists, &wire.PathWatchRequest{Path: k.op.path})
	if err := s.Send(ctx, c, barrier, look); err != nil {
		return err
	}
	if err := session.AwaitBarrier(ctx, s, c, barrier); err != nil {
		return err
	}
	var now wire.StatResponse
	err = s.Await(ctx, c, look, false)
	if err == nil {
		err = look.Decode(&now)
	}
	switch {
	case errors.Is(err, ErrNoNode):
		return nil
	case err != nil:
		return err
	case now.Stat.EphemeralOwner != c.SessionID():
		return nil
	}
	return k.op.deleteNow(ctx, c, k.op.path)
}

package framework

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Watch delivers one event. It outlives the ctx it was set with and survives
// reconnecting within the session. Call Stop if nobody waits for the event any
// more.
type Watch struct {
	// C receives one event, then closes; it closes without one after Stop.
	C <-chan Event

	session *session.Session
	inner   *session.Watch
	c       chan Event
	once    sync.Once
}

// Event is what happened to a node.
type Event struct {
	Type EventType
	// Path is that of the node which was watched, or of one below it that a Subscription
	// tells of. It is without chroot and namespace, so calls of the same client take it.
	Path string
	// Err is why a watch ended, ErrSessionExpired or ErrClosed, or why there is a Gap:
	// ErrNotConnected or ErrBehind.
	Err error
	// Zxid is of a Subscription only, and 0 where it is not known. It is the transaction that
	// has changed the node, which servers tell from 3.9 on. Of Established it is the state
	// since which changes are told, of Answered the state that was read, and of Gap the last
	// state that the client has seen.
	Zxid int64
	// Results are those of a batch of reads, with Answered.
	Results []ReadResult
}

// EventType names the kinds of Event.
type EventType int

// The kinds of events.
const (
	NodeCreated EventType = iota + 1
	NodeDeleted
	NodeDataChanged
	NodeChildrenChanged
	WatchEnded // without an event; Event.Err says why
	// Established says that a Subscription tells of each change from now on.
	Established
	// Gap says that a Subscription misses changes until Established comes again.
	Gap
	// Answered is the answer to reads that were asked for by Subscription.Read.
	Answered
)

var eventTypes = map[wire.EventType]EventType{
	wire.EventNodeCreated:         NodeCreated,
	wire.EventNodeDeleted:         NodeDeleted,
	wire.EventNodeDataChanged:     NodeDataChanged,
	wire.EventNodeChildrenChanged: NodeChildrenChanged,
}

// String returns the name of the constant.
func (t EventType) String() string {
	names := [...]string{"", "NodeCreated", "NodeDeleted", "NodeDataChanged", "NodeChildrenChanged", "WatchEnded", "Established", "Gap", "Answered"}
	if t <= 0 || int(t) >= len(names) {
		return "EventType(" + strconv.Itoa(int(t)) + ")"
	}
	return names[t]
}

// Stop gives the watch up. Afterwards C is closed, and has an event only if one had
// come before. A client's watches on one node share one watch on the server, which
// is removed with the last of them. On a zero Watch, Stop does nothing.
func (w *Watch) Stop() {
	if w == nil || w.session == nil {
		return
	}
	session.StopWatch(w.session, w.inner)
	w.once.Do(func() { close(w.c) })
}

func (w *Watch) fire(ev Event) {
	w.once.Do(func() {
		w.c <- ev // has room for one
		close(w.c)
	})
}

// GetW is Get with a watch on the node's data and its end. After an error there
// is no watch.
func (c *Client) GetW(ctx context.Context, path string, opts ...GetOption) ([]byte, *Stat, *Watch, error) {
	o, options, err := c.beginGet(ctx, "get with watch", path, opts)
	if err != nil {
		return nil, nil, nil, err
	}
	var resp wire.GetDataResponse
	w, _, err := o.readW(ctx, session.WatchData, &resp)
	if err != nil {
		return nil, nil, nil, err
	}
	data, err := o.decompressed(path, resp.Data, options)
	if err != nil {
		w.Stop()
		return nil, nil, nil, err
	}
	return data, stat(&resp.Stat), w, nil
}

// ExistsW is Exists with a watch on the node's creation, data and end. After an
// error there is no watch. Servers from 3.8.4 on send no events about a node that
// the client may not read.
func (c *Client) ExistsW(ctx context.Context, path string) (bool, *Stat, *Watch, error) {
	var resp wire.StatResponse
	w, there, err := c.readW(ctx, existsW, path, session.WatchExists, &resp)
	switch {
	case err != nil:
		return false, nil, nil, err
	case !there:
		return false, nil, w, nil
	}
	return true, stat(&resp.Stat), w, nil
}

// ChildrenW is Children with a watch on the list and on the end of the node.
// After an error there is no watch.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, *Stat, *Watch, error) {
	var resp wire.GetChildren2Response
	w, _, err := c.readW(ctx, "children with watch", path, session.WatchChildren, &resp)
	if err != nil {
		return nil, nil, nil, err
	}
	return resp.Children, stat(&resp.Stat), w, nil
}

// existsW leaves a watch also if there is no node.
const existsW = "exists with watch"

type setWatch func(context.Context, *session.Session, *transport.Conn, string, func(session.Event)) (*transport.Call, *session.Watch, error)

// readW reads with a watch. The result there is false for a watch on a node
// that does not exist.
func (c *Client) readW(ctx context.Context, name, path string, set setWatch, resp wire.Record) (w *Watch, there bool, err error) {
	o, err := c.begin(ctx, name, path, false, false)
	if err != nil {
		return nil, false, err
	}
	return o.readW(ctx, set, resp)
}

func (o *op) readW(ctx context.Context, set setWatch, resp wire.Record) (w *Watch, there bool, err error) {
	o.absentIsFine = o.name == existsW
	err = o.do(ctx, func(ctx context.Context) error {
		w.Stop() // of a former attempt
		w, there, err = o.attemptW(ctx, set, resp)
		return err
	})
	if err != nil {
		w.Stop()
		return nil, false, err
	}
	return w, there, nil
}

func (o *op) attemptW(ctx context.Context, set setWatch, resp wire.Record) (*Watch, bool, error) {
	c, err := o.conn(ctx)
	if err != nil {
		return nil, false, err
	}
	ch := make(chan Event, 1)
	w := &Watch{C: ch, c: ch, session: o.session}
	call, inner, err := set(ctx, o.session, c, o.path, func(ev session.Event) { w.fire(o.event(ev)) })
	if err != nil {
		return nil, false, err
	}
	w.inner = inner
	err = o.session.Await(ctx, c, call, false)
	if errors.Is(err, ErrNoNode) && o.absentIsFine {
		return w, false, err
	}
	if err == nil {
		err = call.Decode(resp)
	}
	if err != nil {
		w.Stop()
		return nil, false, err
	}
	return w, true, nil
}

// event is an event as the caller knows paths.
func (o *op) event(ev session.Event) Event {
	if ev.Err != nil {
		return Event{Type: WatchEnded, Path: o.relative(o.path), Err: ev.Err}
	}
	return Event{Type: eventTypes[ev.Type], Path: o.relative(ev.Path)}
}

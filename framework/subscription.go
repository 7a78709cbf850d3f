package framework

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
)

// Subscription tells of the changes of a node, or of a subtree, for as long as the client
// lives: across connections and sessions. Make it with Client.Subscribe, and end it with
// Stop.
//
// It does not say what the nodes contain. Whoever wants to know reads them after an event
// of type Established. From there on each change is told, until a Gap says that changes
// have been missed. Then Established comes again, and it is time to read again.
//
// Events come in the order in which the server sends them, which is that of the changes. An
// event comes before the reply to any request of the same client that shows its change. An
// event may tell of a change that a reader has seen already, and may come twice.
type Subscription struct {
	op     *op
	most   int
	stream *session.Stream // set before anybody else has the subscription
	wake   chan struct{}   // holds a token while there may be something to read

	mu     sync.Mutex // guards the fields below
	queue  []queued
	events int             // in queue, besides marks and answers
	conn   *transport.Conn // the last one that has told
	reader *session.Reader // on conn; nil without a connection
	err    error           // why nothing follows, once queue is read
}

// queued is an event. What was read is decoded by who takes it out, since a list may be long
// and all else that the client is told waits behind the goroutine that reads the connection.
type queued struct {
	Event
	answer *session.Answer // of an event of type Answered
}

// ErrBehind is the reason of a Gap: the subscriber has read too slowly, and the events that
// it had not read were dropped. See Buffer.
var ErrBehind = errors.New("subscriber is too slow: events were dropped")

// defaultBuffer is how many events wait for a subscriber.
const defaultBuffer = 4096

// SubscribeOption changes one Subscribe.
type SubscribeOption interface{ subscribe(*subscribeOptions) }

type subscribeOptions struct {
	subtree bool
	buffer  int
}

type subscribeOption func(*subscribeOptions)

func (f subscribeOption) subscribe(o *subscribeOptions) { f(o) }

// Subtree subscribes to all nodes below path as well. There is no event of type
// NodeChildrenChanged then, since each child has events of its own.
func Subtree() SubscribeOption {
	return subscribeOption(func(o *subscribeOptions) { o.subtree = true })
}

// Buffer sets how many events may wait for a subscriber. Defaults to 4,096. If one more
// comes, the subscription drops all of them, and tells a Gap with ErrBehind and then
// Established.
func Buffer(events int) SubscribeOption {
	return subscribeOption(func(o *subscribeOptions) { o.buffer = events })
}

// Subscribe begins to watch path, which need not exist. It returns once a server does so;
// ctx bounds the call only. The first event is Established.
//
// Without Subtree there are events of path itself, and NodeChildrenChanged. Subscriptions
// of a client to one path share one watch on the server, which is removed with the last of
// them. Beside one with Subtree, one without does not hear of children that the client may
// not read. Servers from 3.8.4 on send no events about such nodes. No server tells that the
// right to read a node was taken away.
//
// A watch on the same path that is set through Conn ends a subscription without a sign, on
// servers before 3.9.
//
// Errors: ErrNotConnected, ErrClosed, ErrNoAuth if the server refuses to tell, which no known
// one does, and ErrUnsupported if it has no persistent watches. They came with ZooKeeper 3.6.
// Both end the client's other subscriptions to the path as well.
func (c *Client) Subscribe(ctx context.Context, path string, opts ...SubscribeOption) (*Subscription, error) {
	o, err := c.begin(ctx, "subscribe", path, false, false)
	if err != nil {
		return nil, err
	}
	options := subscribeOptions{buffer: defaultBuffer}
	for _, opt := range opts {
		if opt == nil {
			return nil, o.fail(fmt.Errorf("%w: option is nil", ErrInvalidArgument))
		}
		opt.subscribe(&options)
	}
	if options.buffer < 1 {
		return nil, o.fail(fmt.Errorf("%w: a buffer of %d events", ErrInvalidArgument, options.buffer))
	}
	var s *Subscription
	err = o.do(ctx, func(ctx context.Context) error {
		conn, err := o.conn(ctx)
		if err != nil {
			return err
		}
		s = &Subscription{op: o, most: options.buffer, wake: make(chan struct{}, 1)}
		s.stream, err = session.Follow(ctx, o.session, conn, o.path, options.subtree, s.notice)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Next waits for the next event.
//
// Errors: ErrClosed once Stop was called or the client is closed, ErrUnsupported and ErrNoAuth
// of a later server, as of Subscribe. After these nothing follows. After ctx.Err(), which it
// matches if ctx ends first, and after ErrNilContext, Next may be called again.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	if s == nil || s.op == nil {
		return Event{}, &OpError{Op: "subscribe", Err: ErrClosed}
	}
	if ctx == nil {
		return Event{}, s.op.fail(ErrNilContext)
	}
	for {
		if next, ok, err := s.take(); ok || err != nil {
			if next.answer != nil {
				next.Results = s.op.readResults(next.answer)
			}
			return next.Event, s.op.fail(err)
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Event{}, s.op.fail(contextend.Of(ctx))
		}
	}
}

func (s *Subscription) take() (next queued, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		if s.err != nil {
			s.tell() // others who wait
		}
		return queued{}, false, s.err
	}
	next, s.queue = s.queue[0], s.queue[1:]
	s.events -= next.one()
	if len(s.queue) == 0 {
		s.queue = nil // events are few, and then many
	}
	if s.queue != nil || s.err != nil {
		s.tell()
	}
	return next, true, nil
}

// Read asks for nodes, and does not wait. What they are comes as an event of type Answered,
// in its place among the other events: it shows whatever changes were told before it, and
// none that are told after it. So a copy of the nodes can be kept. The nodes need not be
// those that are subscribed to.
//
// Reads leave in batches as with ReadAll, each of which has an event of its own. Until about
// 128 reads wait, two batches are on their way at most. After a Gap, and when the client is
// closed, reads that were asked for before may never be answered.
//
// Errors: ErrInvalidPath. Nothing was asked for then.
func (s *Subscription) Read(reads ...Read) error {
	if s == nil || s.op == nil {
		return &OpError{Op: "subscribe", Err: ErrClosed}
	}
	ops, err := s.op.readOps(reads)
	if err != nil {
		return err
	}
	s.mu.Lock()
	reader := s.reader
	s.mu.Unlock()
	if reader != nil {
		reader.Ask(ops)
	}
	return nil
}

// answered takes in what has been read.
func (s *Subscription) answered(from *session.Reader, a *session.Answer) {
	if errors.Is(a.Err, ErrNotConnected) || errors.Is(a.Err, ErrClosed) {
		return // Gap says it, or the end
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.reader == from {
		s.queue = append(s.queue, queued{Event{Type: Answered, Path: s.op.relative(s.op.path), Zxid: a.Zxid}, a})
		s.tell()
	}
}

// readOn begins to read on a connection, or on none.
func (s *Subscription) readOn(c *transport.Conn) {
	if s.reader != nil {
		s.reader.Stop()
		s.reader = nil
	}
	if c != nil {
		var reader *session.Reader
		reader = session.NewReader(s.op.session, c, func(a *session.Answer) { s.answered(reader, a) })
		s.reader = reader
	}
}

// Events are the results of Next. The last one is an error, of ctx or another one.
func (s *Subscription) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			ev, err := s.Next(ctx)
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// Stop ends the subscription. What was not read is dropped. A second call does nothing.
func (s *Subscription) Stop() {
	if s == nil || s.op == nil {
		return
	}
	session.Unfollow(s.op.session, s.stream)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = nil
	s.readOn(nil)
	if s.err == nil {
		s.err = endedError("it was stopped")
	}
	s.tell()
}

// tell wakes one who waits. It does not block.
func (s *Subscription) tell() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// notice takes in what the session tells.
func (s *Subscription) notice(n session.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	switch n.Kind {
	case session.Established:
		s.forgetGap()
		s.conn = n.Conn
		s.readOn(s.conn)
		s.queueLocked(Event{Type: Established, Path: s.op.relative(s.op.path), Zxid: n.Zxid})
	case session.Gap:
		s.readOn(nil)
		if !s.forgetGap() {
			s.queueLocked(s.gap(n.Zxid, session.NoticeError(n)))
		}
	case session.Ended:
		s.err = session.NoticeError(n)
	case session.Changed:
		if s.events++; s.events > s.most {
			s.events = 1
			s.queue = nil
			s.queueLocked(s.gap(0, ErrBehind))
			s.queueLocked(Event{Type: Established, Path: s.op.relative(s.op.path)})
			s.readOn(s.conn)
		}
		s.queueLocked(Event{Type: eventTypes[n.Type], Path: s.op.relative(n.Path), Zxid: n.Zxid})
	}
	s.tell()
}

func (s *Subscription) queueLocked(ev Event) { s.queue = append(s.queue, queued{Event: ev}) }

// one is 1 for what Buffer counts.
func (ev Event) one() int {
	switch ev.Type {
	case Established, Gap, Answered:
		return 0
	}
	return 1
}

func (s *Subscription) gap(zxid int64, err error) Event {
	return Event{Type: Gap, Path: s.op.relative(s.op.path), Zxid: zxid, Err: err}
}

// forgetGap drops what follows the first gap that was not read, and reports whether there is
// one. A subscriber has to read everything behind it anyway, so outages that nobody reads of
// take no memory.
func (s *Subscription) forgetGap() bool {
	for i, ev := range s.queue {
		if ev.Type == Gap {
			for _, ev := range s.queue[i+1:] {
				s.events -= ev.one()
			}
			s.queue = s.queue[:i+1]
			return true
		}
	}
	return false
}

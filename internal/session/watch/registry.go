// Package watch keeps the watches of one session on its servers. It knows which are set,
// which subscriptions wait for each, and which to set again on the next connection. It
// sends its own requests, and has a mutex of its own.
package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Event is what happened to a watched node. Its type is 0 if the watch ended
// without one, and Err says why.
type Event struct {
	Type wire.EventType
	Path string
	Err  error
}

// Watch is one subscription to the next event of a node.
type Watch struct {
	key   watched
	fn    func(Event)
	phase phase // guarded by the registry's mu, like the fields below
	// seen is the state that the read has shown. Since then there was no event, and so no
	// change: the watch can be set again relative to it.
	seen int64
	// shared is whether a persistent watch of the same path takes the place of this one on
	// the server, and changes how many changes of such watches had been sent.
	shared  bool
	changes int
}

type phase int8

const (
	phaseSetting phase = iota // the request is on its way
	phaseSet
	phaseOver
)

// Kind is what a watch sees.
type Kind int8

// The kinds of a watch.
const (
	Data   Kind = iota // a node that is there
	Exists             // a node that is not
	Children
)

// watched is what a watch is set on.
type watched struct {
	path string
	kind Kind
}

// Registry shares the watches on the server between all subscriptions of a node. The
// server keeps one watch for each session, node and kind, however often a client asks.
// The registry removes a watch on the server when no subscription is left.
//
// Requests that set a watch and those that remove one are queued under mu, so
// that they reach the server in the order in which the registry decided. Events
// and replies come in the order of the wire. Setters counts the requests on
// their way, during which nothing is removed.
//
// Lock order: mu, then the connection's. Callbacks are called without.
type Registry struct {
	mostBytes int // in a request that sets several

	mu      sync.Mutex           // guards the fields below
	conn    *transport.Conn      // nil while not connected
	subs    map[watched][]*Watch // the first to ask comes first
	setters map[watched]int
	owed    map[standing]bool // to be removed once no setter is on its way, or it is their turn
	late    []standing        // owed, or no more, because too many removals are on their way
	removes int               // removals on their way
	from    int64             // the state up to which all watches for one event have stood on servers
	again   int               // requests that set them again, and were not answered
	ended   error             // set at close
	streams map[string]*persistent
	changes int  // of persistent watches that were sent
	noModes bool // this server cannot remove a watch by its mode
}

// standing is a watch as the server knows it: it sees no difference between
// watching data and existence.
type standing struct {
	path  string
	child bool
}

func (k watched) standing() standing { return standing{k.path, k.kind == Children} }

func (st standing) kinds() []Kind {
	if st.child {
		return []Kind{Children}
	}
	return []Kind{Data, Exists}
}

// New is a registry whose requests are that long at most.
func New(mostBytes int) *Registry {
	return &Registry{
		mostBytes: min(mostBytes, setWatchesSize),
		subs:      make(map[watched][]*Watch), setters: make(map[watched]int), owed: make(map[standing]bool),
		streams: make(map[string]*persistent),
	}
}

// Set sends a request that sets a watch. fn gets the one event, in the
// goroutine that reads the connection; it must not block. The error is that of End, or
// a *transport.LostError.
func (w *Registry) Set(c *transport.Conn, call *transport.Call, kind Kind, path string, fn func(Event)) (*Watch, error) {
	sub := &Watch{key: watched{path, kind}, fn: fn}
	before := call.OnReply
	call.OnReply = func(call *transport.Call) {
		w.answered(sub, call)
		if before != nil {
			before(call)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return nil, w.ended
	}
	if sub.shared = w.sharedLocked(sub.key); sub.shared {
		call.Unwatched()
	}
	sub.changes = w.changes
	if err := c.Send(call); err != nil {
		return nil, err
	}
	w.setters[sub.key]++
	return sub, nil
}

// answered settles what a request to set a watch has done.
func (w *Registry) answered(sub *Watch, call *transport.Call) {
	if ended := w.settle(sub, call); ended != nil {
		// The caller that waits for the reply learns that the watch stands, and so waits
		// for its event too.
		sub.fn(Event{Path: sub.key.path, Err: ended})
	}
}

// settle returns an error if the watch was set when the registry had ended.
func (w *Registry) settle(sub *Watch, call *transport.Call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := sub.key
	if w.setters[asked]--; w.setters[asked] == 0 {
		delete(w.setters, asked)
	}
	isSet := call.Replied() && call.Code() == wire.CodeOK
	if asked.kind == Exists {
		switch {
		case isSet: // the node is there, so the server watches its data
			sub.key.kind = Data
		case call.Replied() && call.Code() == wire.CodeNoNode:
			isSet = true
		}
	}
	sub.seen = call.Zxid()
	switch {
	case sub.phase == phaseSetting && isSet && w.ended != nil:
		sub.phase = phaseOver
		return w.ended
	case sub.phase == phaseSetting && isSet:
		sub.phase = phaseSet
		w.subs[sub.key] = append(w.subs[sub.key], sub)
		if w.displacedLocked(sub) {
			w.setAgainLocked(sub.key)
			if p := w.streams[sub.key.path]; p != nil && len(p.streams) > 0 && w.conn != nil && w.sharedLocked(sub.key) {
				_ = w.conn.Send(w.addLocked(w.conn, sub.key.path)) // which may have been displaced by that in turn
				w.childrenAgainLocked(sub.key.path)
			}
		}
	case isSet || w.owed[sub.key.standing()]:
		sub.phase = phaseOver
		w.releaseLocked(sub.key.standing())
	default:
		sub.phase = phaseOver
	}
	return nil
}

// Stop gives a watch up. Its callback may be running, or about to.
func (w *Registry) Stop(sub *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := sub.phase
	sub.phase = phaseOver
	if was != phaseSet {
		return
	}
	left := slices.DeleteFunc(w.subs[sub.key], func(other *Watch) bool { return other == sub })
	if w.subs[sub.key] = left; len(left) == 0 {
		delete(w.subs, sub.key)
	}
	w.releaseLocked(sub.key.standing())
}

// releaseLocked removes a watch from the server if no subscription waits for it. While a
// request that sets one is on its way, it only remembers the removal. Otherwise the watch
// would stay if that request failed.
func (w *Registry) releaseLocked(st standing) {
	delete(w.owed, st)
	for _, kind := range st.kinds() {
		k := watched{st.path, kind}
		switch {
		case w.subs[k] != nil:
			return
		case w.setters[k] > 0:
			w.owed[st] = true
		}
	}
	if w.owed[st] || w.conn == nil {
		return // the server forgets its watches with the connection
	}
	if w.sharedLocked(watched{st.path, st.kinds()[0]}) {
		w.owed[st] = true // a removal might take the persistent watch as well
		return
	}
	if w.removes == mostRemoves {
		w.owed[st] = true
		w.late = append(w.late, st)
		return
	}
	typ := wire.WatchData
	if st.child {
		typ = wire.WatchChildren
	}
	// If it cannot be sent the connection is gone, and the watch with it. If the
	// server refuses, the watch has just fired.
	call := transport.NewCall(wire.OpRemoveWatches, &wire.WatchesRequest{Path: st.path, Type: typ})
	call.OnReply = func(call *transport.Call) {
		onceAnswered(call, func(again bool) { w.removed(st, again) })
	}
	if w.conn.Send(call) == nil {
		w.removes++
	}
}

// mostRemoves bounds the removals on their way, since thousands of watches may be
// given up at once.
const mostRemoves = 256

// onceAnswered calls fn with whether a removal is to be sent again, since a server that has too
// much to do has done nothing. Then it waits first.
//
// Source: ZooKeeper's RequestThrottler.
func onceAnswered(call *transport.Call, fn func(again bool)) {
	if call.Replied() && call.Code() == wire.CodeThrottledOp {
		time.AfterFunc(pauseOfRemovals, func() { fn(true) })
		return
	}
	fn(false)
}

const pauseOfRemovals = time.Second

// removed says that a removal was answered: another one has its turn, or the same again.
func (w *Registry) removed(st standing, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removes--
	if again {
		w.releaseLocked(st)
	}
	for len(w.late) > 0 && w.removes < mostRemoves {
		st := w.late[0]
		w.late = w.late[1:]
		if w.owed[st] {
			w.releaseLocked(st)
		}
	}
}

// Fire passes an event to those who wait for it, first to the streams. The zxid is that of
// the transaction, 0 if the server does not tell it.
func (w *Registry) Fire(ev wire.WatcherEvent, zxid int64) {
	w.pass(ev, zxid)
	w.fireOnce(ev)
}

// fireOnce passes an event to the subscriptions that wait for one.
func (w *Registry) fireOnce(ev wire.WatcherEvent) {
	var kinds []Kind
	switch ev.Type {
	case wire.EventNodeCreated, wire.EventNodeDataChanged:
		kinds = []Kind{Data, Exists}
	case wire.EventNodeChildrenChanged:
		kinds = []Kind{Children}
	case wire.EventNodeDeleted:
		kinds = []Kind{Data, Exists, Children}
	default:
		return // the removal of a watch, which we asked for
	}
	var fired []*Watch
	w.mu.Lock()
	for _, kind := range kinds {
		key := watched{ev.Path, kind}
		fired = append(fired, w.subs[key]...)
		delete(w.subs, key)
	}
	for _, sub := range fired {
		sub.phase = phaseOver
	}
	w.mu.Unlock()
	for _, sub := range fired {
		sub.fn(Event{Type: ev.Type, Path: ev.Path})
	}
}

// setWatchesSize bounds one request that sets watches, besides what servers accept,
// and setWatchesFrame is what it has besides the paths.
const (
	setWatchesSize  = 128 << 10
	setWatchesFrame = 8 + 8 + 3*4
)

// Begin sets every watch again on a new connection of the same session. The
// server answers with the events that were missed since it had the state seen.
//
// Other replies may come before all watches stand, and show later states. If the connection
// ends then, the next one begins at the same state as this one. So a watch that was set
// meanwhile may tell of a change that its reader has seen.
func (w *Registry) Begin(c *transport.Conn, seen int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = c
	if w.again == 0 {
		w.from = seen
	}
	w.again = w.setWatchesLocked(c, w.from, slices.Collect(maps.Keys(w.subs)), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.conn == c {
			w.again--
		}
	})
	for path, p := range w.streams {
		if len(p.streams) == 0 {
			delete(w.streams, path) // its removal was on the way
		}
	}
	for _, path := range slices.Sorted(maps.Keys(w.streams)) {
		w.addAgainLocked(c, path)
	}
}

// setWatchesLocked sets watches for one event each, unless there was one since the state
// seen. It calls set for each request that has done so, and returns how many there are.
func (w *Registry) setWatchesLocked(c *transport.Conn, seen int64, keys []watched, set func()) (requests int) {
	most := min(w.mostBytes, c.Limit(wire.OpSetWatches, w.mostBytes))
	req := &wire.SetWatchesRequest{RelativeZxid: seen}
	size, first := 0, 0
	flush := func(next int) {
		if size == 0 {
			return
		}
		call, asked := transport.NewCall(wire.OpSetWatches, req), keys[first:next]
		call.OnReply = func(call *transport.Call) {
			switch {
			case !call.Replied():
			case call.Code() == wire.CodeOK:
				set()
			case call.Code() == wire.CodeThrottledOp:
				onceAnswered(call, func(bool) { w.setLater(c, seen, asked, set) })
			default:
				notSet(c, call.Code())
			}
		}
		requests++
		_ = c.Send(call) // if the connection is gone, the next one does it
		req, size, first = &wire.SetWatchesRequest{RelativeZxid: seen}, 0, next
	}
	slices.SortFunc(keys, func(a, b watched) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind))
	})
	for i, key := range keys {
		more := len(key.path) + 4
		if size+more > most-setWatchesFrame {
			flush(i)
		}
		size += more
		switch key.kind {
		case Data:
			req.Data = append(req.Data, key.path)
		case Exists:
			req.Exist = append(req.Exist, key.path)
		case Children:
			req.Child = append(req.Child, key.path)
		}
	}
	flush(len(keys))
	return requests
}

// setLater sets the watches of a request for which a server had too much to do, as far as they
// are still waited for. The server tells then what they have missed. It is one request at most,
// as what the servers take does not become less while a connection lasts.
func (w *Registry) setLater(c *transport.Conn, seen int64, keys []watched, set func()) {
	w.mu.Lock()
	if w.conn != c {
		w.mu.Unlock()
		return
	}
	left := slices.DeleteFunc(slices.Clone(keys), func(key watched) bool { return w.subs[key] == nil })
	// Behind a persistent watch it would take the place of that. The next connection has both.
	shared, requests := slices.ContainsFunc(left, w.sharedLocked), 0
	if !shared {
		requests = w.setWatchesLocked(c, seen, left, set)
	}
	w.mu.Unlock()
	switch {
	case shared:
		notSet(c, wire.CodeThrottledOp)
	case requests == 0:
		set()
	}
}

// notSet ends a connection on which watches are waited for and would never fire. It is told,
// and not to be matched: it answers none of the requests that end with the connection.
func notSet(c *transport.Conn, code wire.Code) {
	c.Kill(fmt.Errorf("watches are not set again: %s", code))
}

// Down says that the connection has ended, why, and which state it has shown last.
func (w *Registry) Down(err error, last int64) {
	w.mu.Lock()
	w.conn, w.late, w.noModes = nil, nil, false
	clear(w.owed)
	cut := w.cutLocked()
	w.mu.Unlock()
	for _, st := range cut {
		st.fn(Notice{Kind: Gap, Zxid: last, Err: err})
	}
}

// End ends every watch for one event. With last it ends the streams too, and no more can be
// set.
func (w *Registry) End(err error, last bool) {
	w.mu.Lock()
	all := w.subs
	w.subs, w.again = make(map[watched][]*Watch), 0
	var streams map[string]*persistent
	if last {
		w.ended = err
		streams, w.streams = w.streams, nil
	}
	for _, subs := range all {
		for _, sub := range subs {
			sub.phase = phaseOver
		}
	}
	w.mu.Unlock()
	for key, subs := range all {
		for _, sub := range subs {
			sub.fn(Event{Path: key.path, Err: err})
		}
	}
	for _, p := range streams {
		for _, st := range p.streams {
			st.fn(Notice{Kind: Ended, Err: err})
		}
	}
}

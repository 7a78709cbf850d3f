package watch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// NoticeKind is what a Notice tells.
type NoticeKind int8

// The kinds of notices.
const (
	// Established says that from now on each change is told.
	Established NoticeKind = iota + 1
	// Changed tells of an event.
	Changed
	// Gap says that changes are not told until Established comes again.
	Gap
	// Ended says that nothing follows.
	Ended
)

// Notice is what a stream is told, in the order of the wire.
type Notice struct {
	Kind NoticeKind
	// Zxid is the state from which on changes are told, the transaction that has changed
	// something, or the last state that was seen before a gap. It is 0 if that is not known.
	Zxid int64
	Type wire.EventType  // of Changed
	Path string          // of Changed
	Conn *transport.Conn // of Established: the connection that tells
	Err  error           // of Gap, and of Ended unless the servers have refused
	Code wire.Code       // of Ended: how they have
}

// Stream is a persistent watch, across connections and sessions.
type Stream struct {
	path    string
	subtree bool
	fn      func(Notice)
	phase   streamPhase // guarded by the registry's mu, like the fields below
	request int         // which change it has asked with
	stood   bool        // its watch has stood
}

type streamPhase int8

const (
	streamDown streamPhase = iota // its watch is not on its way
	streamAsked
	streamUp
)

// persistent is what stands, or is to stand, on the servers for the streams of one path.
//
// A server before 3.9 keeps one mode for a path and connection: what is set last takes the
// place of what was there, and a removal takes all. So a path has a persistent watch or
// those for one event, never both. While it has an entry, reads with a watch on this path
// leave without it, and get their event from the persistent one. When the entry goes, their
// watches are set. A child watch does no harm to the recursive watch of a path, and tells
// of children which one may not read. So these two stand together.
//
// Source: ZooKeeper 3.8, WatcherModeManager; WatchManager.removeWatcher.
type persistent struct {
	streams []*Stream
	asked   persistentMode // what the server has, or will have once it reads what was sent
	changes int            // which change was the latest to be sent, so that a late answer is not taken for its
	removed int            // up to which change there was none at times
	deep    bool           // the server may have the recursive watch

	removals [modeSubtree + 1]int // of each mode that are on their way, or refused and to be sent again
}

type persistentMode int8

const (
	modeNone persistentMode = iota
	modeNode
	modeSubtree
)

func (p *persistent) wanted() persistentMode {
	mode := modeNone
	for _, st := range p.streams {
		if st.subtree {
			return modeSubtree
		}
		mode = modeNode
	}
	return mode
}

// sharedLocked is whether a persistent watch serves watches of that kind for one event.
func (w *Registry) sharedLocked(key watched) bool {
	p := w.streams[key.path]
	return p != nil && p.asked != modeNone && (key.kind != Children || p.asked == modeNode)
}

// setAgainLocked sets the watch for one event that a persistent one has stood for. The
// server compares with what was read, so nothing is missed.
func (w *Registry) setAgainLocked(key watched) {
	if subs := w.subs[key]; len(subs) > 0 && w.conn != nil {
		w.setWatchesLocked(w.conn, subs[len(subs)-1].seen, []watched{key}, func() {})
	}
}

// Follow adds a stream. prepare gets the request before it is sent. fn runs in the goroutine
// that reads the connection, or in one that ends it. It must not block, and may be called
// for a while after Unfollow. Its first notice is Established, Gap or Ended, since c may end
// before the answer.
func (w *Registry) Follow(c *transport.Conn, path string, subtree bool, prepare func(*transport.Call), fn func(Notice)) (*Stream, error) {
	st := &Stream{path: path, subtree: subtree, fn: fn}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended != nil:
		return nil, w.ended
	case w.conn != c:
		return nil, &transport.LostError{Cause: errReplaced}
	}
	p := w.streams[path]
	switch {
	case p == nil:
		p = &persistent{removed: w.changes}
		w.streams[path] = p
	case len(p.streams) == 0: // its watch is being removed, and does not tell for a moment
		w.allAgainLocked(path)
	}
	before := p.asked
	p.streams = append(p.streams, st)
	call := w.addLocked(c, path)
	prepare(call)
	if err := c.Send(call); err != nil {
		call.Discard()
		p.streams = p.streams[:len(p.streams)-1]
		if p.asked = before; before == modeNone && len(p.streams) == 0 {
			delete(w.streams, path)
		}
		return nil, err
	}
	st.phase, st.request = streamAsked, p.changes
	if before == modeNode && p.asked == modeSubtree {
		w.removeLocked(c, path, modeNode)
	}
	w.childrenAgainLocked(path)
	return st, nil
}

var errReplaced = fmt.Errorf("%w: another connection has taken its place", transport.ErrLost)

// addLocked is the request for the watch that the streams of a path want. It also serves as
// a mark: what the server tells behind its answer comes after the state that it shows.
func (w *Registry) addLocked(c *transport.Conn, path string) *transport.Call {
	p := w.streams[path]
	w.changes++
	p.changes = w.changes
	mode := wire.AddWatchPersistent
	if p.asked = p.wanted(); p.asked == modeSubtree {
		mode, p.deep = wire.AddWatchPersistentRecursive, true
	}
	sent := p.changes
	call := transport.NewCall(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: mode})
	call.OnReply = func(call *transport.Call) { w.added(c, path, sent, call) }
	return call
}

// addAgainLocked sets the watch of a path on a new connection.
func (w *Registry) addAgainLocked(c *transport.Conn, path string) {
	call := w.addLocked(c, path)
	p := w.streams[path]
	for _, st := range p.streams {
		st.phase, st.request = streamAsked, p.changes
	}
	_ = c.Send(call) // if the connection is gone, the next one does it
	w.childrenAgainLocked(path)
}

// addLater sets the watch of a path for which a server had too much to do, unless another request
// has asked for it since.
func (w *Registry) addLater(c *transport.Conn, path string, refused int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch p := w.streams[path]; {
	case w.conn != c || p == nil || p.changes != refused:
	case len(p.streams) == 0:
		w.dropLocked(path)
	default:
		w.addAgainLocked(c, path)
	}
}

// childrenAgainLocked sets the child watch of a path behind a recursive one, which may have
// taken its place and does not serve it.
func (w *Registry) childrenAgainLocked(path string) {
	if w.streams[path].asked == modeSubtree {
		w.setAgainLocked(watched{path, Children})
	}
}

// displacedLocked is whether the server may have lost a watch that was on its way, and whose
// answer has come now. So it may if a persistent watch was to stand for it that is removed, and
// another one has come since.
func (w *Registry) displacedLocked(sub *Watch) bool {
	p := w.streams[sub.key.path]
	if p == nil || p.asked == modeNone {
		return sub.shared
	}
	return p.changes > sub.changes && (!w.sharedLocked(sub.key) || sub.shared && sub.changes <= p.removed)
}

// added tells the streams of a path that their watch stands, or was refused.
func (w *Registry) added(c *transport.Conn, path string, sent int, call *transport.Call) {
	if !call.Replied() {
		return // Down has told it
	}
	w.mu.Lock()
	p := w.streams[path]
	if w.conn != c || p == nil {
		w.mu.Unlock()
		return
	}
	n := Notice{Kind: Established, Zxid: call.Zxid(), Conn: c}
	var told []*Stream
	isNew := !slices.ContainsFunc(p.streams, func(st *Stream) bool { return st.stood })
	noneUp := !slices.ContainsFunc(p.streams, func(st *Stream) bool { return st.phase == streamUp })
	switch code := call.Code(); {
	case code == wire.CodeThrottledOp && noneUp && p.changes != sent: // the answer to a later request decides
	case code == wire.CodeOK:
		if p.changes == sent {
			p.deep = p.asked == modeSubtree
		}
		for _, st := range p.streams {
			if st.phase == streamAsked && st.request <= sent {
				st.phase, st.stood = streamUp, true
				told = append(told, st)
			}
		}
	case code == wire.CodeUnimplemented, code == wire.CodeMarshallingError, code == wire.CodeQuotaExceeded, code == wire.CodeNoAuth,
		code == wire.CodeThrottledOp && isNew: // who asked may ask again
		n = Notice{Kind: Ended, Code: code}
		told = p.streams
		w.dropLocked(path)
	case code == wire.CodeThrottledOp && noneUp: // they have a gap, so nothing is missed
		p.asked = modeNone
		w.allAgainLocked(path)
		onceAnswered(call, func(bool) { w.addLater(c, path, sent) })
	default:
		w.mu.Unlock()
		c.Kill(fmt.Errorf("persistent watches are not set: %s", code))
		return
	}
	w.mu.Unlock()
	for _, st := range told {
		st.fn(n)
	}
}

// dropLocked forgets a path whose persistent watch does not stand, and sets the watches for
// which it has stood.
func (w *Registry) dropLocked(path string) {
	delete(w.streams, path)
	w.allAgainLocked(path)
	for _, child := range []bool{false, true} {
		if st := (standing{path, child}); w.owed[st] {
			w.releaseLocked(st)
		}
	}
}

// allAgainLocked sets the watches for one event for which the persistent one of a path has stood.
func (w *Registry) allAgainLocked(path string) {
	for _, kind := range []Kind{Data, Exists, Children} {
		w.setAgainLocked(watched{path, kind})
	}
}

// Unfollow ends a stream, and with the last one of a path its watch on the server.
func (w *Registry) Unfollow(st *Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st.phase = streamDown
	p := w.streams[st.path]
	if p == nil {
		return
	}
	i := slices.Index(p.streams, st)
	if i < 0 {
		return
	}
	p.streams = slices.Delete(slices.Clone(p.streams), i, i+1) // who is being told has the old ones
	switch was, wanted := p.asked, p.wanted(); {
	case w.conn == nil && wanted == modeNone:
		delete(w.streams, st.path)
	case w.conn == nil || was == modeNone || wanted == was: // addLater asks for what is wanted by then
	case wanted == modeNone:
		w.removeLocked(w.conn, st.path, was)
	default: // the node alone
		if w.conn.Send(w.addLocked(w.conn, st.path)) == nil {
			w.removeLocked(w.conn, st.path, modeSubtree)
		}
	}
}

// removeLocked takes a mode of a path off the server. If the server has too much to do, what is
// wanted a while later says whether it is asked again.
//
// A server that keeps one mode for a path has put one that is wanted in the place of the other,
// and refuses to remove that.
func (w *Registry) removeLocked(c *transport.Conn, path string, mode persistentMode) {
	p, typ := w.streams[path], wire.WatchPersistent
	wanted := p.wanted()
	switch {
	case w.noModes && wanted != modeNone:
		return
	case w.noModes:
		typ = wire.WatchAny
	case mode == modeSubtree:
		typ = wire.WatchPersistentRecursive
	}
	if wanted == modeNone {
		w.changes++
		p.changes, p.removed = w.changes, w.changes
	}
	p.removals[mode]++
	call := transport.NewCall(wire.OpRemoveWatches, &wire.WatchesRequest{Path: path, Type: typ})
	call.OnReply = func(call *transport.Call) {
		onceAnswered(call, func(again bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !call.Replied() || w.conn != c || w.streams[path] != p {
				return
			}
			p.removals[mode]--
			if typ != wire.WatchAny && call.Code() == wire.CodeMarshallingError {
				w.noModes, again = true, true
			}
			switch wanted := p.wanted(); {
			case again && wanted != mode:
				w.removeLocked(c, path, mode)
			case wanted != modeNone:
			case p.removals == [modeSubtree + 1]int{}:
				w.dropLocked(path)
			case p.removals[mode] == 0: // the other mode is still to be removed
				p.asked = modeNode + modeSubtree - mode
				w.childrenAgainLocked(path)
			}
		})
	}
	// Also where servers may end the connection at it: the watch would tell of changes for ever.
	_ = c.Send(call)
}

// pass passes an event to the streams that it concerns.
func (w *Registry) pass(ev wire.WatcherEvent, zxid int64) {
	w.mu.Lock()
	if len(w.streams) == 0 || ev.Type < wire.EventNodeCreated || ev.Type > wire.EventNodeChildrenChanged {
		w.mu.Unlock()
		return
	}
	var told, parents []*Stream
	for path := ev.Path; ; path = Above(path) {
		if p := w.streams[path]; p != nil {
			for _, st := range p.streams {
				if st.phase == streamUp && (st.subtree && ev.Type != wire.EventNodeChildrenChanged || !st.subtree && path == ev.Path) {
					told = append(told, st)
				}
			}
		}
		if path == "/" || path == "" {
			break
		}
	}
	parent := Above(ev.Path)
	if p := w.streams[parent]; p != nil && p.deep && (ev.Type == wire.EventNodeCreated || ev.Type == wire.EventNodeDeleted) && parent != ev.Path {
		for _, st := range p.streams {
			if st.phase == streamUp && !st.subtree {
				parents = append(parents, st)
			}
		}
	}
	w.mu.Unlock()
	for _, st := range told {
		st.fn(Notice{Kind: Changed, Type: ev.Type, Path: ev.Path, Zxid: zxid})
	}
	for _, st := range parents {
		st.fn(Notice{Kind: Changed, Type: wire.EventNodeChildrenChanged, Path: parent, Zxid: zxid})
	}
}

// Above is the path of a node's parent.
func Above(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// cutLocked returns the streams that have lost their watch.
func (w *Registry) cutLocked() (cut []*Stream) {
	for _, p := range w.streams {
		p.asked, p.deep, p.removals = modeNone, false, [modeSubtree + 1]int{}
		for _, st := range p.streams {
			if st.phase != streamDown {
				st.phase = streamDown
				cut = append(cut, st)
			}
		}
	}
	return cut
}

package cache

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/framework"
)

// core is the algorithm of a cache. It is pure: it takes in events in their order, and says
// what to read and which snapshots there are.
//
// A server applies one transaction at a time, and answers a read between two of them. So an
// answer stands between the events of earlier and of later transactions, and shows the state
// at its zxid. A node that was read, and had no event since, is known at the zxid of each
// later answer. Snapshots are made at answers only: so no transaction is split, and events
// need no zxid, which servers before 3.9 do not tell.
//
// Every node of the subtree is in the tree, or dirty, or below one that is dirty and fresh, or
// named by a list that was asked for. A node that was made after the watch needs no list,
// since each of its children has an event.
type core[T any] struct {
	top    string
	depth  int                    // of nodes below top that are kept
	keep   func(path string) bool // nil for all
	decode Decoder[T]

	tree tree[T]
	// loaded are nodes that are not in the tree yet, or as they were. Many are put there at once,
	// in order, which takes a fraction of the time and of the garbage.
	loaded map[string]*Entry[T]
	order  []*Entry[T] // those of loaded as they came, and others

	dirty map[string]*read    // nodes whose value is not known
	most  int                 // in dirty, since it was made
	lists map[string]struct{} // nodes whose children were asked for
	fresh int                 // dirty nodes that may have children of which there is no event
	next  []framework.Read    // lists to be asked for
	names []listing           // that were not looked at yet
	old   place[T]            // in the last snapshot: its nodes from there on are to be read again
	// unasked has each dirty node whose read is not on its way, and maybe others.
	unasked []string
	asked   int              // reads that are not answered yet
	later   []framework.Read // to be asked for again after a pause, see again
	why     error            // the last answer has not answered all: why, else nil
	carried int              // dirty nodes of the last snapshot, to be read again
	nodes   int              // in the tree and in loaded
	bytes   int              // of the paths and data of these

	from       int64 // the state since which there are events; the highest number if it is not known
	up         bool  // whether there are events now
	level      bool  // whether a snapshot shows all that was missed before there were
	ahead      bool  // a node was taken out since the last answer
	behind     int   // how often in a row the answers were older than the last snapshot
	exactAt    int64 // the last state that the tree shows if there was an outage; 0 for none
	candidates []*candidate[T]
	hot        map[string]int // nodes that have spoiled a candidate, and in how many batches they are read along
	marked     bool           // a read is on its way to show a state

	checking bool   // all nodes are being read once more
	checked  string // those up to here

	published *Snapshot[T]
}

// read is a dirty node.
type read struct {
	fresh   bool
	asked   bool // its read is on its way
	carried bool // it was in the last snapshot, before an outage
}

// listing is the rest of a list of children, in order. A list may have a hundred thousand: to
// make all of them dirty at once takes time that others need, and memory.
type listing struct {
	parent string
	names  []string
}

// candidate is a snapshot in which some nodes are missing. It can be completed later by a
// value that has not changed since. So endless writes do not keep snapshots away.
type candidate[T any] struct {
	zxid    int64
	tree    tree[T] // with older values of those that are missing, and were
	missing map[string]struct{}
	found   []*Entry[T] // that were missing
}

const (
	mostCandidates = 4
	mostMissing    = 4096
	mostHot        = 256
	staysHot       = 16 // batches
	mostAsked      = 4096
	mostLooked     = 1024 // names, or nodes of the last snapshot, in a row
	mostLoaded     = 1024
)

func newCore[T any](top string, depth int, decode Decoder[T]) *core[T] {
	c := &core[T]{top: top, depth: depth, decode: decode, published: &Snapshot[T]{top: top}}
	c.reset()
	return c
}

// anew is a core that knows nothing.
func (c *core[T]) anew() *core[T] {
	next := newCore(c.top, c.depth, c.decode)
	next.keep = c.keep
	return next
}

func (c *core[T]) reset() {
	c.order = nil
	c.tree, c.loaded, c.carried, c.nodes, c.bytes = tree[T]{}, make(map[string]*Entry[T]), 0, 0, 0
	c.dirty, c.lists, c.most = make(map[string]*read), make(map[string]struct{}), 0
	c.fresh, c.next, c.later, c.unasked, c.candidates, c.marked = 0, nil, nil, nil, nil, false
	c.names, c.old = nil, place[T]{}
	c.ahead, c.hot, c.asked, c.checking = false, make(map[string]int), 0, false
}

// size is the number of nodes that are known of, at least.
func (c *core[T]) size() int {
	found := len(c.dirty) - c.carried
	for _, l := range c.names {
		found += len(l.names)
	}
	return max(c.nodes, found)
}

// isKept is whether a node is part of the copy.
func (c *core[T]) isKept(path string) bool {
	if !isUnder(path, c.top) || c.top == "/" && isUnder(path, system) {
		return false
	}
	if c.depth < all && c.depthOf(path) > c.depth {
		return false
	}
	for c.keep != nil && path != c.top {
		if !c.keep(path) {
			return false
		}
		path, _ = framework.PathAndNode(path)
	}
	return true
}

// depthOf is how far a node is below top.
func (c *core[T]) depthOf(path string) int {
	if c.top == "/" {
		if path == "/" {
			return 0
		}
		return strings.Count(path, "/")
	}
	return strings.Count(path[len(c.top):], "/")
}

// system is what servers keep for themselves. They change data there without a transaction.
const system = "/zookeeper"

// mark makes a node dirty.
func (c *core[T]) mark(path string, fresh bool) {
	r := c.dirty[path]
	if r == nil {
		r = &read{}
		c.dirty[path] = r
		c.unasked = append(c.unasked, path)
		c.most = max(c.most, len(c.dirty))
	}
	if fresh && !r.fresh {
		r.fresh = true
		c.fresh++
	}
}

// clean says that a node is not dirty any more, and returns what it was.
func (c *core[T]) clean(path string) (was read) {
	if r := c.dirty[path]; r != nil {
		was = *r
		delete(c.dirty, path)
		if r.fresh {
			c.fresh--
		}
		if r.carried {
			c.carried--
		}
	}
	return was
}

// count takes an entry into the size of the copy, or out of it.
func (c *core[T]) count(e *Entry[T], sign int) {
	c.nodes += sign
	c.bytes += sign * (len(e.Path) + e.size)
}

// take takes in an event. It returns the snapshots that it has brought, oldest first.
func (c *core[T]) take(ev framework.Event) []*Snapshot[T] {
	switch ev.Type {
	case framework.Established:
		return c.established(ev.Zxid)
	case framework.Gap:
		c.gap(ev.Zxid)
	case framework.NodeCreated, framework.NodeDataChanged:
		if c.up && c.isKept(ev.Path) {
			// A node that the load has not reached yet may have children already.
			c.mark(ev.Path, ev.Type == framework.NodeDataChanged && c.get(ev.Path) == nil)
		}
	case framework.NodeDeleted:
		if c.up && c.isKept(ev.Path) {
			c.deleted(ev.Path)
		}
	case framework.Answered:
		if c.up {
			return c.answered(ev)
		}
	}
	return nil
}

func (c *core[T]) established(zxid int64) []*Snapshot[T] {
	c.up, c.behind = true, 0
	if c.from = zxid; zxid == 0 {
		c.from = math.MaxInt64
	}
	if c.exactAt != 0 && c.exactAt == zxid {
		c.level = true
		return c.publish(nil, zxid, c.tree) // nothing has changed anywhere
	}
	// What was known before is read again: nothing tells what has changed. Until that is done
	// the last snapshot stays. New nodes are in the lists that have changed since then.
	c.reset()
	c.old = c.published.tree.begin()
	c.carry()
	c.mark(c.top, true)
	return nil
}

// gap says that there are no events, after those of a state.
func (c *core[T]) gap(last int64) {
	c.exactAt = 0
	if c.up && c.exact() && !c.ahead && c.published.zxid > 0 {
		c.exactAt = last
	}
	c.up, c.level, c.marked, c.why, c.asked = false, false, false, nil, 0
	c.candidates = nil
}

// exact is whether the tree is that of the last answer.
func (c *core[T]) exact() bool { return c.whole() && len(c.dirty) == 0 }

// whole is whether every node is in the tree or dirty.
func (c *core[T]) whole() bool {
	return c.fresh == 0 && len(c.lists) == 0 && len(c.names) == 0 && c.old.isEnd()
}

func (c *core[T]) deleted(path string) {
	c.settle()
	gone := []string{path} // also those below of whose end we were not told, since we may not read them
	for e := range c.tree.under(path) {
		gone = append(gone, e.Path)
	}
	for _, path := range gone {
		c.clean(path)
		delete(c.lists, path)
		c.remove(path)
		c.spoil(path)
	}
	c.ahead = true
}

// get is what is known of a node.
func (c *core[T]) get(path string) *Entry[T] {
	if e := c.loaded[path]; e != nil {
		return e
	}
	return c.tree.get(path)
}

func (c *core[T]) remove(path string) {
	if e := c.get(path); e != nil {
		delete(c.loaded, path)
		c.tree = c.tree.without(path)
		c.count(e, -1)
	}
}

// put takes in an entry in the place of what get has found, if it has.
func (c *core[T]) put(old, e *Entry[T]) {
	if old == e {
		return
	}
	if old != nil {
		c.count(old, -1)
	}
	c.count(e, 1)
	c.loaded[e.Path], c.order = e, append(c.order, e)
}

// settle puts what was loaded into the tree.
func (c *core[T]) settle() {
	if len(c.loaded) > 0 {
		if len(c.order) > len(c.loaded) { // it has others too
			c.order = slices.DeleteFunc(c.order, func(e *Entry[T]) bool {
				if c.loaded[e.Path] != e {
					return true
				}
				delete(c.loaded, e.Path) // it may come twice
				return false
			})
		}
		c.tree = c.tree.put(c.order...)
		clear(c.loaded)
		clear(c.order)
		c.order = c.order[:0]
	}
}

// spoil gives up the candidates that wait for a node. It is read in each of the next batches
// then, so that it is known at their zxids.
func (c *core[T]) spoil(path string) {
	before := len(c.candidates)
	if before == 0 {
		return
	}
	defer func() {
		if len(c.candidates) < before && len(c.hot) < mostHot {
			c.hot[path] = staysHot
		}
	}()
	left := c.candidates[:0]
	for _, can := range c.candidates {
		if _, waits := can.missing[path]; !waits {
			left = append(left, can)
		}
	}
	clear(c.candidates[len(left):])
	c.candidates = left
}

// answered takes in what was read.
func (c *core[T]) answered(ev framework.Event) (snapshots []*Snapshot[T]) {
	c.marked, c.why, c.asked = false, nil, max(0, c.asked-len(ev.Results))
	for _, r := range ev.Results {
		switch {
		case !c.isKept(r.Path):
		case framework.Retryable(r.Err), errors.Is(r.Err, framework.ErrEndsConnection): // it says nothing of the node
			c.later, c.why = append(c.later, r.Read), r.Err
		case r.Children:
			c.listed(r)
		default:
			c.readNode(r)
		}
	}
	if ev.Zxid == 0 {
		return nil // it was turned away, and shows no state
	}
	c.ahead = false
	if c.whole() || len(c.loaded) >= mostLoaded {
		c.settle()
	}
	for _, can := range c.candidates {
		if len(can.missing) == 0 {
			snapshots = c.publish(snapshots, can.zxid, can.tree.put(can.found...))
		}
	}
	left := c.candidates[:0]
	for _, can := range c.candidates {
		if len(can.missing) > 0 {
			left = append(left, can)
		}
	}
	clear(c.candidates[len(left):])
	c.candidates = left
	switch {
	case c.exact():
		c.candidates = nil
		if c.most > mostMissing { // a map keeps the memory of what was in it
			c.dirty, c.most = make(map[string]*read), 0
		}
		if ev.Zxid < c.published.zxid { // the server is behind what another one has shown
			c.later = append(c.later, framework.Read{Path: c.top})
			c.behind++
		} else {
			c.behind = 0
			c.level = true
		}
		snapshots = c.publish(snapshots, ev.Zxid, c.tree)
	case c.whole() && len(c.dirty) <= mostMissing && len(c.candidates) < mostCandidates:
		c.propose(ev.Zxid)
	}
	c.level = c.level || len(snapshots) > 0
	return snapshots
}

// propose makes a candidate of the present state.
func (c *core[T]) propose(zxid int64) {
	can := &candidate[T]{zxid: zxid, tree: c.tree, missing: make(map[string]struct{}, len(c.dirty))}
	for path := range c.dirty {
		can.missing[path] = struct{}{}
	}
	c.candidates = append(c.candidates, can)
}

// publish adds a snapshot unless it is older than the last one.
func (c *core[T]) publish(snapshots []*Snapshot[T], zxid int64, t tree[T]) []*Snapshot[T] {
	if zxid <= c.published.zxid && (zxid < c.published.zxid || t == c.published.tree) {
		return snapshots
	}
	c.published = &Snapshot[T]{zxid: zxid, top: c.top, tree: t}
	return append(snapshots, c.published)
}

// readNode takes in the data of a node.
func (c *core[T]) readNode(r framework.ReadResult) {
	was := c.clean(r.Path)
	if errors.Is(r.Err, framework.ErrNoNode) {
		c.remove(r.Path)
		c.spoil(r.Path)
		return
	}
	known := c.get(r.Path)
	e := c.entry(r, known)
	// Unlisted is a node that may have children of which nothing is known.
	unlisted := was.fresh || known == nil && !was.asked || known != nil && known.unlisted
	switch {
	case !unlisted:
	case r.Err != nil:
		e = e.hole(r.Err, e)
	case known != nil && !was.fresh && known.listFailed() && known.Created == e.Created:
		e, unlisted = e.hole(known.Err, known), false // it may be long, and is tried again with the holes
	}
	c.put(known, e)
	for _, can := range c.candidates {
		if _, waits := can.missing[r.Path]; waits && r.Err == nil && e.Changed <= can.zxid {
			can.found = append(can.found, e)
			delete(can.missing, r.Path)
		}
	}
	c.spoil(r.Path) // those for which it is too new
	switch {
	case r.Err != nil || r.Stat.NumChildren == 0 || c.depthOf(r.Path) == c.depth:
	case was.carried && c.isListed(r):
	case unlisted && r.Stat.Czxid <= c.from:
		c.lists[r.Path] = struct{}{}
		c.next = append(c.next, framework.Read{Path: r.Path, Children: true})
	case c.checking && !c.hasChild(r.Path):
		c.next = append(c.next, framework.Read{Path: r.Path, Children: true})
	}
}

// isListed is whether a node has the children that it has in the last snapshot. These are
// known, or read again.
func (c *core[T]) isListed(r framework.ReadResult) bool {
	e := c.published.tree.get(r.Path)
	return e != nil && !e.unlisted && r.Stat.Pzxid <= c.published.zxid
}

// entry is what was read. An entry that says the same as one that is known is that one, so
// that its memory is there once, and its value is decoded once.
func (c *core[T]) entry(r framework.ReadResult, known *Entry[T]) *Entry[T] {
	if known == nil {
		known = c.published.tree.get(r.Path)
	}
	if r.Err != nil {
		if known.fails(r.Err) {
			return known
		}
		e := &Entry[T]{Path: r.Path, Err: r.Err}
		if known != nil {
			*e = *known
			e.Err = r.Err
		}
		return e
	}
	if known.reads(r.Stat) {
		return known
	}
	e := &Entry[T]{
		Path: r.Path, Created: r.Stat.Czxid, Changed: r.Stat.Mzxid, Version: r.Stat.Version, Owner: r.Stat.EphemeralOwner, size: len(r.Data),
	}
	value, err := c.decode(r.Path, r.Data)
	e.Value = value
	if err != nil {
		e.Err = &DecodeError{r.Path, err}
		if known != nil && known.Created == e.Created {
			e.Value = known.Value
		}
	}
	return e
}

// listed takes in the names of a node's children.
func (c *core[T]) listed(r framework.ReadResult) {
	_, asked := c.lists[r.Path]
	delete(c.lists, r.Path)
	if r.Err != nil {
		if e := c.get(r.Path); asked && e != nil && !errors.Is(r.Err, framework.ErrNoNode) {
			c.put(e, e.hole(r.Err, c.published.tree.get(r.Path)))
		}
		return
	}
	slices.Sort(r.Names) // so that they are read in the order of the tree
	c.names = append(c.names, listing{r.Path, r.Names})
	c.look()
}

// look makes dirty what is not known of the next names. A node that was deleted since is read
// in vain. One that was made again has events of its own.
func (c *core[T]) look() {
	for left := mostLooked; left > 0 && len(c.names) > 0; {
		l := &c.names[0]
		parent := strings.TrimSuffix(l.parent, "/") // that of "/"
		some := min(left, len(l.names))
		for _, name := range l.names[:some] {
			path := parent + "/" + name
			if c.isKept(path) && c.dirty[path] == nil && c.get(path) == nil {
				c.mark(path, true)
			}
		}
		left -= some
		if l.names = l.names[some:]; len(l.names) == 0 {
			*l = listing{} // it keeps the memory of all
			c.names = c.names[1:]
			c.ahead = true // the tree may be whole now, and no answer has shown it
		}
	}
}

// carry makes dirty the next nodes of the last snapshot. Others that were read or have had an
// event since the outage are passed over.
func (c *core[T]) carry() {
	for range mostLooked {
		e := c.old.entry()
		if e == nil {
			c.ahead = true // as in look
			return
		}
		if c.dirty[e.Path] == nil && c.get(e.Path) == nil {
			c.mark(e.Path, true)
			c.dirty[e.Path].carried = true
			c.carried++
		}
	}
}

// find makes dirty some of the nodes that are to be looked at, if none waits to be asked for.
// It returns whether one does.
func (c *core[T]) find() bool {
	for len(c.unasked) == 0 {
		switch {
		case !c.old.isEnd():
			c.carry()
		case len(c.names) > 0:
			c.look()
		default:
			return false
		}
	}
	return true
}

// asks are what is to be read now. Answers that a slow decoder keeps waiting take memory, so
// there are not many of them.
func (c *core[T]) asks() (reads []framework.Read) {
	if !c.up {
		return nil
	}
	for c.asked+len(reads) < mostAsked && c.find() {
		path := c.unasked[0]
		c.unasked = c.unasked[1:]
		if r := c.dirty[path]; r != nil && !r.asked {
			r.asked = true
			reads = append(reads, framework.Read{Path: path})
		}
	}
	if len(c.unasked) == 0 {
		c.unasked = nil // it was long, maybe
	}
	reads = append(reads, c.next...)
	c.next = nil
	for path, left := range c.hot {
		switch {
		case len(reads) == 0:
		case left == 0:
			delete(c.hot, path)
		default:
			c.hot[path]--
			if c.dirty[path] == nil {
				reads = append(reads, framework.Read{Path: path})
			}
		}
	}
	for c.checking && c.asked+len(reads) < mostAsked {
		c.settle()
		e := c.tree.first(func(path string) bool { return compare(path, c.checked) > 0 })
		if e == nil {
			c.checking = c.asked+len(reads) > 0 // until the last answer
			break
		}
		if c.checked = e.Path; c.dirty[e.Path] == nil {
			reads = append(reads, framework.Read{Path: e.Path})
		}
		if c.hasChild(e.Path) && c.depthOf(e.Path) < c.depth {
			reads = append(reads, framework.Read{Path: e.Path, Children: true})
		}
	}
	if len(reads) == 0 && len(c.later) == 0 && c.ahead && !c.marked {
		reads = append(reads, framework.Read{Path: c.top}) // for an answer that shows the state
	}
	c.marked, c.asked = c.marked || len(reads) > 0, c.asked+len(reads)
	return reads
}

// again asks once more for what could not be answered.
func (c *core[T]) again() { c.next, c.later = append(c.next, c.later...), nil }

// check reads and lists all nodes once more, without taking them for unknown. So it finds
// nodes that could not be read when they were made, and those that cannot be read any more.
func (c *core[T]) check() {
	c.settle()
	c.checking, c.checked = true, ""
}

// hasChild is whether a child of a node is in the tree.
func (c *core[T]) hasChild(path string) bool {
	c.settle()
	e := c.tree.first(func(other string) bool { return compare(other, path) > 0 })
	return e != nil && isUnder(e.Path, path)
}

// retryHoles asks again for what could not be read.
func (c *core[T]) retryHoles() {
	c.settle()
	for e := range c.tree.under(c.top) {
		var undecodable *DecodeError
		if e.Err != nil && !errors.As(e.Err, &undecodable) {
			c.mark(e.Path, e.unlisted)
		}
	}
}

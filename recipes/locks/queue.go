package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// queue is where nodes of one kind wait in order, and whom each waits for.
type queue struct {
	scope *session.Scope
	lock  string   // the path of the lock, in full
	path  string   // of the parent, in full
	kind  string   // what kind of node we make
	kinds []string // what kinds count
	ahead func(snap *snapshot, at int) (i int, waits bool)
	opts  options
	// eventGrants is whether the event of the node ahead can be enough, see
	// lookahead.go.
	eventGrants bool
	// exclusive is whether the node that has the lock keeps out everybody else.
	exclusive bool
}

// isPart is whether the lock has other parts, of which each has a queue.
func (q *queue) isPart() bool { return q.path != q.lock }

// contender is one node in a queue, from the request that makes it until it is
// first or has left.
//
// It belongs to one session. If that ends, the contender is lost, and nothing of it
// is taken over into the next one: a node that is still to be seen then is
// about to go.
type contender struct {
	*queue
	tag        session.Tag // whose it is
	yields     bool        // see multilockyield.go
	session    int64
	conn       *transport.Conn // that we learned on what we know
	protection string
	name       string // "" until we know it
	full       string // the node's path, if name is a part of it
	czxid      int64
	unknown    *transport.Call // a creation without a known outcome
	lateCreate bool            // such a creation had not happened, and may still
	deletions  deletions
	wait       *wait       // once it waits for others
	spare      int         // leases of a semaphore that its acquisition does not need
	behind     bool        // somebody was seen ahead
	obstacle   *obstacle   // who, if it gave up waiting
	multiLocks bool        // MultiLocks were seen in the queue
	local      *localQueue // those of this process who wait behind it, nil if each has a contender
	gone       func()      // is called when our node was found to be gone; nil for nothing
}

// aheadExclusive is who a lock for one waits for: the one directly ahead.
func aheadExclusive(_ *snapshot, at int) (i int, waits bool) {
	return at - 1, at > 0
}

// aheadRead is who a reader waits for: the last writer ahead, other than the
// owner's own of the same number that it was downgraded from.
//
// Differs: Curator's readers wait for the first one, and so wake once for each.
func aheadRead(snap *snapshot, at int) (i int, waits bool) {
	for i := at - 1; i >= 0; i-- {
		own := at < snap.len() && snap.seq(i) == snap.seq(at)
		if snap.kind(i) == writeName && !own {
			return i, true
		}
	}
	return 0, false
}

// holders is the parent of the nodes that hold the lock.
func (q *queue) holders() string {
	if q.isPart() {
		return session.Below(q.lock, semaphoreLeases)
	}
	return q.path
}

// errAgain says that what was found does not hold any more.
var errAgain = errors.New("begin again")

// own waits until the contender is first and turns it into an ownership, which owner
// makes. If it fails, somebody has to leave the contender, or to go on with it.
func (p *contender) own(ctx context.Context, once bool, owner func(*contender) *ownership) (_ *ownership, err error) {
	defer p.endWait()
	if once {
		err = p.probe(ctx)
	}
	for err == nil || passing(err) && ctx.Err() == nil {
		var pw predecessorWatch
		if err = p.getAheadAs(ctx, once, &pw); err != nil {
			break
		}
		o := owner(p)
		p.local.taken(o)
		if err = p.track(ctx, o, pw.won); err == nil {
			return o, nil
		}
		p.local.taken(nil)
	}
	return nil, err
}

// probe looks whether there is any use in getting a contender to be first at once:
// others find no node in their way that is gone in a moment.
func (p *contender) probe(ctx context.Context) error {
	c, err := p.scope.Session.Conn(ctx, true)
	if err != nil {
		return err
	}
	list, err := p.list(ctx, c)
	if err == nil {
		err = p.probed(ctx, c, list)
	}
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}

// probed reads the list that peek asked for.
func (p *contender) probed(ctx context.Context, c *transport.Conn, list *transport.Call) error {
	snap, err := p.listed(ctx, c, list)
	if err != nil {
		return err
	}
	err = p.mayBeFirst(snap)
	snap.free()
	list.Free()
	return err
}

// mayBeFirst is nil if a new contender would be first. If others would be ahead, it
// notes them and returns ErrNotAcquired.
func (p *contender) mayBeFirst(snap *snapshot) error {
	if err := p.refuse(snap); err != nil {
		return err
	}
	if _, waits := p.ahead(snap, snap.len()); !waits {
		return nil
	}
	v := position{at: snap.len(), ahead: snap.name(0)}
	p.sawAhead(&v)
	p.obstacle = p.obstacleIn(&v)
	return ErrNotAcquired
}

// getAhead makes the node, if there is none, and waits until nobody is ahead.
// With once it does not wait for others.
//
// A failure that may pass is followed by another look: on the next connection,
// or after a pause if this one stands.
func (p *contender) getAhead(ctx context.Context, once bool) error {
	return p.getAheadAs(ctx, once, new(predecessorWatch))
}

// getAheadAs is getAhead, and says what made us first.
func (p *contender) getAheadAs(ctx context.Context, once bool, pw *predecessorWatch) (err error) {
	defer func() {
		pw.stop()
		if err != nil && pw.position.ahead != "" {
			p.obstacle = p.obstacleIn(&pw.position)
		}
	}()
	for failures := 0; ; {
		first, err := p.listAndWait(ctx, once, pw)
		switch {
		case err == nil && first:
			return nil
		case err == nil && once:
			return ErrNotAcquired
		case err == nil:
			failures = 0
			continue
		case ctx.Err() != nil, !passing(err):
			return err
		}
		failures++
		if err := pause(ctx, max(failures, p.deletions.inARow)); err != nil {
			return err
		}
	}
}

const (
	firstPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// deletions counts how often in a row others have deleted our nodes, so that who
// deletes them over and over does not make us ask over and over.
type deletions struct {
	inARow int
	last   time.Time
}

func (d *deletions) note() {
	now := time.Now()
	if now.Sub(d.last) > 2*mostPause {
		d.inARow = 0
	}
	d.inARow++
	d.last = now
}

// pause keeps failures that follow each other from being a tight loop. The first
// few cost nothing: a reconnect takes its time by itself.
func pause(ctx context.Context, failures int) error {
	if failures < 3 {
		return nil
	}
	t := time.NewTimer(min(mostPause, firstPause<<min(failures-3, 10)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return foreign.ContextEnd(ctx)
	}
}

// listAndWait reads the queue once and waits for the one ahead, if any.
func (p *contender) listAndWait(ctx context.Context, once bool, pw *predecessorWatch) (first bool, err error) {
	c, err := p.scope.Session.Conn(ctx, true)
	if err != nil {
		return false, err
	}
	list, err := p.refresh(ctx, c)
	if err != nil {
		return false, err
	}
	v, err := p.readPosition(ctx, c, list)
	switch {
	case err != nil:
		return false, err
	case v.ahead == "":
		pw.grantedByEvent()
		return true, nil
	}
	pw.position = v
	p.sawAhead(&v)
	if once {
		return false, nil
	}
	p.beginWait()
	if p.eventGrants && (p.opts.lookAhead || v.at == 1) {
		return p.pass(ctx, c, pw)
	}
	return false, p.await(ctx, c, &pw.position)
}

// beginWait notes that a contender waits for others, until endWait.
func (p *contender) beginWait() {
	if p.wait == nil {
		p.wait = sharedOf(p.scope.Session).waitLog.begin(p.queue, p.spare)
	}
}

func (p *contender) endWait() {
	p.wait.end()
	p.wait = nil
}

// position is what a contender wants to know of its queue.
type position struct {
	at    int      // where our node stands
	ahead string   // the node that we wait for, "" for none
	next  string   // the one that stands before that
	front nodeName // the first of the queue, if that is not the one that we wait for
	owner int64    // the session of the first one, if it is known
}

// readPosition reads a list of the queue, whose memory it gives back. Our node may have
// gone.
func (p *contender) readPosition(ctx context.Context, c *transport.Conn, list *transport.Call) (v position, err error) {
	snap, err := p.listed(ctx, c, list)
	if errors.Is(err, framework.ErrNoNode) {
		return v, p.deleted()
	}
	if err != nil {
		return v, err
	}
	if v.at = snap.find(p.name); v.at >= 0 {
		err = p.refuse(snap)
		p.multiLocks = p.multiLocks || p.local != nil && snap.hasMultiLock()
		if i, waits := p.ahead(snap, v.at); waits {
			v.ahead = snap.name(i)
			if i > 0 {
				v.front.set(snap.bytes(0))
			}
			if i > 0 && p.opts.lookAhead {
				v.next = snap.name(i - 1)
			}
		}
	}
	snap.free()
	list.Free()
	if v.at < 0 {
		p.deletions.note()
		p.vanished()
		err = errAgain
	}
	return v, err
}

// deleted begins again after others have deleted the whole queue.
func (p *contender) deleted() error {
	p.deletions.note()
	p.leave() // not to rest on what only the parent's absence says
	p.vanished()
	return errAgain
}

// sawAhead remembers that others were seen ahead, and tells those in the local queue who.
func (p *contender) sawAhead(v *position) {
	p.behind = true
	p.local.sawAhead(v)
}

// refresh makes sure of our own node and lists the queue, in one round trip where
// nothing is in doubt.
func (p *contender) refresh(ctx context.Context, c *transport.Conn) (list *transport.Call, err error) {
	if err := p.resolve(ctx, c); err != nil {
		return nil, err
	}
	if p.name == "" {
		return p.enter(ctx, c)
	}
	return p.list(ctx, c)
}

// resolve settles what an earlier connection has left open: afterwards we know
// our node's name or that there is none.
func (p *contender) resolve(ctx context.Context, c *transport.Conn) error {
	if p.session != c.Session() {
		if err := p.move(c); err != nil {
			return err
		}
	}
	if p.unknown != nil {
		return p.recover(ctx, c)
	}
	return nil
}

// move goes on in another session.
func (p *contender) move(c *transport.Conn) error {
	p.local.moved(c.Session())
	if p.session != 0 && p.opts.failOnLoss {
		return framework.ErrSessionExpired
	}
	p.session, p.conn = c.Session(), nil
	p.vanished()
	return nil
}

// vanished forgets a node that is gone: by its session, or by somebody's hand.
func (p *contender) vanished() {
	p.sweep()
	p.name, p.full, p.unknown, p.czxid, p.multiLocks = "", "", nil, 0, false
	p.protection = p.scope.Session.Protection(p.tag, p.yields)
	if p.gone != nil {
		p.gone()
	}
}

// enter creates our node and lists the queue, in one round trip: both requests
// leave together on one connection, and the server answers in order, so the
// list shows our node and every older one that is left. A list that is out of
// date can show too many of them and never too few: they were created before
// ours, which it shows.
func (p *contender) enter(ctx context.Context, c *transport.Conn) (list *transport.Call, err error) {
	create, list := p.creation(c), p.listing()
	if err := p.scope.Session.Send(ctx, c, create, list); err != nil {
		return nil, err
	}
	p.unknown = create // whatever ends the waiting, it must be known
	p.scope.Session.Settle(ctx, list)
	return list, p.created(ctx, c, create)
}

// creation is the request that makes our node.
func (p *contender) creation(c *transport.Conn) *transport.Call {
	return transport.NewCall(wire.OpCreate2, p.creating(c))
}

// creationOp is the same as a part of a transaction.
func (p *contender) creationOp(c *transport.Conn) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpCreate, Request: p.creating(c)}
}

func (p *contender) creating(c *transport.Conn) *wire.CreateRequest {
	p.conn = c
	path := session.Below(p.path, p.protection+p.kind)
	return &wire.CreateRequest{Path: path, Data: p.data(c), ACL: p.scope.ACL(path), Flags: wire.FlagEphemeralSequence}
}

// created takes in the reply to a creation, and makes the parent if that was
// missing.
func (p *contender) created(ctx context.Context, c *transport.Conn, create *transport.Call) error {
	err := p.answered(ctx, c, create)
	if errors.Is(err, framework.ErrNoNode) {
		return ensure(ctx, c, p)
	}
	return err
}

// answered takes in the reply to a creation. Without one it stays in doubt.
func (p *contender) answered(ctx context.Context, c *transport.Conn, create *transport.Call) error {
	err := p.scope.Session.Await(ctx, c, create, true)
	if err == nil {
		var resp wire.Create2Response
		if err := create.Decode(&resp); err != nil {
			return fmt.Errorf("%w: %w", framework.ErrOutcomeUnknown, err)
		}
		return p.named(resp.Path, resp.Stat.Czxid)
	}
	if !framework.Ambiguous(err) {
		p.unknown = nil
	}
	return err
}

// named takes in what the server has called our node: what was asked for, and a
// number. Anything else leaves open what it has made.
func (p *contender) named(full string, czxid int64) error {
	parent, name := framework.PathAndNode(full)
	if own := len(p.protection); parent != p.path || !strings.HasPrefix(name, p.protection) || !strings.HasPrefix(name[own:], p.kind) {
		return fmt.Errorf("%w: the server says it made %q instead of %s and a number",
			framework.ErrOutcomeUnknown, full, session.Below(p.path, p.protection+p.kind))
	}
	// What lasts as long as a hold shares one string.
	p.full, p.name, p.protection = full, name, name[:len(p.protection)]
	p.czxid, p.unknown = czxid, nil
	return nil
}

func (p *contender) data(c *transport.Conn) []byte {
	switch {
	case p.opts.revocable:
		return []byte{}
	case p.opts.hasData:
		return p.opts.data
	}
	return p.scope.Data(c)
}

func (p *contender) listing() *transport.Call {
	return session.NewList(p.path)
}

// listed waits for a list of the queue.
func (p *contender) listed(ctx context.Context, c *transport.Conn, list *transport.Call) (*snapshot, error) {
	names, err := p.scope.Session.List(ctx, c, list)
	if err != nil {
		return nil, err
	}
	return p.readSnapshot(names)
}

// list asks for the queue. On another connection than before, a sync comes first:
// the server may be behind the one that we heard of our node from.
func (p *contender) list(ctx context.Context, c *transport.Conn) (list *transport.Call, err error) {
	calls := []*transport.Call{p.listing()}
	if p.conn != c {
		calls = append([]*transport.Call{transport.NewCall(wire.OpSync, &wire.PathRequest{Path: p.path})}, calls...)
	}
	if err := p.scope.Session.Send(ctx, c, calls...); err != nil {
		return nil, err
	}
	p.conn = c
	for _, call := range calls[:len(calls)-1] {
		if err := p.scope.Session.Await(ctx, c, call, false); err != nil {
			return nil, err
		}
	}
	return calls[len(calls)-1], nil
}

// recover finds out whether a node was made whose reply was lost. The session
// is the same, so what there is under our name is ours.
func (p *contender) recover(ctx context.Context, c *transport.Conn) error {
	s := p.scope.Session
	names, err := s.FindOwn(ctx, c, p.path, p.protection)
	switch {
	case err != nil && !errors.Is(err, framework.ErrNoNode):
		return err
	case len(names) == 0:
		// A server that had read the request when we connected again might do it
		// only now. Nobody has seen that happen; it costs one look when we leave.
		p.unknown, p.lateCreate = nil, true
		return nil
	}
	stat, err := s.Stat(ctx, c, session.Below(p.path, names[0]))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		p.vanished()
		return errAgain
	case err != nil:
		return err
	case stat.EphemeralOwner != c.Session():
		p.vanished()
		return errAgain
	}
	p.name, p.czxid, p.unknown, p.conn = names[0], stat.Czxid, nil, c
	return nil
}

// await returns when something has happened to the node ahead. The watch
// survives a reconnect within the session, so the contender is kept through it.
func (p *contender) await(ctx context.Context, c *transport.Conn, v *position) error {
	s := p.scope.Session
	woken := make(chan error, 1)
	fn := func(ev session.Event) {
		select {
		case woken <- ev.Err:
		default:
		}
	}
	// Reading leaves no watch behind if the node is gone by now, as asking for
	// its existence would. But it needs the right to read.
	call, watch, err := s.WatchData(ctx, c, session.Below(p.path, v.ahead), fn)
	if err != nil {
		return err
	}
	defer s.StopWatch(watch)
	err = s.Await(ctx, c, call, false)
	if errors.Is(err, framework.ErrNoAuth) {
		var folder *session.Watch
		folder, err = p.watchUnreadable(ctx, c, v.ahead, fn)
		if folder != nil {
			defer s.StopWatch(folder)
		}
	}
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return nil
	case err != nil:
		return err
	}
	select {
	case err := <-woken:
		if errors.Is(err, framework.ErrSessionExpired) {
			return session.ErrSessionOver
		}
		return err
	case <-ctx.Done():
		if v.front.n == 0 {
			v.owner = ownerOfRead(call)
		}
		return foreign.ContextEnd(ctx)
	}
}

// watchUnreadable watches for the end of a node of the queue that we may not
// read. Servers tell nothing of such a node itself, from 3.8.4 on not even to who
// watches it. So the queue's folder is watched, which every change in the queue
// ends. The result is ErrNoNode if the node is gone.
func (p *contender) watchUnreadable(ctx context.Context, c *transport.Conn, name string, fn func(session.Event)) (*session.Watch, error) {
	s := p.scope.Session
	call, watch, err := s.WatchChildren(ctx, c, p.path, fn)
	if err != nil {
		return nil, err
	}
	var there wire.GetChildren2Response
	err = s.Await(ctx, c, call, false)
	if err == nil {
		err = call.Decode(&there)
	}
	if err == nil && !slices.Contains(there.Children, name) {
		err = framework.ErrNoNode
	}
	return watch, err
}

// node is the full path of our node.
func (p *contender) node() string {
	if strings.HasSuffix(p.full, p.name) && p.full != "" { // else it is the path of a former node
		return p.full
	}
	return session.Below(p.path, p.name)
}

// leave gives the contender up: in the background, if need be, until the node is
// known to be gone or its session is.
func (p *contender) leave() {
	s := p.scope.Session
	switch {
	case p.unknown != nil:
		s.RemoveDoubtful(p.session, p.unknown, p.path, p.protection)
	case p.name != "":
		s.Remove(p.session, p.node())
	}
	p.sweep()
}

// leaveAll gives up contenders of one client.
func leaveAll(places []*contender) {
	var id int64 // of the session that nodes are in
	var nodes []string
	removeNodes := func() {
		if len(nodes) > 0 {
			places[0].scope.Session.RemoveAll(id, nodes)
		}
	}
	for _, p := range places {
		if p.unknown != nil || p.name == "" {
			p.leave()
			continue
		}
		if p.session != id {
			removeNodes()
			id, nodes = p.session, nil
		}
		nodes = append(nodes, p.node())
		p.sweep()
	}
	removeNodes()
}

// sweep looks for a second node of ours.
func (p *contender) sweep() {
	if p.lateCreate {
		p.lateCreate = false
		p.scope.Session.Sweep(p.session, p.path, p.protection)
	}
}

// track makes the session answer for a contender that is first, until it is lost or
// given up.
func (p *contender) track(ctx context.Context, o *ownership, e *predecessorEvents) error {
	node, err := p.scope.Session.Track(ctx, p.session, p.node(), p.teller(o))
	if err != nil {
		return err
	}
	o.tracked = node
	e.track(node)
	return nil
}

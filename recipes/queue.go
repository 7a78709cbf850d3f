package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/link"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/wire"
)

// queue is where nodes of one kind line up, and whom each waits for.
type queue struct {
	scope *session.Scope
	lock  string   // the path of the lock, in full
	path  string   // of the parent, in full
	mark  string   // what kind of node we make
	marks []string // what kinds count
	ahead func(line *lineup, at int) (i int, waits bool)
	opts  options
	// inherits is whether the event of the node ahead can be enough, see
	// lookahead.go.
	inherits bool
	// exclusive is whether the node that has the lock keeps out everybody else.
	exclusive bool
}

// isPart is whether the lock has other parts, of which each has a queue.
func (q *queue) isPart() bool { return q.path != q.lock }

// place is one node in a queue, from the request that makes it until it is
// first or has left.
//
// It belongs to one session. If that ends, the place is lost, and nothing of it
// is taken over into the next one: a node that is still to be seen then is
// about to go.
type place struct {
	*queue
	tag        session.Tag // whose it is
	yields     bool        // see yield.go
	session    int64
	conn       *link.Conn // that we learned on what we know
	protection string
	name       string // "" until we know it
	full       string // the node's path, if name is a part of it
	czxid      int64
	doubt      *link.Call // a creation without a known outcome
	straggler  bool       // such a creation had not happened, and may still
	deletions  deletions
	wait       *wait     // once it waits for others
	spare      int       // leases of a semaphore that its acquisition does not need
	behind     bool      // somebody was seen ahead
	obstacle   *obstacle // who, if it gave up waiting
	parties    bool      // MultiLocks were seen in the queue
	line       *line     // those of this process who wait behind it, nil if each has a place
	gone       func()    // is called when our node was found to be gone; nil for nothing
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

// win waits until the place is first and turns it into a tenure, which make
// gives. If it fails, somebody has to leave the place, or to go on with it.
func (p *place) win(ctx context.Context, once bool, make func(*place) *tenure) (_ *tenure, err error) {
	defer p.endWait()
	if once {
		err = p.peek(ctx)
	}
	for err == nil || passing(err) && ctx.Err() == nil {
		var h heir
		if err = p.getAheadAs(ctx, once, &h); err != nil {
			break
		}
		t := make(p)
		p.line.taken(t)
		if err = p.claim(ctx, t, h.won); err == nil {
			return t, nil
		}
		p.line.taken(nil)
	}
	return nil, err
}

// peek looks whether there is any use in getting a place to be first at once:
// others find no node in their way that is gone in a moment.
func (p *place) peek(ctx context.Context) error {
	c, err := p.scope.Session.Conn(ctx, true)
	if err != nil {
		return err
	}
	list, err := p.list(ctx, c)
	if err == nil {
		err = p.peeked(ctx, c, list)
	}
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}

// peeked reads the list that peek asked for.
func (p *place) peeked(ctx context.Context, c *link.Conn, list *link.Call) error {
	line, err := p.listed(ctx, c, list)
	if err != nil {
		return err
	}
	err = p.mayBeFirst(line)
	line.free()
	list.Free()
	return err
}

// mayBeFirst is nil if a new place would be first. If others would be ahead, it
// notes them and returns ErrNotAcquired.
func (p *place) mayBeFirst(line *lineup) error {
	if err := p.refuse(line); err != nil {
		return err
	}
	if _, waits := p.ahead(line, line.len()); !waits {
		return nil
	}
	v := view{at: line.len(), ahead: line.name(0)}
	p.sawAhead(&v)
	p.obstacle = p.obstacleIn(&v)
	return ErrNotAcquired
}

// getAhead makes the node, if there is none, and waits until nobody is ahead.
// With once it does not wait for others.
//
// A failure that may pass is followed by another look: on the next connection,
// or after a pause if this one stands.
func (p *place) getAhead(ctx context.Context, once bool) error {
	return p.getAheadAs(ctx, once, new(heir))
}

// getAheadAs is getAhead, and says what made us first.
func (p *place) getAheadAs(ctx context.Context, once bool, h *heir) (err error) {
	defer func() {
		h.stop()
		if err != nil && h.seen.ahead != "" {
			p.obstacle = p.obstacleIn(&h.seen)
		}
	}()
	for failures := 0; ; {
		first, err := p.look(ctx, once, h)
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

// look reads the queue once and waits for the one ahead, if any.
func (p *place) look(ctx context.Context, once bool, h *heir) (first bool, err error) {
	c, err := p.scope.Session.Conn(ctx, true)
	if err != nil {
		return false, err
	}
	list, err := p.see(ctx, c)
	if err != nil {
		return false, err
	}
	v, err := p.view(ctx, c, list)
	switch {
	case err != nil:
		return false, err
	case v.ahead == "":
		h.inherited()
		return true, nil
	}
	h.seen = v
	p.sawAhead(&v)
	if once {
		return false, nil
	}
	p.beginWait()
	if p.inherits && (p.opts.lookAhead || v.at == 1) {
		return p.pass(ctx, c, h)
	}
	return false, p.await(ctx, c, &h.seen)
}

// beginWait notes that a place waits for others, until endWait.
func (p *place) beginWait() {
	if p.wait == nil {
		p.wait = sharedOf(p.scope.Session).waitLog.begin(p.queue, p.spare)
	}
}

func (p *place) endWait() {
	p.wait.end()
	p.wait = nil
}

// view is what a place wants to know of its queue.
type view struct {
	at    int      // where our node stands
	ahead string   // the node that we wait for, "" for none
	next  string   // the one that stands before that
	front nodeName // the first of the queue, if that is not the one that we wait for
	owner int64    // the session of the first one, if it is known
}

// view reads a list of the queue, whose memory it gives back. Our node may have
// gone.
func (p *place) view(ctx context.Context, c *link.Conn, list *link.Call) (v view, err error) {
	line, err := p.listed(ctx, c, list)
	if errors.Is(err, framework.ErrNoNode) {
		return v, p.deleted()
	}
	if err != nil {
		return v, err
	}
	if v.at = line.find(p.name); v.at >= 0 {
		err = p.refuse(line)
		p.parties = p.parties || p.line != nil && line.hasParty()
		if i, waits := p.ahead(line, v.at); waits {
			v.ahead = line.name(i)
			if i > 0 {
				v.front.set(line.bytes(0))
			}
			if i > 0 && p.opts.lookAhead {
				v.next = line.name(i - 1)
			}
		}
	}
	line.free()
	list.Free()
	if v.at < 0 {
		p.deletions.note()
		p.vanished()
		err = errAgain
	}
	return v, err
}

// deleted begins again after others have deleted the whole queue.
func (p *place) deleted() error {
	p.deletions.note()
	p.leave() // not to rest on what only the parent's absence says
	p.vanished()
	return errAgain
}

// sawAhead remembers that others were seen ahead, and tells those in line who.
func (p *place) sawAhead(v *view) {
	p.behind = true
	p.line.sawAhead(v)
}

// see makes sure of our own node and lists the queue, in one round trip where
// nothing is in doubt.
func (p *place) see(ctx context.Context, c *link.Conn) (list *link.Call, err error) {
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
func (p *place) resolve(ctx context.Context, c *link.Conn) error {
	if p.session != c.Session() {
		if err := p.move(c); err != nil {
			return err
		}
	}
	if p.doubt != nil {
		return p.recover(ctx, c)
	}
	return nil
}

// move goes on in another session.
func (p *place) move(c *link.Conn) error {
	p.line.moved(c.Session())
	if p.session != 0 && p.opts.failOnLoss {
		return framework.ErrSessionExpired
	}
	p.session, p.conn = c.Session(), nil
	p.vanished()
	return nil
}

// vanished forgets a node that is gone: by its session, or by somebody's hand.
func (p *place) vanished() {
	p.sweep()
	p.name, p.full, p.doubt, p.czxid, p.parties = "", "", nil, 0, false
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
func (p *place) enter(ctx context.Context, c *link.Conn) (list *link.Call, err error) {
	create, list := p.creation(c), p.listing()
	if err := p.scope.Session.Send(ctx, c, create, list); err != nil {
		return nil, err
	}
	p.doubt = create // whatever ends the waiting, it must be known
	p.scope.Session.Settle(ctx, list)
	return list, p.created(ctx, c, create)
}

// creation is the request that makes our node.
func (p *place) creation(c *link.Conn) *link.Call {
	return link.NewCall(wire.OpCreate2, p.creating(c))
}

// creationOp is the same as a part of a transaction.
func (p *place) creationOp(c *link.Conn) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpCreate, Request: p.creating(c)}
}

func (p *place) creating(c *link.Conn) *wire.CreateRequest {
	p.conn = c
	path := session.Below(p.path, p.protection+p.mark)
	return &wire.CreateRequest{Path: path, Data: p.data(c), ACL: p.scope.ACL(path), Flags: wire.FlagEphemeralSequence}
}

// created takes in the reply to a creation, and makes the parent if that was
// missing.
func (p *place) created(ctx context.Context, c *link.Conn, create *link.Call) error {
	err := p.answered(ctx, c, create)
	if errors.Is(err, framework.ErrNoNode) {
		return ensure(ctx, c, p)
	}
	return err
}

// answered takes in the reply to a creation. Without one it stays in doubt.
func (p *place) answered(ctx context.Context, c *link.Conn, create *link.Call) error {
	err := p.scope.Session.Await(ctx, c, create, true)
	if err == nil {
		var resp wire.Create2Response
		if err := create.Decode(&resp); err != nil {
			return fmt.Errorf("%w: %w", framework.ErrOutcomeUnknown, err)
		}
		return p.named(resp.Path, resp.Stat.Czxid)
	}
	if !framework.Ambiguous(err) {
		p.doubt = nil
	}
	return err
}

// named takes in what the server has called our node: what was asked for, and a
// number. Anything else leaves open what it has made.
func (p *place) named(full string, czxid int64) error {
	parent, name := framework.PathAndNode(full)
	if own := len(p.protection); parent != p.path || !strings.HasPrefix(name, p.protection) || !strings.HasPrefix(name[own:], p.mark) {
		return fmt.Errorf("%w: the server says it made %q instead of %s and a number",
			framework.ErrOutcomeUnknown, full, session.Below(p.path, p.protection+p.mark))
	}
	// What lasts as long as a hold shares one string.
	p.full, p.name, p.protection = full, name, name[:len(p.protection)]
	p.czxid, p.doubt = czxid, nil
	return nil
}

func (p *place) data(c *link.Conn) []byte {
	switch {
	case p.opts.revocable:
		return []byte{}
	case p.opts.hasData:
		return p.opts.data
	}
	return p.scope.Data(c)
}

func (p *place) listing() *link.Call {
	return session.NewList(p.path)
}

// listed waits for a list of the queue.
func (p *place) listed(ctx context.Context, c *link.Conn, list *link.Call) (*lineup, error) {
	names, err := p.scope.Session.List(ctx, c, list)
	if err != nil {
		return nil, err
	}
	return p.lineUp(names)
}

// list asks for the queue. On another connection than before, a sync comes first:
// the server may be behind the one that we heard of our node from.
func (p *place) list(ctx context.Context, c *link.Conn) (list *link.Call, err error) {
	calls := []*link.Call{p.listing()}
	if p.conn != c {
		calls = append([]*link.Call{link.NewCall(wire.OpSync, &wire.PathRequest{Path: p.path})}, calls...)
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
func (p *place) recover(ctx context.Context, c *link.Conn) error {
	s := p.scope.Session
	names, err := s.FindOwn(ctx, c, p.path, p.protection)
	switch {
	case err != nil && !errors.Is(err, framework.ErrNoNode):
		return err
	case len(names) == 0:
		// A server that had read the request when we connected again might do it
		// only now. Nobody has seen that happen; it costs one look when we leave.
		p.doubt, p.straggler = nil, true
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
	p.name, p.czxid, p.doubt, p.conn = names[0], stat.Czxid, nil, c
	return nil
}

// await returns when something has happened to the node ahead. The watch
// survives a reconnect within the session, so the place is kept through it.
func (p *place) await(ctx context.Context, c *link.Conn, v *view) error {
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
func (p *place) watchUnreadable(ctx context.Context, c *link.Conn, name string, fn func(session.Event)) (*session.Watch, error) {
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
func (p *place) node() string {
	if strings.HasSuffix(p.full, p.name) && p.full != "" { // else it is the path of a former node
		return p.full
	}
	return session.Below(p.path, p.name)
}

// leave gives the place up: in the background, if need be, until the node is
// known to be gone or its session is.
func (p *place) leave() {
	s := p.scope.Session
	switch {
	case p.doubt != nil:
		s.RemoveDoubtful(p.session, p.doubt, p.path, p.protection)
	case p.name != "":
		s.Remove(p.session, p.node())
	}
	p.sweep()
}

// leaveAll gives up places of one client.
func leaveAll(places []*place) {
	var id int64 // of the session that nodes are in
	var nodes []string
	removeNodes := func() {
		if len(nodes) > 0 {
			places[0].scope.Session.RemoveAll(id, nodes)
		}
	}
	for _, p := range places {
		if p.doubt != nil || p.name == "" {
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
func (p *place) sweep() {
	if p.straggler {
		p.straggler = false
		p.scope.Session.Sweep(p.session, p.path, p.protection)
	}
}

// claim makes the session answer for a place that is first, until it is lost or
// given up.
func (p *place) claim(ctx context.Context, t *tenure, o *omens) error {
	cl, err := p.scope.Session.AddClaim(ctx, p.session, p.node(), p.teller(t))
	if err != nil {
		return err
	}
	t.claim = cl
	o.claimed(cl)
	return nil
}

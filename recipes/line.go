package recipes

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/foreign"
	"github.com/paddock-zk/paddock/internal/session"
)

// A line is where the goroutines of one client wait that want the same lock and
// would make the same node for it. Only one of them stands in the queue: it
// leads, that is asks the servers and waits for its turn, or holds the lock. The
// rest waits for it, without a node, a watch or a request.
//
// Who leads and gives up passes the place on to the next in line, as it is,
// whatever request is on its way for it. Who holds and gives back either hands
// the lock over, node and all, or deletes the node, and then the next in line
// leads, with a new one. See pass for when which.
type line struct {
	q   *queue      // of who founded it, as all are alike in what the node shows
	tag session.Tag // of its key

	// The fields below are guarded by the lines' mu.
	behind      bool          // others were seen ahead
	ahead       int           // how many nodes, when somebody last looked
	front       string        // the first of them, if it is the only one
	holder      *tenure       // who has the lock, nil while somebody leads
	won         time.Duration // when its node became first in its queue, since the lines were made
	passed      int           // how often the lock was handed over since
	first, last *waiter
	other       *line // with the same key, of others who would make other nodes
}

// lineKey is where a line is found: by the path of the lock and, for those who
// want it under another hold, the tag that they have from there. Whose tags
// differ do not wait in one line, as a MultiLock has to see each of them: what
// they hold may be what it waits for.
type lineKey struct {
	path string
	tag  session.Tag
}

// waiter is a goroutine in a line. It is small, as there may be thousands.
type waiter struct {
	mutex *InterProcessMutex
	line  *line
	ctx   context.Context
	done  <-chan struct{} // ctx's, as nobody else may call a method of it: it may block
	told  sync.WaitGroup  // of one, which takes less than a channel

	// The fields below are guarded by the lines' mu.
	since      time.Duration // the lines were made
	session    int64         // that it waits in and does not want to outlive, 0 for none
	prev, next *waiter
	inLine     bool
	late       bool // its time was up when it had just been taken out

	// What it was told. Without any of these its time is up.
	leads, expired bool
	won            *tenure
	place          *place // to lead with, nil for a new one
}

// lines are the lines of one client. A line is there as long as somebody leads or
// holds.
type lines struct {
	made time.Time
	mu   sync.Mutex // guards all lines of the client
	all  map[lineKey]*line
}

// linesOf is where the lines of a client are kept.
func linesOf(s *session.Session) *lines { return &sharedOf(s).lines }

// now is the time since the lines were made.
func (ls *lines) now() time.Duration { return time.Since(ls.made) }

func (l *line) lines() *lines { return linesOf(l.q.scope.Session) }

// alike is whether two lock objects would make the same node.
func (q *queue) alike(other *queue) bool {
	return q.scope == other.scope && q.mark == other.mark && q.opts.revocable == other.opts.revocable &&
		q.opts.hasData == other.opts.hasData && bytes.Equal(q.opts.data, other.opts.data)
}

// join waits in the line for a lock or founds it, which is to lead: then there is
// no waiter. Who asks only once and finds a line is refused if the lock is held
// here. Otherwise there is no line for it: it is not to be refused because
// others are asking too.
func (ls *lines) join(ctx context.Context, m *InterProcessMutex, once bool) (*line, *waiter, error) {
	q := &m.queue
	var id int64
	if q.opts.failOnLoss {
		id = q.scope.Session.ID()
	}
	key, done := lineKey{q.path, inherited(ctx)}, ctx.Done()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.findLocked(key, q)
	switch {
	case l == nil:
		l = &line{q: q, tag: key.tag, other: ls.all[key]}
		ls.all[key] = l
		return l, nil, nil
	case once && l.holder != nil:
		return l, nil, ErrNotAcquired
	case once:
		return nil, nil, nil
	}
	w := &waiter{mutex: m, line: l, ctx: ctx, done: done, since: ls.now(), session: id, inLine: true, prev: l.last}
	w.told.Add(1)
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	return l, w, nil
}

func (ls *lines) findLocked(key lineKey, q *queue) *line {
	for l := ls.all[key]; l != nil; l = l.other {
		if l.q.alike(q) {
			return l
		}
	}
	return nil
}

// eachWait tells of each line since when its first waiter has waited, and how many wait.
func (ls *lines) eachWait(note func(longestWait)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		for ; l != nil; l = l.other {
			n := 0
			for w := l.first; w != nil; w = w.next {
				n++
			}
			if n > 0 {
				note(longestWait{l.q, 0, ls.made.Add(l.first.since), n})
			}
		}
	}
}

// dropLocked removes a line that nobody is in.
func (ls *lines) dropLocked(l *line) {
	key := lineKey{l.q.path, l.tag}
	first := ls.all[key]
	switch {
	case first != l:
		for first.other != l {
			first = first.other
		}
		first.other = l.other
	case l.other != nil:
		ls.all[key] = l.other
	default:
		delete(ls.all, key)
	}
}

func (l *line) takeOutLocked(w *waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.inLine, w.prev, w.next = false, nil, nil
}

// putBackLocked undoes taking out the first one.
func (l *line) putBackLocked(w *waiter) {
	w.inLine, w.next = true, l.first
	if l.first == nil {
		l.last = w
	} else {
		l.first.prev = w
	}
	l.first = w
}

// await waits in line until there is something to be told, which is also when
// its context ends. A select on two channels would take more of the stack.
func (w *waiter) await() {
	heard := false
	defer func() {
		if !heard { // a method of the caller's context has panicked
			w.abandon()
		}
	}()
	if w.done != nil {
		stop := context.AfterFunc(w.ctx, w.withdraw)
		w.told.Wait()
		stop()
	} else {
		w.told.Wait()
	}
	heard = true
}

// withdraw leaves the line, unless it has been picked and is about to be told.
func (w *waiter) withdraw() {
	ls := linesOf(w.mutex.scope.Session)
	ls.mu.Lock()
	left := w.inLine
	if left {
		w.line.takeOutLocked(w)
	}
	w.late = !left
	ls.mu.Unlock()
	if left {
		w.told.Done()
	}
}

// abandon leaves the line whatever happens meanwhile: it passes on a lead or a lock
// that it was given.
func (w *waiter) abandon() {
	w.withdraw()
	w.told.Wait()
	switch {
	case w.leads:
		w.line.resign(w.place)
	case w.won != nil:
		w.won.decline()
	}
}

// finish makes of what a waiter was told what the caller is told, or does what
// is left to be done. It returns neither hold nor error to who has to begin again.
func (w *waiter) finish(ctx, limited context.Context, tries bool, began time.Duration) (hold *Hold, err error) {
	t := w.won
	var o *obstacle
	defer unclaimed(&hold, &t)
	switch {
	case w.expired:
		err = framework.ErrSessionExpired
	case w.leads:
		t, o, err = w.lead()
	case t == nil:
		o, err = w.line.seenAhead(), foreign.ContextEnd(limited)
	case limited.Err() != nil:
		o, err = t.place.heldHere(), foreign.ContextEnd(limited)
	default:
		// A deadline may have passed between the hand-over and now.
		if state, _ := t.now(); state != Lost {
			break
		}
		if !w.outlived() {
			return nil, nil
		}
		err = framework.ErrSessionExpired
	}
	if err != nil {
		return nil, w.mutex.refused(ctx, limited, tries, o, began, err)
	}
	return w.mutex.conclude(ctx, t)
}

// outlived is whether the session is over that a waiter was not to outlive.
func (w *waiter) outlived() bool {
	ls := linesOf(w.mutex.scope.Session)
	ls.mu.Lock()
	in := w.session
	ls.mu.Unlock()
	return in != 0 && in != w.mutex.scope.Session.ID()
}

// lead goes on from where another has got to.
func (w *waiter) lead() (*tenure, *obstacle, error) {
	l, p, m := w.line, w.place, w.mutex
	if w.outlived() {
		l.resign(p)
		return nil, nil, framework.ErrSessionExpired
	}
	switch {
	case p == nil:
	case p.session != m.scope.Session.ID():
		p.leave() // it is of a session that we may not have waited in
		p = nil
	default:
		p.queue, p.obstacle = &m.queue, nil
	}
	return l.lead(w.ctx, m, p, false)
}

// place is a new one for who leads.
func (l *line) place(ctx context.Context, m *InterProcessMutex) *place {
	return &place{queue: &m.queue, tag: tagOf(ctx, m.scope.Session), line: l}
}

// lead gets the lock from the servers, with a new place if there is none. If it
// fails, or a function of the caller's panics, it passes the lead on. o is who was in
// the way.
func (l *line) lead(ctx context.Context, m *InterProcessMutex, p *place, once bool) (t *tenure, o *obstacle, err error) {
	defer func() {
		if t == nil {
			l.resign(p)
		}
	}()
	if p == nil {
		p = l.place(ctx, m)
	}
	if ctx.Err() != nil { // nothing is sent for a caller that has gone
		return nil, p.seenAhead(), foreign.ContextEnd(ctx)
	}
	if t, err = p.win(ctx, once, m.tenure); err != nil {
		o = p.seenAhead()
	}
	return t, o, err
}

// resign passes the lead on.
func (l *line) resign(p *place) {
	l.taken(nil)
	if p != nil && p.name == "" && p.doubt == nil {
		p.sweep()
		p = nil
	}
	l.promote(p)
}

// promote lets the next in line lead, with a place or without. If nobody is
// there, the place is left and the line over.
func (l *line) promote(p *place) {
	ls := l.lines()
	ls.mu.Lock()
	w := l.first
	if w == nil {
		ls.dropLocked(l)
		ls.mu.Unlock()
		if p != nil {
			p.leave()
		}
		return
	}
	l.takeOutLocked(w)
	ls.mu.Unlock()
	// Its context may have ended. The waiter asks that itself: the methods of a
	// context are its caller's, and may block or panic.
	w.leads, w.place = true, p
	w.told.Done()
}

// seenAhead is who has the lock, nil if nobody was seen to.
func (l *line) seenAhead() *obstacle {
	ls := l.lines()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case l.holder != nil:
		return l.holder.place.heldHere()
	case !l.behind:
		return nil
	case l.front == "":
		return &obstacle{lock: l.q.lock, ahead: l.ahead}
	}
	return &obstacle{lock: l.q.lock, ahead: l.ahead, node: session.Below(l.q.path, l.front)}
}

// heldHere is a place that a goroutine of this client has, as an obstacle to another.
func (p *place) heldHere() *obstacle {
	return &obstacle{lock: p.lock, node: p.node(), session: p.session, local: true}
}

// sawAhead, taken and moved are what a place tells those behind it in line. They
// do nothing for a place without a line.

// sawAhead says that others are ahead in the queue.
func (l *line) sawAhead(v *view) {
	if l == nil {
		return
	}
	ls := l.lines()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.behind, l.ahead, l.front = true, v.at, ""
	if v.front.n == 0 {
		l.front = v.ahead
	}
}

// taken says who has the lock, nil if nobody has it after all. It comes before
// the claim that a tenure rests on, so that the line hears of its end.
func (l *line) taken(t *tenure) {
	if l == nil {
		return
	}
	ls := l.lines()
	now := ls.now()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.holder, l.won, l.passed = t, now, 0
}

// moved says that there is a place in a session. Those who waited in another,
// and want to be told, are.
func (l *line) moved(to int64) {
	if l == nil {
		return
	}
	var lost []*waiter
	ls := l.lines()
	ls.mu.Lock()
	for w := l.first; w != nil; {
		next := w.next
		switch {
		case !w.mutex.opts.failOnLoss:
		case w.session == 0:
			w.session = to
		case w.session != to:
			l.takeOutLocked(w)
			lost = append(lost, w)
		}
		w = next
	}
	ls.mu.Unlock()
	for _, w := range lost {
		w.expired = true
		w.told.Done()
	}
}

// vacate says that a tenure is over and its node gone or on its way out: the
// next one leads.
func (l *line) vacate(t *tenure) {
	if l == nil {
		return
	}
	ls := l.lines()
	ls.mu.Lock()
	was := l.holder == t
	if was {
		l.holder, l.behind = nil, false
	}
	ls.mu.Unlock()
	if was {
		l.promote(nil)
	}
}

// mostRun is how long after a node was first in its queue the lock is still
// handed over here.
const mostRun = time.Second

// pass hands the lock of a tenure that is over to the next in line, if there is
// one and all of this holds:
//
//   - Others have had to wait for less than the bound, in turns and in time.
//   - No MultiLock was seen in the queue. It needs a moment in which all of its
//     members are free, and yields to those it sees waiting, which who stands in
//     line is not.
//   - Nobody may have asked for the lock back: such a request is in the node.
//   - The tenure showed its token to nobody: the next one has the same.
//   - It started no transaction that the servers may still apply: they would, as
//     the node is there.
//   - It is not a write side that a read side was taken under: that relies on the
//     node going. The same for members of a group, which shows their tokens.
//   - The claim is held and its deadline not near: until then nothing but the
//     servers can tell, and the next one needs some time to work.
func (l *line) pass(t *tenure) bool {
	if l == nil {
		return false
	}
	p := t.place
	if p.opts.revocable || p.parties || t.isKept() {
		return false
	}
	ls := l.lines()
	now := ls.now()
	ls.mu.Lock()
	w := l.first
	if w == nil || l.holder != t || // nobody waits, or the node is gone
		l.passed >= p.opts.handovers && now-l.won >= p.opts.burst || now-l.won >= mostRun {
		ls.mu.Unlock()
		return false
	}
	l.takeOutLocked(w)
	ls.mu.Unlock()
	if !l.passTo(t, w) {
		return false
	}
	w.told.Done()
	t.isGone()
	return true
}

// passTo hands the lock over to somebody who was taken out of the line for it.
func (l *line) passTo(t *tenure, w *waiter) bool {
	p := *t.place
	p.queue = &w.mutex.queue
	next := w.mutex.tenure(&p)
	next.claim = t.claim
	ls := l.lines()
	become := func(from, to *tenure) (ok bool) {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if ok = l.holder == from; ok {
			l.holder = to
			l.passed++
		}
		return ok
	}
	// The line knows the new one before it can be told that it is lost.
	passed := become(t, next)
	if passed && p.scope.Session.PassClaim(t.claim, p.teller(next)) != nil {
		become(next, t)
		passed = false
	}
	if !passed {
		ls.mu.Lock()
		late := w.late
		if !late {
			l.putBackLocked(w)
		}
		ls.mu.Unlock()
		if late { // its time was up while it could not leave
			w.told.Done()
		}
		return false
	}
	t.place.straggler = false // it is looked for when the node goes
	w.won = next
	return true
}

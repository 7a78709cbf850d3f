package recipes

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/listeners"
)

// HoldState is how sure we are.
type HoldState int

// The states of a hold, in the order in which they can follow, save that Held
// and Uncertain may alternate.
const (
	// Held says that nobody else has the lock.
	Held HoldState = iota + 1
	// Uncertain says that the connection is suspended, or was and the node has
	// not been seen again. Nobody else has the lock: the deadline is not reached.
	Uncertain
	// Lost says that somebody else may have the lock.
	Lost
	// Released says that it was given back.
	Released
)

// String returns the state in one word.
func (s HoldState) String() string {
	switch s {
	case Held:
		return "HELD"
	case Uncertain:
		return "UNCERTAIN"
	case Lost:
		return "LOST"
	case Released:
		return "RELEASED"
	}
	return "NONE"
}

// tenure is one ownership of one lock: of a node, of a semaphore's lease, of a
// MultiLock's members, or of whatever a foreign lock has. The holds that
// re-enter it share it, and the last one to be released gives it back.
type tenure struct {
	key   lockKey // zero for a foreign lock and a MultiLock
	path  string  // of the node, "" if there is none
	token int64
	place *place         // what it stands on, if that is one node
	claim *session.Claim // to that node
	means *means         // of what stands on no node of its own, nil for others
	ended atomic.Bool    // the state is Lost or Released, which it stays

	mu        sync.Mutex // guards the fields below
	state     HoldState
	err       error // of Lost and Released
	holds     []*Hold
	groups    []*tenure                 // that are lost with this one
	hub       *listeners.Hub[HoldState] // made by the first Listen
	gone      signal                    // the node is known to be deleted
	then      []func()                  // to be called when it is
	revoked   signal                    // somebody asks for the lock back
	unobserve func()                    // ends waiting for that
	leaving   bool                      // a transaction that deletes the node is on its way
	hurried   bool                      // who gives it back will not wait
	kept      bool                      // the node is to go with the tenure
	writes    int32                     // transactions on their way
	removal   *session.Removal          // is waited for
	missed    error                     // why the node was seen to be gone meanwhile
}

// means are what is particular to an ownership without a node of its own.
type means struct {
	members []*Hold // of a MultiLock or a semaphore
	// check asks how sure the ownership is now. Nil if only lose tells.
	check func() (HoldState, error)
	// give gives it back, once, and returns what Release shall.
	give func() error
	// clear does what is left to do when a lost tenure is released. Nil for
	// nothing.
	clear func() error
}

// check asks how sure the ownership is now.
func (t *tenure) check() (HoldState, error) {
	switch {
	case t.claim != nil:
		return t.place.state(t.claim)
	case t.means != nil && t.means.check != nil:
		return t.means.check()
	}
	return Held, nil
}

// give gives it back, once, and returns what Release shall.
func (t *tenure) give() error {
	if t.place != nil {
		return t.place.give(t)
	}
	return t.means.give()
}

// node is the full path of the node it stands on, "" if that is none.
func (t *tenure) node() string {
	if t.place == nil {
		return ""
	}
	return t.place.node()
}

// mark is what kind of node it is, for the sides of a read/write lock.
func (t *tenure) mark() string {
	if t.place == nil {
		return ""
	}
	return t.place.mark
}

// signal is a channel that is closed once and made only if somebody asks for it.
type signal struct{ ch chan struct{} }

// sent is the channel of every signal that was sent before anybody asked.
var sent = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

func (s *signal) channel() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) send() {
	switch {
	case s.ch == nil:
		s.ch = sent
	case !s.isSent():
		close(s.ch)
	}
}

func (s *signal) isSent() bool {
	select {
	case <-s.ch:
		return true
	default: // nil as well
		return false
	}
}

func newTenure(key lockKey, path string) *tenure {
	return &tenure{key: key, path: path, state: Held}
}

// now is the state at this moment. It looks beyond what was told, as a deadline
// may have passed that no timer has seen yet.
func (t *tenure) now() (HoldState, error) {
	if !t.ended.Load() && (t.claim != nil || t.means != nil && t.means.check != nil) {
		state, err := t.check()
		if state != Lost {
			return state, nil
		}
		t.lose(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state, t.err
}

// endLocked makes Lost or Released of the state, and tells listeners.
func (t *tenure) endLocked(state HoldState, err error) {
	t.state, t.err = state, err
	t.ended.Store(true)
	t.publishLocked(state)
}

// over is whether a hold of the tenure has nothing to say any more: it was given
// back, or lost and the hold released since.
func (t *tenure) over(h *Hold) bool {
	if !t.ended.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == Released || t.state == Lost && !slices.Contains(t.holds, h)
}

// doubt and trust switch between Held and Uncertain.
func (t *tenure) doubt() { t.become(Held, Uncertain) }
func (t *tenure) trust() { t.become(Uncertain, Held) }

func (t *tenure) become(from, to HoldState) {
	t.mu.Lock()
	changed := t.state == from
	if changed {
		t.state = to
		t.publishLocked(to)
	}
	groups := slices.Clone(t.groups)
	t.mu.Unlock()
	if !changed {
		return
	}
	for _, g := range groups {
		// A group is as sure as its least sure member.
		if state, _ := g.check(); state == to {
			g.become(from, to)
		}
	}
}

// publishLocked tells listeners in the order of the changes; it only queues.
func (t *tenure) publishLocked(s HoldState) {
	if t.hub != nil {
		t.hub.Publish(s)
		if s == Lost || s == Released {
			t.hub.Close()
		}
	}
}

// lose ends the tenure as lost, if it has not ended. When it returns, the contexts
// of the holds have ended, also if somebody else is about to end them: what comes
// next may give the lock away.
func (t *tenure) lose(reason error) {
	t.mu.Lock()
	if t.state == Released || t.missedLocked(reason) {
		t.mu.Unlock()
		return
	}
	if t.state != Lost {
		t.endLocked(Lost, lostError(t.node(), reason))
	}
	lost := t.err
	holds, groups := slices.Clone(t.holds), slices.Clone(t.groups)
	t.mu.Unlock()
	for _, h := range holds {
		if ended := h.end(lost); len(ended) > 0 {
			t.detachAside(ended)
		}
	}
	for _, g := range groups {
		g.lose(lost)
	}
}

// detachAside detaches contexts without waiting for it, where there is a client to
// do so: their parents may block, and who tells of a loss has others to tell.
func (t *tenure) detachAside(ended []*holdContext) {
	s := t.session()
	if s == nil || !s.Aside(func() { detach(ended) }) {
		detach(ended)
	}
}

// session is that of the client whose node it stands on, of the first one if there
// are several; nil if there is none.
func (t *tenure) session() *session.Session {
	if t.place != nil {
		return t.place.scope.Session
	}
	if t.means == nil {
		return nil
	}
	for _, m := range t.means.members {
		if s := m.tenure.session(); s != nil {
			return s
		}
	}
	return nil
}

// lostError does not wrap what says already that a lock was lost.
func lostError(path string, reason error) error {
	var lost *LostError
	if errors.As(reason, &lost) {
		return reason
	}
	return &LostError{Path: path, Reason: reason}
}

// ungroup ends what group began.
func (t *tenure) ungroup(g *tenure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups = slices.DeleteFunc(t.groups, func(other *tenure) bool { return other == g })
}

// join adds a hold. It fails if the tenure has ended.
func (t *tenure) join(h *Hold) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Lost || t.state == Released {
		return t.err
	}
	if t.leaving {
		return ErrReleased
	}
	t.holds = append(t.holds, h)
	return nil
}

// takeOutLocked takes a hold away, most often the one that joined last.
func (t *tenure) takeOutLocked(h *Hold) {
	if last := len(t.holds) - 1; last >= 0 && t.holds[last] == h {
		t.holds[last] = nil
		t.holds = t.holds[:last]
		return
	}
	t.holds = slices.DeleteFunc(t.holds, func(other *Hold) bool { return other == h })
}

// leave takes a hold away, and does what the last one has to do. It returns
// what Release shall.
func (t *tenure) leave(h *Hold) error {
	t.mu.Lock()
	t.takeOutLocked(h)
	last, lost := len(t.holds) == 0, t.state == Lost
	err := t.err
	if last && !lost {
		t.endLocked(Released, ErrReleased)
	}
	t.mu.Unlock()
	switch {
	case lost && last && t.means != nil && t.means.clear != nil:
		return errors.Join(err, t.means.clear())
	case lost:
		return err
	case last:
		return t.give()
	}
	return nil
}

func (t *tenure) listen(fn func(HoldState)) (remove func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	over := t.state == Lost || t.state == Released
	hub := t.hub
	if hub == nil || over {
		hub = &listeners.Hub[HoldState]{ReplayLast: true, OnPanic: t.panicked}
		hub.Publish(t.state)
	}
	remove = hub.Listen(fn)
	if over {
		hub.Close()
	} else {
		t.hub = hub
	}
	return remove
}

// panicked reports what a listener panicked with to the client's error listeners.
func (t *tenure) panicked(value any) {
	if t.place != nil {
		t.place.scope.Session.Report(&session.PanicError{Value: value})
	} else if t.means != nil && len(t.means.members) > 0 {
		t.means.members[0].tenure.panicked(value)
	}
}

// hurry makes giving back not wait for the servers, or no longer.
func (t *tenure) hurry() {
	t.mu.Lock()
	t.hurried = true
	removal := t.removal
	t.mu.Unlock()
	if removal != nil {
		removal.GiveUp()
	}
}

// awaits notes which removal is waited for, for so long at most, and returns
// for how long it may be.
func (t *tenure) awaits(r *session.Removal, limit time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.removal = r; t.hurried {
		return 0
	}
	return limit
}

func (t *tenure) isGone() {
	t.mu.Lock()
	t.gone.send()
	then := t.then
	t.then = nil
	t.mu.Unlock()
	for _, fn := range then {
		fn()
	}
}

// thenGone calls fn once the node is known to be gone.
func (t *tenure) thenGone(fn func()) {
	t.mu.Lock()
	gone := t.gone.isSent()
	if !gone {
		t.then = append(t.then, fn)
	}
	t.mu.Unlock()
	if gone {
		fn()
	}
}

func (t *tenure) revoke() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revoked.send()
}

// keep sees to it that the node goes with the tenure, instead of being handed
// over to another. It fails if the tenure has ended.
func (t *tenure) keep() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Lost || t.state == Released {
		return t.err
	}
	t.kept = true
	return nil
}

// isKept is whether the node has to go with the tenure, which is over.
func (t *tenure) isKept() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept || t.writes > 0
}

// show returns the token, which is then this tenure's alone; 0 once it is over.
func (t *tenure) show() int64 {
	if t.keep() != nil {
		return 0
	}
	return t.token
}

// write says that a transaction begins. It fails if the tenure has ended.
func (t *tenure) write() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Lost || t.state == Released {
		return t.err
	}
	t.writes++
	return nil
}

// wrote says that a transaction is over. In doubt it may still be applied, for
// as long as the node is there.
func (t *tenure) wrote(doubt bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes--
	t.kept = t.kept || doubt
}

// decline gives back what nobody has joined, without waiting for it.
func (t *tenure) decline() {
	t.mu.Lock()
	lost := t.state == Lost
	if !lost {
		t.endLocked(Released, ErrReleased)
	}
	t.mu.Unlock()
	if !lost {
		t.hurry()
		_ = t.give() // goes on in the background
	}
}

package zktest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Match selects requests; a zero field matches all.
type Match struct {
	// Op is the operation: "create", "create2", "createContainer", "createTTL",
	// "delete", "exists", "getData", "setData", "getACL", "setACL",
	// "getChildren", "getChildren2", "getEphemerals", "getAllChildrenNumber",
	// "sync", "check", "multi", "multiRead", "setWatches", "setWatches2",
	// "addWatch", "checkWatches", "removeWatches", "auth", "sasl", "whoAmI",
	// "reconfig", "deleteContainer", "ping", "closeSession", "connect" or
	// "unknown". A "connect" opens a session or takes one up again.
	Op string
	// Path is a pattern as of path.Match. A multi matches if one of its
	// operations does.
	Path    string
	Session int64
	Nth     int // if not 0, only the n-th request, from 1, that matches the other fields
	// Func is called without locks, on the goroutine that handles the
	// connection's requests. It may call the server's methods.
	Func func(Request) bool
}

// Request is a request as functions given to Match, Call and Choose see it.
type Request struct {
	Op      string
	Path    string   // for a multi, that of its first operation
	Session int64    // 0 for a connect that opens a session
	Data    []byte   // of create and setData
	Paths   []string // for a multi, those of all operations
	Member  int      // the index of the member that it came to
}

// Rule is a fault in force.
type Rule struct {
	e     *ensemble
	match Match
	fault Fault

	// guarded by ensemble.mu
	random  *rand.Rand
	asked   int // what Func was asked about
	matched int
	fired   int
	removed bool
	known   bool // somebody has called Fired
}

// On applies a fault to each request that matches, until the rule is removed.
// If several rules match, the older ones come first. After a fault that cuts, fails
// or drops a reply, the server does not ask the others. On panics on a malformed pattern,
// on a negative number, and on the name of an operation that no request has.
//
// If the server was made with Start, a rule that met no request by the end of the test fails
// the test, since it tests nothing. Rules that differ only in Op count as one. Remove ends
// that, and so does a call of Fired.
func (s *Server) On(m Match, f Fault) *Rule {
	if err := m.check(); err != nil {
		panic("zktest: " + err.Error())
	}
	r := &Rule{e: s.e, match: m, fault: f, random: rand.New(rand.NewPCG(f.seed, 0))}
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.e.rules = append(slices.Clone(s.e.rules), r)
	return r
}

// ValidMatch reports whether On accepts a match: Nth is not negative, Path is a pattern, and Op is
// the name of an operation.
func ValidMatch(m Match) bool { return m.check() == nil }

// check says which field On does not accept.
func (m Match) check() error {
	if m.Op != "" && !slices.Contains(requestNames, m.Op) {
		return fmt.Errorf("Match.Op: unknown operation %q; see Match for their names", m.Op)
	}
	if m.Nth < 0 {
		return fmt.Errorf("Match.Nth: %d: requests are counted from 1, and 0 is each", m.Nth)
	}
	if _, err := path.Match(m.Path, ""); err != nil {
		return fmt.Errorf("Match.Path: %w %q", err, m.Path)
	}
	return nil
}

// Fired returns how often the fault happened.
func (r *Rule) Fired() int {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	r.known = true
	return r.fired
}

// idleLocked reports whether the rule met no request, and nobody knows. A Func, Random and
// Choose may decide against each request: that is the test's business. So is a number of all
// requests, which a loop counts up until there are no more.
func (r *Rule) idleLocked() bool {
	least := max(r.match.Nth, 1)
	if r.match.Op == "" && r.match.Path == "" {
		least = 1
	}
	return !r.known && r.asked == 0 && r.matched < least
}

// String is the fault and what it was to meet.
func (r *Rule) String() string {
	text := r.fault.String()
	if m := r.match; m.Op != "" {
		text += ", on " + m.Op
	}
	if m := r.match; m.Path != "" {
		text += " of " + m.Path
	}
	if m := r.match; m.Session != 0 {
		text += fmt.Sprintf(" by session %#x", m.Session)
	}
	if m := r.match; m.Nth != 0 {
		text += fmt.Sprintf(", number %d", m.Nth)
	}
	return text
}

// family is what rules have in common that differ only in Op, such as those that make all
// writes slow.
type family struct {
	kind    faultKind
	delay   time.Duration
	code    wire.Code
	path    string
	session int64
	nth     int
}

func (r *Rule) family() family {
	return family{r.fault.kind, r.fault.delay, r.fault.code, r.match.Path, r.match.Session, r.match.Nth}
}

// idleRules says which rules tested nothing, and what was requested instead.
func (s *Server) idleRules() []string {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	met := make(map[family]bool)
	for _, r := range s.e.rules {
		met[r.family()] = met[r.family()] || !r.idleLocked()
	}
	var idle []string
	for _, r := range s.e.rules {
		if !met[r.family()] {
			idle = append(idle, fmt.Sprintf("a rule met no request: %v; it matched %d times. Requests were %s", r, r.matched, s.e.requestedLocked()))
		}
	}
	return idle
}

// requestedLocked lists what was requested, and how often.
func (e *ensemble) requestedLocked() string {
	if len(e.requests) == 0 {
		return "none"
	}
	var all []string
	for _, op := range slices.Sorted(maps.Keys(e.requests)) {
		all = append(all, fmt.Sprintf("%d %s", e.requests[op], op))
	}
	return strings.Join(all, ", ")
}

// Remove ends the rule. Removing it again does nothing.
func (r *Rule) Remove() {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	r.removed = true
	r.e.rules = slices.DeleteFunc(slices.Clone(r.e.rules), func(x *Rule) bool { return x == r })
}

// verdict is what the rules want for a request that goes on.
type verdict struct {
	cut  bool // close the connection in place of the reply
	drop bool // leave the reply out
	part int  // if not 0: close it after so many bytes of the reply
	fail bool // answer with code, do not apply
	code wire.Code
}

// judge applies the rules to a request. With an error the connection ends.
func (c *conn) judge(op string, body wire.Record, session int64) (verdict, error) {
	if err := c.enter(); err != nil {
		return verdict{}, err
	}
	rules := c.m.e.rules
	if c.session != nil {
		session = c.session.id
	}
	c.m.e.mu.Unlock()
	if len(rules) == 0 {
		return verdict{}, nil
	}
	req := Request{Op: op, Session: session, Member: c.m.index}
	paths, data := describe(body)
	req.Paths = paths
	if len(paths) > 0 {
		req.Path = paths[0]
	}
	req.Data = slices.Clone(data)
	for _, r := range rules {
		if !r.match.selects(req, paths) || r.match.Func != nil && !r.ask(c, req) {
			continue
		}
		f := r.fire()
		if f.kind == faultChoose {
			choose := f.choose
			f = Fault{}
			c.ask(func(req Request) bool { f = choose(req); return true }, req)
			f = r.chosen(f)
		}
		switch f.kind {
		case faultCutBefore:
			return verdict{}, errOver
		case faultCutAfter:
			return verdict{cut: true}, nil
		case faultDropReply:
			return verdict{drop: true}, nil
		case faultFail:
			return verdict{fail: true, code: f.code}, nil
		case faultCutReply:
			return verdict{part: f.bytes}, nil
		case faultDelay:
			c.delay(f.delay)
		case faultCall:
			c.ask(func(req Request) bool { f.fn(req); return true }, req)
		}
	}
	return verdict{}, nil
}

// selects judges everything but Nth and Func.
func (m Match) selects(req Request, paths []string) bool {
	if m.Op != "" && m.Op != req.Op || m.Session != 0 && m.Session != req.Session {
		return false
	}
	if m.Path == "" {
		return true
	}
	return slices.ContainsFunc(paths, func(p string) bool {
		ok, _ := path.Match(m.Path, p)
		return ok
	})
}

// ask calls Func.
func (r *Rule) ask(c *conn, req Request) bool {
	r.e.mu.Lock()
	r.asked++
	r.e.mu.Unlock()
	return c.ask(r.match.Func, req)
}

// fire counts a match and returns what is to happen.
func (r *Rule) fire() Fault {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if r.removed {
		return Fault{}
	}
	r.matched++
	if r.match.Nth > 0 && r.matched != r.match.Nth {
		return Fault{}
	}
	if r.fault.kind == faultChoose {
		return r.fault // chosen follows
	}
	return r.settleLocked(r.fault)
}

// chosen counts the fault that Choose has chosen, and makes the random choices
// of that.
func (r *Rule) chosen(f Fault) Fault {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	return r.settleLocked(f)
}

// settleLocked makes the random choices of a fault, and counts it.
func (r *Rule) settleLocked(f Fault) Fault {
	for f.kind == faultRandom {
		i := r.random.IntN(len(f.choices) + 1)
		if i == len(f.choices) {
			return Fault{}
		}
		f = f.choices[i]
	}
	switch f.kind {
	case faultNone:
		return f
	case faultDelayBy:
		f = Delay(f.by(r.random))
	}
	r.fired++
	return f
}

// ask calls a function of the test's, unless the connection is over.
func (c *conn) ask(fn func(Request) bool, req Request) bool {
	if c.enter() != nil {
		return false
	}
	c.calling = true
	c.m.e.mu.Unlock()
	defer func() {
		c.m.e.mu.Lock()
		c.calling = false
		c.m.e.mu.Unlock()
	}()
	return fn(req)
}

// delay waits, unless the connection ends first.
func (c *conn) delay(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.over:
	}
}

// describe returns the paths in a request and its data.
func describe(req wire.Record) (paths []string, data []byte) {
	switch req := req.(type) {
	case *wire.CreateRequest:
		return []string{req.Path}, req.Data
	case *wire.CreateTTLRequest:
		return []string{req.Path}, req.Data
	case *wire.SetDataRequest:
		return []string{req.Path}, req.Data
	case *wire.PathVersionRequest:
		return []string{req.Path}, nil
	case *wire.PathWatchRequest:
		return []string{req.Path}, nil
	case *wire.PathRequest:
		return []string{req.Path}, nil
	case *wire.SetACLRequest:
		return []string{req.Path}, nil
	case *wire.AddWatchRequest:
		return []string{req.Path}, nil
	case *wire.WatchesRequest:
		return []string{req.Path}, nil
	case *wire.MultiRequest:
		for _, op := range req.Ops {
			p, _ := describe(op.Request)
			paths = append(paths, p...)
		}
	}
	return paths, nil
}

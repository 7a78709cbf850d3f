package zktest

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Match selects requests; a zero field matches all.
type Match struct {
	// Op is the operation: "create", "create2", "createContainer", "createTTL",
	// "delete", "exists", "getData", "setData", "getACL", "setACL",
	// "getChildren", "getChildren2", "getEphemerals", "getAllChildrenNumber",
	// "sync", "check", "multi", "multiRead", "setWatches", "setWatches2",
	// "addWatch", "checkWatches", "removeWatches", "auth", "whoAmI",
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

// Fault is what happens to a request.
type Fault struct {
	kind    faultKind
	delay   time.Duration
	code    wire.Code
	fn      func(Request)
	seed    uint64
	choices []Fault
	by      Distribution
	bytes   int
	choose  func(Request) Fault
}

type faultKind int

const (
	faultNone faultKind = iota
	faultCutBefore
	faultCutAfter
	faultDelay
	faultFail
	faultCall
	faultRandom
	faultDelayBy
	faultCutReply
	faultChoose
)

// CutBefore closes the connection; the request is not applied.
func CutBefore() Fault { return Fault{kind: faultCutBefore} }

// CutAfter applies the request and closes the connection in place of the
// reply. Replies to earlier requests and events still go out.
func CutAfter() Fault { return Fault{kind: faultCutAfter} }

// Delay lets d pass before the server handles the request. All later requests
// of its connection wait as well.
func Delay(d time.Duration) Fault { return Fault{kind: faultDelay, delay: d} }

// CutReply applies the request, sends the first n bytes of the reply, at least
// one and not all, and closes the connection. A frame begins with four bytes of
// length. A request without a reply, or one whose reply is outside the order of
// requests, such as a ping, is answered in full.
func CutReply(n int) Fault { return Fault{kind: faultCutReply, bytes: max(n, 1)} }

// DelayBy is Delay with a time drawn anew for each request. The same seed draws
// the same times, in the order in which requests match.
func DelayBy(seed uint64, d Distribution) Fault { return Fault{kind: faultDelayBy, seed: seed, by: d} }

// Choose applies the fault that fn returns; the zero Fault does nothing. fn is
// called in the same way as Match.Func.
func Choose(fn func(Request) Fault) Fault { return Fault{kind: faultChoose, choose: fn} }

// String names what happens.
func (f Fault) String() string {
	switch f.kind {
	case faultCutBefore:
		return "cut before"
	case faultCutAfter:
		return "cut after"
	case faultDelay:
		return "delay " + f.delay.String()
	case faultFail:
		return "fail " + f.code.String()
	case faultCall:
		return "call"
	case faultRandom:
		return "random"
	case faultDelayBy:
		return "delay by distribution"
	case faultCutReply:
		return fmt.Sprintf("cut reply after %d bytes", f.bytes)
	case faultChoose:
		return "choose"
	}
	return "nothing"
}

// Fail answers with a ZooKeeper code, such as -101 for no node, and does not
// apply the request. It answers a connect as if its session were gone. An auth
// that fails also ends the connection, as on a real server.
func Fail(code int32) Fault { return Fault{kind: faultFail, code: wire.Code(code)} }

// Call runs fn and then goes on with the request. fn may call the server's
// methods; the connection's later requests wait for it.
func Call(fn func(Request)) Fault { return Fault{kind: faultCall, fn: fn} }

// Random picks one of the faults, or none, each with the same probability. The
// same seed makes the same choices, in the order in which requests match.
func Random(seed uint64, f ...Fault) Fault { return Fault{kind: faultRandom, seed: seed, choices: f} }

// Rule is a fault in force.
type Rule struct {
	e     *ensemble
	match Match
	fault Fault

	// guarded by ensemble.mu
	random  *rand.Rand
	matched int
	fired   int
	removed bool
}

// On applies a fault to each request that matches, until the rule is removed.
// If several rules match, the older ones come first. After a fault that cuts or
// fails, the server does not ask the others. On panics on a malformed pattern,
// and on the name of an operation that no request has.
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

// ValidMatch reports whether On accepts a match: Path is a pattern, and Op is
// the name of an operation.
func ValidMatch(m Match) bool { return m.check() == nil }

// check says which field On does not accept.
func (m Match) check() error {
	if m.Op != "" && !slices.Contains(requestNames, m.Op) {
		return fmt.Errorf("Match.Op: unknown operation %q; see Match for their names", m.Op)
	}
	if _, err := path.Match(m.Path, ""); err != nil {
		return fmt.Errorf("Match.Path: %w", err)
	}
	return nil
}

// Fired returns how often the fault happened.
func (r *Rule) Fired() int {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	return r.fired
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
		if !r.match.selects(req, paths) || r.match.Func != nil && !c.ask(r.match.Func, req) {
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

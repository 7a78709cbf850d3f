package zktest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// A test that waits for ever in virtual time does not deadlock, since clients ping and servers
// expire: it runs until the test's timeout. The watchdog looks now and then whether any client
// has asked for something since it last looked.

const (
	defaultWatchdog = time.Hour
	// sleepy is how much longer it waits while a goroutine of the bubble sleeps. Sleep ends,
	// unless the test polls for something that does not come.
	sleepy = 24
	// looks is how often it looks before it finds that nothing happens.
	looks = 2
	// offBeat keeps its looks from the instants at which much else happens.
	offBeat = 7 * time.Nanosecond
	// recent is how many requests it shows.
	recent = 20
)

// Watchdog says after how much virtual time without anything but signs of life a test counts
// as one that hangs. The process then ends with a panic that says which lines of the test wait,
// which sessions wait for which nodes, and what was requested last. While a goroutine of the
// bubble is in time.Sleep, it takes 24 times as long. Signs of life are pings, syncs, multis of
// checks alone, and clients that connect again.
//
// It watches servers made with Start and StartCluster in a bubble of testing/synctest.
// Defaults to an hour; 0 turns it off.
func Watchdog(d time.Duration) Option { return optionFunc(func(c *config) { c.watchdog = d }) }

// watchdog looks whether anything happens. ensemble.mu guards it.
type watchdog struct {
	alarm alarm
	test  string // its name; "" while the watchdog is off
	stirs int    // requests so far
	seen  int    // stirs, when it last looked
	vain  int    // how often it has looked since something happened
	awake int    // how often since something happened or a goroutine slept
	asked [recent]asked
}

// asked is a request.
type asked struct {
	at      time.Duration
	session int64
	op      string
	path    string
	more    int // operations of a multi
}

// watch turns the watchdog on for a test.
func (e *ensemble) watch(test string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cfg.watchdog > 0 && inBubble() {
		e.dog.test = test
		e.lookLaterLocked()
	}
}

// stirLocked notes a request.
func (c *conn) stirLocked(name string, op wire.Op, req wire.Record) {
	e := c.m.e
	if e.dog.test == "" || signOfLife(op, req) {
		return
	}
	a := asked{at: time.Since(e.begun), op: name}
	if c.session != nil {
		a.session = c.session.id
	}
	if paths, _ := describe(req); len(paths) > 0 {
		a.path, a.more = strings.Clone(paths[0]), len(paths)-1
	}
	e.dog.asked[e.dog.stirs%recent] = a
	e.dog.stirs++
}

// signOfLife reports whether clients send a request by themselves, while their user waits.
func signOfLife(op wire.Op, req wire.Record) bool {
	switch op {
	case wire.OpPing, wire.OpSync, wire.OpSetWatches, wire.OpSetWatches2, wire.OpAuth:
		return true
	case wire.OpMulti:
		multi, ok := req.(*wire.MultiRequest)
		return ok && !slices.ContainsFunc(multi.Ops, func(op wire.MultiOp) bool { return op.Op != wire.OpCheck })
	}
	return false
}

// look panics if nothing has happened for too long.
func (e *ensemble) look() {
	if !e.vainLook() {
		return
	}
	routines := goroutines() // takes a while
	e.mu.Lock()
	if slices.ContainsFunc(routines, func(g goroutine) bool { return g.sleeps }) {
		e.dog.awake = 0
	}
	if e.dog.awake < looks && e.dog.vain < looks*sleepy {
		e.mu.Unlock()
		return
	}
	text := e.hangLocked(routines)
	e.mu.Unlock()
	panic(text)
}

// vainLook reports whether nothing has happened since the last look, and has the watchdog look
// again.
func (e *ensemble) vainLook() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.dog.vain++
	e.dog.awake++
	if e.dog.stirs != e.dog.seen {
		e.dog.seen, e.dog.vain, e.dog.awake = e.dog.stirs, 0, 0
	}
	e.lookLaterLocked()
	return e.dog.vain > 0
}

func (e *ensemble) lookLaterLocked() { e.dog.alarm.set(e.cfg.watchdog/looks+offBeat, e.look) }

// hangLocked says who waits for what.
func (e *ensemble) hangLocked(routines []goroutine) string {
	var b strings.Builder
	fmt.Fprintf(&b, "zktest: %s hangs: no client has asked for anything in %v of virtual time, save signs of life\n\nThese wait:\n",
		e.dog.test, time.Duration(e.dog.vain)*e.cfg.watchdog/looks)
	for _, g := range routines {
		if g.line != "" {
			fmt.Fprintf(&b, "  %s: %s%s\n", g.line, g.call, g.state)
		}
	}
	for i, line := range e.stillLocked() {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	for i, s := range e.sessionsLocked() {
		if i == 0 {
			b.WriteString("\nSessions:\n")
		}
		fmt.Fprintf(&b, "  %s\n", e.sessionLineLocked(s))
	}
	if e.dog.stirs > 0 {
		b.WriteString("\nLast requests:\n")
	}
	for i := max(0, e.dog.stirs-recent); i < e.dog.stirs; i++ {
		a := e.dog.asked[i%recent]
		fmt.Fprintf(&b, "  %12.6f %#x %s %s", a.at.Seconds(), a.session, a.op, a.path)
		if a.more > 0 {
			fmt.Fprintf(&b, " and %d more", a.more)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\ndocs/my-test-hangs.md has the usual mistakes. A test that means to wait for so long says so with zktest.Watchdog.\n")
	return b.String()
}

// stillLocked lists what a verb has stopped and no verb has set going again.
func (e *ensemble) stillLocked() []string {
	var lines []string
	for _, m := range e.members {
		who := "The server"
		if len(e.members) > 1 {
			who = fmt.Sprintf("Member %d", m.index)
		}
		for _, is := range []struct {
			so   bool
			text string
		}{
			{m.down, "is stopped: nobody has called Restart"},
			{m.frozenLocked(), "is frozen: nobody has called Thaw"},
			{m.refuses, "refuses connections: nobody has called Accept"},
			{len(m.stalls) > 0, "has stalled connections: nobody has called Unstall"},
			{!m.down && m.role == roleLooking, "sees no majority"},
		} {
			if is.so {
				lines = append(lines, who+" "+is.text+".")
			}
		}
	}
	if slices.ContainsFunc(e.cut, func(from []bool) bool { return slices.Contains(from, true) }) {
		lines = append(lines, "Members are partitioned: nobody has called Heal.")
	}
	for _, r := range e.rules {
		lines = append(lines, fmt.Sprintf("A rule is in force, and has fired %d times: %s.", r.fired, r))
	}
	return lines
}

// sessionLineLocked says which nodes a session has, and which it waits for.
func (e *ensemble) sessionLineLocked(s Session) string {
	is := "disconnected"
	if s.Remote != "" {
		is = "connected"
	}
	line := fmt.Sprintf("%#x %s", s.ID, is)
	data := e.head.data
	if own := data.Ephemerals(s.ID); len(own) > 0 {
		line += "\n    has " + some(own)
	}
	var watched []string
	for _, m := range e.members {
		for _, w := range m.watchesLocked() {
			if w.Session != s.ID {
				continue
			}
			text := fmt.Sprintf("%s (%s)", w.Path, w.Kind)
			stat, code := data.Exists(w.Path)
			switch {
			case code != wire.CodeOK:
				text += ", which is not there"
			case stat.EphemeralOwner == s.ID:
				text += ", its own"
			case e.sessions.byID[stat.EphemeralOwner] != nil:
				text += fmt.Sprintf(", of session %#x", stat.EphemeralOwner)
			}
			watched = append(watched, text)
		}
	}
	slices.Sort(watched)
	if watched = slices.Compact(watched); len(watched) > 0 {
		line += "\n    watches " + some(watched)
	}
	return line
}

// some lists the first few.
func some(list []string) string {
	const few = 5
	if len(list) <= few {
		return strings.Join(list, "\n      and ")
	}
	return fmt.Sprintf("%s\n      and %d more", strings.Join(list[:few], "\n      and "), len(list)-few)
}

// goroutine is one of the bubble that the caller is in.
type goroutine struct {
	state  string // such as "select"
	line   string // of a test, file:line; "" if no test file is in its stack
	call   string // what was called there, and a comma
	sleeps bool
}

var (
	header   = regexp.MustCompile(`^goroutine \d+ \[(.*)\]:$`)
	bubbleOf = regexp.MustCompile(`synctest bubble \d+`)
	testLine = regexp.MustCompile(`^\t(.*_test\.go:\d+)`)
)

// goroutines lists the others of the caller's bubble.
func goroutines() []goroutine {
	stack := make([]byte, 1<<16)
	for {
		n := runtime.Stack(stack, true)
		if n < len(stack) {
			stack = stack[:n]
			break
		}
		stack = make([]byte, 2*len(stack))
	}
	var bubble string
	var list []goroutine
	for block := range strings.SplitSeq(string(stack), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		head := header.FindStringSubmatch(lines[0])
		if head == nil {
			continue
		}
		in := bubbleOf.FindString(head[1])
		if bubble == "" { // our own goroutine comes first
			bubble = in
			continue
		}
		if in != bubble || strings.HasPrefix(head[1], "synctest.Run") {
			continue
		}
		list = append(list, describeGoroutine(head[1], lines[1:]))
	}
	return list
}

// describeGoroutine finds the line of a test in a stack: the latest that runs, or else that of
// the go statement. A stack has two lines for each call.
func describeGoroutine(header string, stack []string) goroutine {
	state, _, _ := strings.Cut(header, ",")
	g := goroutine{state: strings.TrimSuffix(state, " (durable)"), sleeps: strings.HasPrefix(stack[0], "time.Sleep(")}
	for i := 1; i < len(stack); i += 2 {
		found := testLine.FindStringSubmatch(stack[i])
		if found == nil {
			continue
		}
		g.line = filepath.Base(found[1])
		callee := i - 3
		if callee >= 0 {
			g.call = function(stack[callee]) + ", "
		}
		break
	}
	return g
}

// function is the name of the function in a line of a stack, without its module.
func function(line string) string {
	if end := strings.LastIndexByte(line, '('); end > 0 {
		line = line[:end]
	}
	return line[strings.LastIndexByte(line, '/')+1:]
}

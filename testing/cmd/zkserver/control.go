package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	zktest "github.com/paddock-zk/paddock/testing"
)

// control is the endpoint that commands a server over HTTP. Parameters are
// those of a URL or a form; answers are JSON, {"error": ...} with a status of
// 400 or above.
type control struct {
	cluster *zktest.Cluster
	log     *zap.Logger
	mux     *http.ServeMux
	help    []string
	origin  *http.CrossOriginProtection

	mu    sync.Mutex // guards the fields below
	rules map[int]*rule
	last  int
}

// rule is one that a client of the endpoint has made.
type rule struct {
	*zktest.Rule
	text string
}

// params are those of one request; the first that is wrong is kept.
type params struct {
	url.Values
	c   *control
	err error
}

func newControl(cluster *zktest.Cluster, log *zap.Logger) *control {
	c := &control{cluster: cluster, log: log, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection(), rules: make(map[int]*rule)}
	c.look()
	c.command()
	c.commandCluster()
	c.commandRules()
	c.get("/", "this list", func(*params) any { return c.help })
	return c
}

// ServeHTTP refuses what a page of another site makes a developer's browser send.
func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := c.origin.Check(r)
	if err == nil {
		err = checkHost(r)
	}
	if err != nil {
		answerError(w, http.StatusForbidden, err)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// checkHost refuses a name that leads to loopback and is not localhost. To a browser a page
// under that name is of our own site, so the rules about origins let it in.
func checkHost(r *http.Request) error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || !local.IP.IsLoopback() {
		return nil
	}
	host := (&url.URL{Host: r.Host}).Hostname()
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil {
		return nil
	}
	return fmt.Errorf("host %q: on loopback, call it by its address or as localhost", host)
}

func answerError(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // a client that has left
}

// look adds what changes nothing.
func (c *control) look() {
	c.get("/sessions", "sessions that are alive; member=i for what one member of a cluster knows, also below", func(p *params) any { return sessions(p.server().Sessions()) })
	c.get("/watches", "watches that are set", func(p *params) any { return watches(p.server().Watches()) })
	c.get("/ephemerals", "ephemeral nodes; session=id for one session's", func(p *params) any {
		return list(p.server().Ephemerals(p.session()))
	})
	c.get("/counters", "what there is and was done", func(p *params) any { return p.server().Counters() })
	c.get("/requests", "requests by operation", func(p *params) any { return p.server().Requests() })
	c.get("/dump", "the tree, as text", func(p *params) any { return p.text(p.server().Dump) })
	c.get("/transcript", "the latest requests and replies, as text; needs -transcript", func(p *params) any { return p.text(p.server().WriteTranscript) })
	c.get("/leader", "the leader's index, -1 without one", func(*params) any { return map[string]int{"leader": c.cluster.Leader()} })
}

// command adds the verbs of a server.
func (c *control) command() {
	c.post("/stop", "stop listening and reset connections; data and sessions are kept", func(p *params) error { return p.server().Stop() })
	c.post("/restart", "listen again, with data and sessions", func(p *params) error { return p.server().Restart() })
	c.post("/reset", "restart as new: no data, no sessions", func(*params) error { return c.cluster.Reset() })
	c.post("/expire", "end a session as its timeout would: session=id", func(p *params) error { return p.server().ExpireSession(p.must("session")) })
	c.post("/disconnect", "cut a session's connection, session=id, or everybody's", func(p *params) error {
		if p.Get("session") != "" {
			return p.server().Disconnect(p.session())
		}
		p.server().DisconnectAll()
		return nil
	})
	c.post("/freeze", "stand still; connections stay open", do(func(p *params) { p.server().Freeze() }))
	c.post("/thaw", "go on", do(func(p *params) { p.server().Thaw() }))
	c.post("/refuse", "turn new connections away", do(func(p *params) { p.server().Refuse() }))
	c.post("/accept", "accept them again", do(func(p *params) { p.server().Accept() }))
	c.post("/stall", "hold what goes one way: direction=from-client, to-client or both, session=id or everybody's", do(func(p *params) {
		if d := p.direction(); p.err == nil {
			p.server().Stall(p.session(), d)
		}
	}))
	c.post("/unstall", "end that: session=id or everybody's", do(func(p *params) { p.server().Unstall(p.session()) }))
	c.post("/sweep", "remove empty containers and nodes past their time to live", do(func(p *params) { p.server().SweepContainers() }))
	c.post("/advance", "let time pass at once: by=30s", do(func(p *params) {
		d := p.by()
		if d < 0 {
			p.fail("by", errors.New("negative"))
		}
		if p.err == nil {
			p.server().Advance(d)
		}
	}))
	c.post("/move-clock", "move the clock on the wall: by=-1h", do(func(p *params) { p.server().MoveClock(p.by()) }))
	c.post("/sequence", "preset a parent's counter: parent=/path, next=2147483640", func(p *params) error {
		if next := p.must("next"); p.err == nil {
			return p.server().SetSequence(p.Get("parent"), int32(next))
		}
		return p.err
	})
}

// commandCluster adds the verbs of a cluster.
func (c *control) commandCluster() {
	c.post("/partition", "let members speak only within their group: groups=0|1,2", do(func(p *params) {
		var groups [][]int
		for group := range strings.SplitSeq(p.Get("groups"), "|") {
			var members []int
			for name := range strings.SplitSeq(group, ",") {
				members = append(members, p.index("groups", name))
			}
			groups = append(groups, members)
		}
		if p.err == nil {
			c.cluster.Partition(groups...)
		}
	}))
	c.post("/heal", "end all partitions", do(func(*params) { c.cluster.Heal() }))
	c.post("/lag", "hold a follower back: member=i, by=200ms", do(func(p *params) {
		if i, d := p.index("member", p.Get("member")), p.by(); p.err == nil {
			c.cluster.Lag(i, d)
		}
	}))
	c.post("/elect", "move the leadership: member=i", do(func(p *params) {
		if i := p.index("member", p.Get("member")); p.err == nil {
			c.cluster.Elect(i)
		}
	}))
}

// commandRules adds faults by rule.
func (c *control) commandRules() {
	c.get("/rules", "rules in force, and how often they fired", func(*params) any {
		c.mu.Lock()
		defer c.mu.Unlock()
		all := make(map[int]any, len(c.rules))
		for id, r := range c.rules {
			all[id] = map[string]any{"rule": r.text, "fired": r.Fired()}
		}
		return all
	})
	c.handle("POST", "/rules", "a fault for matching requests: op=create, path=/locks/*, session=id, nth=1, all optional; "+
		"fault=cut-before, cut-after, cut-reply (bytes=7), drop-reply, delay (by=1s) or fail (code=-4)", func(p *params) any {
		m := zktest.Match{Op: p.Get("op"), Path: p.Get("path"), Session: p.session(), Nth: int(p.number("nth"))}
		f := p.fault()
		if !zktest.ValidMatch(zktest.Match{Op: m.Op}) {
			p.fail("op", fmt.Errorf("unknown operation %q", m.Op))
		}
		if !zktest.ValidMatch(zktest.Match{Path: m.Path}) {
			p.fail("path", errors.New("malformed pattern"))
		}
		if m.Nth < 0 {
			p.fail("nth", errors.New("requests are counted from 1"))
		}
		if p.err != nil {
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last++
		c.rules[c.last] = &rule{c.cluster.On(m, f), p.Encode()}
		return map[string]int{"id": c.last}
	})
	c.post("/rules/remove", "end a rule: id=1, or all of them", func(p *params) error {
		id := int(p.number("id"))
		c.mu.Lock()
		defer c.mu.Unlock()
		if p.Get("id") != "" && c.rules[id] == nil {
			return fmt.Errorf("no rule %d", id)
		}
		for n, r := range c.rules {
			if p.Get("id") == "" || n == id {
				r.Remove()
				delete(c.rules, n)
			}
		}
		return nil
	})
}

func do(fn func(*params)) func(*params) error {
	return func(p *params) error {
		fn(p)
		return nil
	}
}

func (c *control) get(path, what string, fn func(*params) any) { c.handle("GET", path, what, fn) }

func (c *control) post(path, what string, fn func(*params) error) {
	c.handle("POST", path, what, func(p *params) any {
		if err := fn(p); err != nil && p.err == nil {
			p.err = err
		}
		return map[string]bool{"ok": true}
	})
}

// parameter finds the parameters that a command's help names.
var parameter = regexp.MustCompile(`\b([a-z]+)=`)

// handle serves one command. It takes the parameters that its help names, and
// member.
func (c *control) handle(method, path, what string, fn func(*params) any) {
	c.help = append(c.help, method+" "+path+": "+what)
	pattern := method + " " + path
	if path == "/" {
		pattern = "GET /{$}"
	}
	known := map[string]bool{"member": true}
	for _, name := range parameter.FindAllStringSubmatch(what, -1) {
		known[name[1]] = true
	}
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		p := &params{c: c}
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		p.err = r.ParseForm()
		p.Values = r.Form
		p.refuseUnknown(known)
		var answer any
		if p.err == nil {
			p.server() // a wrong member is an error of every command
		}
		if p.err == nil {
			answer = fn(p)
		}
		if method == "POST" {
			c.log.Info("command", zap.String("path", path), zap.String("with", p.Encode()), zap.Error(p.err))
		}
		if text, ok := answer.(string); ok && p.err == nil {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, text)
			return
		}
		if p.err != nil {
			status := http.StatusBadRequest
			if errors.Is(p.err, zktest.ErrNoSession) {
				status = http.StatusNotFound
			}
			answerError(w, status, p.err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // a client that has left
	})
}

func (p *params) fail(name string, err error) {
	if p.err == nil {
		p.err = fmt.Errorf("%s: %w", name, err)
	}
}

// refuseUnknown fails for a parameter that the command does not have. If it
// were ignored, a misspelt name would do something else than was meant.
func (p *params) refuseUnknown(known map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(p.Values)) {
		if !known[name] {
			p.fail(name, errors.New("unknown parameter"))
		}
	}
}

// server is the member that is asked for, or all of them.
func (p *params) server() *zktest.Server {
	if name := p.Get("member"); name != "" {
		if i := p.index("member", name); p.err == nil {
			return p.c.cluster.Member(i)
		}
	}
	return &p.c.cluster.Server
}

func (p *params) index(name, value string) int {
	i, err := strconv.Atoi(strings.TrimSpace(value))
	if err == nil && (i < 0 || i >= p.c.cluster.Size()) {
		err = fmt.Errorf("no member %d", i)
	}
	if err != nil {
		p.fail(name, err)
		return 0
	}
	return i
}

// number is 0 if it is not given; 0x is fine.
func (p *params) number(name string) int64 {
	if p.Get(name) == "" {
		return 0
	}
	return p.must(name)
}

func (p *params) must(name string) int64 {
	n, err := strconv.ParseInt(p.Get(name), 0, 64)
	if err != nil {
		p.fail(name, err)
	}
	return n
}

func (p *params) session() int64 { return p.number("session") }

func (p *params) by() time.Duration {
	d, err := time.ParseDuration(p.Get("by"))
	if err != nil {
		p.fail("by", err)
	}
	return d
}

func (p *params) direction() zktest.Direction {
	switch p.Get("direction") {
	case "from-client":
		return zktest.FromClient
	case "to-client":
		return zktest.ToClient
	case "both", "":
		return zktest.BothWays
	}
	p.fail("direction", errors.New("want from-client, to-client or both"))
	return 0
}

func (p *params) fault() zktest.Fault {
	switch p.Get("fault") {
	case "cut-before":
		return zktest.CutBefore()
	case "cut-after":
		return zktest.CutAfter()
	case "cut-reply":
		return zktest.CutReply(int(p.number("bytes")))
	case "drop-reply":
		return zktest.DropReply()
	case "delay":
		return zktest.Delay(p.by())
	case "fail":
		code := p.must("code")
		if code >= 0 || code < math.MinInt32 {
			p.fail("code", errors.New("ZooKeeper's codes are negative, such as -101"))
			return zktest.Fault{}
		}
		return zktest.Fail(int32(code))
	}
	p.fail("fault", errors.New("want cut-before, cut-after, cut-reply, drop-reply, delay or fail"))
	return zktest.Fault{}
}

func (p *params) text(write func(io.Writer) error) any {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		p.fail("text", err)
	}
	return b.String()
}

// Ids are text, since JSON numbers lose their last digits in many languages.

func sessions(all []zktest.Session) any {
	out := []any{}
	for _, s := range all {
		out = append(out, map[string]any{
			"id": hex(s.ID), "timeout_ms": s.Timeout.Milliseconds(), "remote": s.Remote, "member": s.Member,
		})
	}
	return out
}

func watches(all []zktest.WatchInfo) any {
	out := []any{}
	for _, w := range all {
		out = append(out, map[string]any{"path": w.Path, "kind": w.Kind, "session": hex(w.Session)})
	}
	return out
}

func list(paths []string) any {
	if paths == nil {
		return []string{}
	}
	return paths
}

func hex(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }

//go:build unix

package realzk

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrNoLeader reports that no member leads.
var ErrNoLeader = errors.New("no member leads")

// ErrNotConnected reports that no member has a connection of the session.
var ErrNotConnected = errors.New("session is connected to no member")

// answerLimit bounds one four-letter word: a member that was paused or is busy
// must not hold up a question to all of them for ever.
const answerLimit = 5 * time.Second

// FourLetter sends member i one of ZooKeeper's four-letter words ("srvr",
// "cons", "mntr", ...) and returns the answer. A paused member accepts the
// question and answers when it is resumed; the call gives up after 5 seconds,
// or when ctx ends.
func (e *Ensemble) FourLetter(ctx context.Context, i int, word string) (string, error) {
	return e.ask(ctx, i, e.members[i].asks, nil, word)
}

// ask asks a port of member i, by TLS if cfg is not nil.
func (e *Ensemble) ask(ctx context.Context, i int, addr string, cfg *tls.Config, word string) (string, error) {
	answer, err := fourLetter(ctx, addr, cfg, word)
	if err != nil {
		return "", fmt.Errorf("%s to member %d: %w", word, i, err)
	}
	return answer, nil
}

func fourLetter(ctx context.Context, addr string, cfg *tls.Config, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", errors.Join(context.Cause(ctx), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if stop() {
			_ = conn.Close()
		}
	}()
	stream := conn
	if cfg != nil {
		stream = tls.Client(conn, cfg)
	}
	if _, err := io.WriteString(stream, word); err != nil {
		return "", errors.Join(context.Cause(ctx), err)
	}
	answer, err := io.ReadAll(stream)
	if err != nil {
		return "", errors.Join(context.Cause(ctx), err)
	}
	return string(answer), nil
}

// serverState is what a member says of itself.
type serverState struct {
	version string
	mode    string // "standalone", "leader", "follower", "read-only", or "" while it does not serve
	zxid    int64  // the last one it knows; its upper half is the leader's epoch
}

func (s serverState) serving() bool { return s.mode != "" && s.mode != "read-only" }

func (s serverState) leads() bool { return s.mode == "leader" || s.mode == "standalone" }

func (e *Ensemble) serverState(ctx context.Context, i int) (serverState, error) {
	answer, err := e.FourLetter(ctx, i, "srvr")
	if err != nil {
		return serverState{}, err
	}
	return parseSrvr(answer), nil
}

// parseSrvr reads lines such as "Mode: leader". A member that does not serve
// answers with one sentence instead.
func parseSrvr(answer string) serverState {
	var s serverState
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Zookeeper version":
			s.version, _, _ = strings.Cut(value, ",")
		case "Mode":
			s.mode = value
		case "Zxid":
			s.zxid, _ = strconv.ParseInt(value, 0, 64)
		}
	}
	return s
}

// Mode returns what member i serves as: "standalone", "leader", "follower",
// "read-only", or "" while it does not.
func (e *Ensemble) Mode(ctx context.Context, i int) (string, error) {
	s, err := e.serverState(ctx, i)
	return s.mode, err
}

// Version returns the servers' version, such as "3.8.0".
func (e *Ensemble) Version(ctx context.Context) (string, error) {
	leader, err := e.Leader(ctx)
	if err != nil {
		return "", err
	}
	s, err := e.serverState(ctx, leader)
	number, _, _ := strings.Cut(s.version, "-") // what follows is the commit
	return number, err
}

// Leader returns the member that leads, which for a standalone server is 0. A
// leader that was cut off takes itself for one for a while; if two do, it is
// the later one. Members that are paused or not running are not asked. The
// error is ErrNoLeader if no member leads.
func (e *Ensemble) Leader(ctx context.Context) (int, error) {
	leader, epoch := -1, int64(-1)
	err := e.eachAnswering(func(i int) error {
		s, err := e.serverState(ctx, i)
		if err == nil && s.leads() && s.zxid>>32 > epoch {
			leader, epoch = i, s.zxid>>32
		}
		return context.Cause(ctx) // a member that cannot be asked does not lead
	})
	if err != nil {
		return -1, err
	}
	if leader < 0 {
		return -1, ErrNoLeader
	}
	return leader, nil
}

// MemberOf returns the member to which the session is connected. Members that
// are paused or not running are not asked. The error is ErrNotConnected if
// there is none.
func (e *Ensemble) MemberOf(ctx context.Context, session int64) (int, error) {
	member := -1
	err := e.eachAnswering(func(i int) error {
		m := e.members[i]
		answer, err := e.ask(ctx, i, m.addr, e.tls, "cons") // each port knows its own connections
		if err == nil && slices.Contains(parseCons(answer), session) {
			member = i
		}
		return err
	})
	if err != nil {
		return -1, err
	}
	if member < 0 {
		return -1, ErrNotConnected
	}
	return member, nil
}

// parseCons returns the sessions among the connections of a member, from lines
// such as " /127.0.0.1:52796[1](queued=0,recved=1,sent=1,sid=0x1000,...)".
func parseCons(answer string) []int64 {
	var sessions []int64
	for line := range strings.Lines(answer) {
		_, rest, ok := strings.Cut(line, "sid=")
		if !ok {
			continue
		}
		id, _, _ := strings.Cut(rest, ",")
		if session, err := parseSession(id); err == nil {
			sessions = append(sessions, session)
		}
	}
	return sessions
}

// WatchCount returns how many watches of any kind stand on all members that
// run and are not paused.
func (e *Ensemble) WatchCount(ctx context.Context) (int, error) {
	const name = "zk_watch_count"
	total := 0
	err := e.eachAnswering(func(i int) error {
		answer, err := e.FourLetter(ctx, i, "mntr")
		if err != nil {
			return err
		}
		n, err := parseMntr(answer, name)
		if err != nil {
			return fmt.Errorf("mntr of member %d: %w", i, err)
		}
		total += n
		return nil
	})
	return total, err
}

// parseMntr finds a number in lines such as "zk_watch_count\t0".
func parseMntr(answer, name string) (int, error) {
	for line := range strings.Lines(answer) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "\t"); key == name {
			return strconv.Atoi(value)
		}
	}
	return 0, fmt.Errorf("no %s in %q", name, answer)
}

// Watches returns the sessions that watch the data or existence of each path. A
// watch stands on the member that its session is connected to, so it asks all
// members that run and are not paused. ZooKeeper has no word that lists watches on
// children; WatchCount counts them as well.
//
// Source: DataTree.dumpWatches, DataTree.getWatchCount.
func (e *Ensemble) Watches(ctx context.Context) (map[string][]int64, error) {
	all := make(map[string][]int64)
	err := e.eachAnswering(func(i int) error {
		answer, err := e.FourLetter(ctx, i, "wchp")
		if err != nil {
			return err
		}
		watches, err := parseTree(answer)
		if err != nil {
			return fmt.Errorf("wchp of member %d: %w", i, err)
		}
		for _, w := range watches {
			for _, id := range w.children {
				session, err := parseSession(id)
				if err != nil {
					return fmt.Errorf("wchp of member %d: %w", i, err)
				}
				all[w.name] = append(all[w.name], session)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Ephemerals returns the ephemeral nodes of each session that has any, as the
// leader knows them.
func (e *Ensemble) Ephemerals(ctx context.Context) (map[int64][]string, error) {
	d, err := e.dump(ctx)
	return d.ephemerals, err
}

// Sessions returns the sessions that the leader knows and has not expired.
func (e *Ensemble) Sessions(ctx context.Context) ([]int64, error) {
	d, err := e.dump(ctx)
	return d.sessions, err
}

func (e *Ensemble) dump(ctx context.Context) (dump, error) {
	leader, err := e.Leader(ctx)
	if err != nil {
		return dump{}, err
	}
	answer, err := e.FourLetter(ctx, leader, "dump")
	if err != nil {
		return dump{}, err
	}
	d, err := parseDump(answer)
	if err != nil {
		return dump{}, fmt.Errorf("dump of member %d: %w", leader, err)
	}
	return d, nil
}

// dump is a leader's answer to that word.
type dump struct {
	sessions   []int64
	ephemerals map[int64][]string
}

// parseDump reads
//
//	Session Sets (2)/(1):
//	1 expire at ...:
//		0x10000e7ca1e0000
//	...
//	Sessions with Ephemerals (1):
//	0x10000e7ca1e0000:
//		/a
//	Connections dump:
//	...
func parseDump(answer string) (dump, error) {
	const middle, end = "ephemeral nodes dump:", "Connections dump:"
	before, rest, ok := strings.Cut(answer, middle)
	if !ok {
		return dump{}, fmt.Errorf("no %q in %q", middle, answer)
	}
	after, _, _ := strings.Cut(rest, end)
	d := dump{ephemerals: make(map[int64][]string)}
	sets, err := parseTree(before)
	if err != nil {
		return dump{}, err
	}
	for _, set := range sets {
		for _, id := range set.children {
			session, err := parseSession(id)
			if err != nil {
				return dump{}, err
			}
			d.sessions = append(d.sessions, session)
		}
	}
	owners, err := parseTree(after)
	if err != nil {
		return dump{}, err
	}
	for _, owner := range owners {
		if len(owner.children) == 0 {
			continue // a heading
		}
		session, err := parseSession(strings.TrimSuffix(owner.name, ":"))
		if err != nil {
			return dump{}, err
		}
		d.ephemerals[session] = owner.children
	}
	slices.Sort(d.sessions)
	return d, nil
}

// branch is a line and the ones below it that begin with a tab.
type branch struct {
	name     string
	children []string
}

func parseTree(text string) ([]branch, error) {
	var tree []branch
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		child, isChild := strings.CutPrefix(line, "\t")
		switch {
		case line == "":
		case !isChild:
			tree = append(tree, branch{name: line})
		case len(tree) == 0:
			return nil, fmt.Errorf("unexpected line %q", line)
		default:
			last := &tree[len(tree)-1]
			last.children = append(last.children, child)
		}
	}
	return tree, lines.Err()
}

func parseSession(text string) (int64, error) {
	id, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("session id %q: %w", text, err)
	}
	return int64(id), nil
}

// eachAnswering calls fn for the members that run and are not paused, until it
// fails.
func (e *Ensemble) eachAnswering(fn func(i int) error) error {
	if e.life.Err() != nil {
		return ErrClosed
	}
	for i, m := range e.members {
		if !m.answers() {
			continue
		}
		if err := fn(i); err != nil {
			return err
		}
	}
	return nil
}

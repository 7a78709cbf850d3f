package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
)

// health is what doctor finds out.
type health struct {
	Servers     []server      `json:"servers"`
	Session     *granted      `json:"session,omitempty"`
	Clock       *serversClock `json:"clock,omitempty"`
	Rights      *rights       `json:"rights,omitempty"`
	Recommended *advice       `json:"recommended,omitempty"`
	Problems    []problem     `json:"problems"`
}

// server is one address.
type server struct {
	Address  string  `json:"address"`
	Reached  bool    `json:"reached"` // by TCP, and TLS if that is spoken
	Serves   bool    `json:"serves"`  // it has opened a session
	Mode     string  `json:"mode,omitempty"`
	Version  string  `json:"version,omitempty"`
	Withheld bool    `json:"srvr_refused,omitempty"` // it does not tell mode and version
	Connect  seconds `json:"connect_seconds,omitempty"`
	Read     seconds `json:"read_seconds,omitempty"`  // the median of several
	Write    seconds `json:"write_seconds,omitempty"` // the same; through the ensemble's leader and a majority
	Slowest  seconds `json:"slowest_seconds,omitempty"`
	Error    string  `json:"error,omitempty"`
}

// seconds is a time span.
type seconds time.Duration

// MarshalJSON implements json.Marshaler.
func (s seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(s).Seconds())
}

// String rounds it to what matters.
func (s seconds) String() string {
	d := time.Duration(s)
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// granted is the session timeout that the servers grant.
type granted struct {
	Asked   seconds `json:"asked_seconds"`
	Granted seconds `json:"granted_seconds"`
	Least   seconds `json:"least_seconds,omitempty"`
	Most    seconds `json:"most_seconds,omitempty"`
}

// serversClock is by how much the clock of the ensemble's leader is ahead of ours.
type serversClock struct {
	Ahead     seconds `json:"ahead_seconds"`
	Precision seconds `json:"precision_seconds"`
}

// rights are what we may do at a path, or at the nearest one above it that is there.
type rights struct {
	Path   string `json:"path"`
	At     string `json:"at"`
	Read   bool   `json:"read"`
	Create bool   `json:"create"`
	Delete bool   `json:"delete"`
}

// advice is which session timeout a lock should have.
type advice struct {
	SessionTimeout seconds `json:"session_timeout_seconds"`
	Slowest        seconds `json:"slowest_round_trip_seconds"`
	Rule           string  `json:"rule"`
}

// problem is what is wrong.
type problem struct {
	Text string `json:"text"`
	code int
}

// doctor looks whether locks can be had.
func doctor(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	if err != nil {
		return err
	}
	cfg, err := inv.config()
	if err != nil {
		return err
	}
	// The namespace may still have to be made.
	path, cfg.Namespace = framework.MakePath("/"+cfg.Namespace, strings.TrimPrefix(path, "/")), ""
	cfg.CloseTimeout = time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, inv.timeout, errTimeout)
	defer cancel()
	h := &health{Servers: askServers(ctx, cfg), Problems: []problem{}}
	client, err := framework.Connect(ctx, cfg)
	if errors.As(err, new(*framework.ConfigError)) {
		return err
	}
	if err != nil {
		h.complain(exitCode(err), "no session could be had: %v", err)
	} else {
		h.session(ctx, cfg, client)
		h.examine(ctx, client, path)
		_ = client.Close()
	}
	h.judge()
	if ctx.Err() != nil && h.Session != nil {
		h.complain(exitUnreachable, "it took longer than --timeout, so that some things were not looked at")
	}
	if inv.json {
		err = writeJSON(inv.sys.out, h)
	} else {
		err = inv.print(h.text())
	}
	if err != nil || len(h.Problems) == 0 {
		return err
	}
	return &codeError{h.code(), fmt.Sprintf("problems: %d", len(h.Problems))}
}

func (h *health) complain(code int, format string, args ...any) {
	h.Problems = append(h.Problems, problem{fmt.Sprintf(format, args...), code})
}

// code is that of the gravest problem.
func (h *health) code() int {
	for _, code := range []int{exitUnreachable, exitNotFound, exitRefused} {
		if slices.ContainsFunc(h.Problems, func(p problem) bool { return p.code == code }) {
			return code
		}
	}
	return exitFailed
}

// askServers asks each address by itself.
func askServers(ctx context.Context, cfg framework.Config) []server {
	list, chroot, _ := strings.Cut(cfg.ConnectString, "/")
	addresses := strings.Split(list, ",")
	all := make([]server, len(addresses))
	var wg sync.WaitGroup
	for i, address := range addresses {
		wg.Go(func() {
			one := cfg
			all[i].Address = withPort(strings.TrimSpace(address))
			one.ConnectString = strings.TrimSuffix(all[i].Address+"/"+chroot, "/")
			all[i].ask(ctx, one)
		})
	}
	wg.Wait()
	return all
}

func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), "2181")
}

// mostForOne is how long one address may take.
const mostForOne = 5 * time.Second

// ask asks one server.
func (s *server) ask(ctx context.Context, cfg framework.Config) {
	ctx, cancel := context.WithTimeout(ctx, mostForOne)
	defer cancel()
	if err := s.srvr(ctx, cfg.TLS); err != nil {
		s.Error = err.Error()
		return
	}
	began := time.Now()
	client, err := framework.Connect(ctx, cfg)
	if err != nil {
		s.Error = err.Error()
		return
	}
	defer func() { _ = client.Close() }()
	s.Serves, s.Connect = true, seconds(time.Since(began))
	var slow [2]seconds
	for i, try := range []struct {
		median *seconds
		do     func() error
	}{
		{&s.Read, func() error { _, _, err := client.Exists(ctx, "/"); return err }},
		{&s.Write, func() error { return changeNothing(ctx, client) }},
	} {
		if *try.median, slow[i], err = measure(try.do); err != nil {
			s.Error = err.Error()
		}
	}
	s.Slowest = max(slow[0], slow[1])
}

// changeNothing is a write that changes nothing: it goes through the leader and a majority.
func changeNothing(ctx context.Context, client *framework.Client) error {
	tx := client.Transaction()
	tx.Check("/", framework.AnyVersion)
	_, err := tx.Commit(ctx)
	return err
}

// measure does something several times, and returns what it took in the middle, and at most.
// A refusal takes as long as anything else.
func measure(do func() error) (median, slowest seconds, err error) {
	const often = 7
	var took []seconds
	for range 1 + often {
		began := time.Now()
		err := do()
		if errors.Is(err, framework.ErrNotConnected) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, framework.ErrOutcomeUnknown) {
			return 0, 0, err
		}
		took = append(took, seconds(time.Since(began)))
	}
	took = took[1:] // the first has to wait for what a new session does besides
	slices.Sort(took)
	return took[often/2], took[often-1], nil
}

// srvr asks for mode and version by the command of that name, which servers may refuse.
func (s *server) srvr(ctx context.Context, secure *tls.Config) error {
	dial := new(net.Dialer).DialContext
	if secure != nil {
		dial = (&tls.Dialer{Config: secure}).DialContext
	}
	conn, err := dial(ctx, "tcp", s.Address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	s.Reached = true
	if limit, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(limit)
	}
	var answer []byte
	if _, err = io.WriteString(conn, "srvr"); err == nil {
		answer, _ = io.ReadAll(io.LimitReader(conn, 1<<16)) // some end the connection without a farewell
	}
	for line := range strings.Lines(string(answer)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Mode":
			s.Mode = value
		case "Zookeeper version":
			s.Version, _, _ = strings.Cut(value, "-")
			s.Version, _, _ = strings.Cut(s.Version, ",")
		}
	}
	s.Withheld = s.Mode == ""
	return nil
}

// session finds out which session timeouts the servers grant.
func (h *health) session(ctx context.Context, cfg framework.Config, client *framework.Client) {
	asked := cfg.SessionTimeout
	if asked == 0 {
		asked = defaultSessionTimeout
	}
	h.Session = &granted{Asked: seconds(asked), Granted: seconds(client.SessionTimeout())}
	for _, bound := range []struct {
		to  *seconds
		ask time.Duration
	}{{&h.Session.Least, time.Second}, {&h.Session.Most, time.Hour}} {
		other := cfg
		other.SessionTimeout, other.ConnectTimeout = bound.ask, min(bound.ask, mostForOne)
		if c, err := framework.Connect(ctx, other); err == nil {
			*bound.to = seconds(c.SessionTimeout())
			_ = c.Close()
		}
	}
}

const defaultSessionTimeout = 15 * time.Second

// examine looks at rights and at the servers' clock.
func (h *health) examine(ctx context.Context, client *framework.Client, path string) {
	r := &rights{Path: path, At: path}
	names, _, err := client.Children(ctx, r.At)
	for errors.Is(err, framework.ErrNoNode) && r.At != "/" {
		r.At, _ = framework.PathAndNode(r.At)
		names, _, err = client.Children(ctx, r.At)
	}
	if errors.Is(err, framework.ErrNoNode) {
		h.complain(exitNotFound, "the chroot is not there, and is not made by a client: %v", err)
		return
	}
	if err != nil && !errors.Is(err, framework.ErrNoAuth) {
		h.complain(exitCode(err), "the rights at %s were not found out: %v", path, err)
		return
	}
	r.Read = err == nil
	name := "paddock-doctor-" + rand.Text()
	r.Create, r.Delete, err = mayWrite(ctx, client, framework.MakePath(r.At, name))
	if err != nil {
		h.complain(exitCode(err), "the rights at %s were not found out: %v", r.At, err)
		return
	}
	h.Rights = r
	if is, err := lockview.KindOf(names); r.Create && r.Delete && is == lockview.None && err == nil { // Curator minds other nodes in its queues
		h.Clock, _ = clockOf(ctx, client, framework.MakePath(r.At, name))
	}
}

// mayWrite is whether a node may be made and deleted. Nothing is: the transaction ends with
// a check that is never true.
func mayWrite(ctx context.Context, client *framework.Client, path string) (create, remove bool, err error) {
	tx := client.Transaction()
	tx.Create(path, []byte{}, framework.Ephemeral)
	tx.Delete(path, framework.AnyVersion)
	tx.Check(path, framework.AnyVersion)
	_, err = tx.Commit(ctx)
	refused := (*framework.TransactionError)(nil)
	if !errors.As(err, &refused) {
		return false, false, err
	}
	switch {
	case errors.Is(err, framework.ErrNoAuth):
		return refused.Index > 0, false, nil
	case refused.Index == 2:
		return true, true, nil
	}
	return false, false, err
}

// clockOf asks for the clock of the ensemble's leader, by a node that is deleted at once.
func clockOf(ctx context.Context, client *framework.Client, path string) (*serversClock, error) {
	began := time.Now()
	if _, err := client.Create(ctx, path, []byte{}, framework.Ephemeral); err != nil {
		return nil, err
	}
	took := time.Since(began)
	there, stat, err := client.Exists(ctx, path)
	if e := client.Delete(ctx, path, framework.AnyVersion, framework.Idempotent()); err == nil {
		err = e
	}
	if err != nil || !there {
		return nil, err
	}
	middle := began.Add(took / 2)
	return &serversClock{Ahead: seconds(time.UnixMilli(stat.Ctime).Sub(middle)), Precision: seconds(took/2 + time.Millisecond)}, nil
}

// How a session timeout is chosen: docs/lock-cost.md has the figures.
const (
	roundTripsOfT = 20
	leastAdvised  = 2 * time.Second
	mostSkew      = time.Minute
	ruleOfT       = "20 of the slowest round trips, at least 2s, and three times the longest pause of servers, network or processes, which shows only in time"
)

// judge says what is wrong, and what to do.
func (h *health) judge() {
	var slowest seconds
	leaders := 0
	for _, s := range h.Servers {
		switch {
		case !s.Reached:
			h.complain(exitFailed, "%s cannot be reached: %s", s.Address, s.Error)
		case !s.Serves:
			h.complain(exitFailed, "%s opens no session: %s", s.Address, s.Error)
		case s.Error != "":
			h.complain(exitFailed, "%s does not answer all requests: %s", s.Address, s.Error)
		}
		if s.Mode == "leader" || s.Mode == "standalone" {
			leaders++
		}
		slowest = max(slowest, s.Slowest)
	}
	if leaders > 1 {
		h.complain(exitFailed, "%d of the servers lead: they are not one ensemble", leaders)
	}
	if h.Session == nil || slowest == 0 {
		return
	}
	whole := math.Ceil((roundTripsOfT * time.Duration(slowest)).Seconds())
	h.Recommended = &advice{SessionTimeout: max(seconds(whole)*seconds(time.Second), seconds(leastAdvised)), Slowest: slowest, Rule: ruleOfT}
	if h.Session.Granted < h.Recommended.SessionTimeout {
		h.complain(exitFailed, "the session timeout of %v is too short for round trips of %v", h.Session.Granted, slowest)
	}
	if r := h.Rights; r != nil && (!r.Read || !r.Create || !r.Delete) {
		h.complain(exitRefused, "a lock at %s needs the rights to read, create and delete at %s", r.Path, r.At)
	}
	if c := h.Clock; c != nil && time.Duration(c.Ahead).Abs() > mostSkew {
		h.complain(exitFailed, "the clocks differ by %v. No lock depends on that, but logs are hard to compare", c.Ahead)
	}
}

// text is what people read.
func (h *health) text() string {
	var b strings.Builder
	b.WriteString("servers:\n")
	for _, s := range h.Servers {
		fmt.Fprintf(&b, "  %s  ", lockview.Printable(s.Address))
		switch {
		case !s.Reached:
			b.WriteString("not reached\n")
			continue
		case s.Withheld:
			b.WriteString("does not tell mode and version: srvr is not in its 4lw.commands.whitelist")
		default:
			b.WriteString(lockview.Printable(s.Mode + ", version " + s.Version))
		}
		if !s.Serves {
			b.WriteString("; opens no session\n")
			continue
		}
		fmt.Fprintf(&b, "; connect %v, read %v, write %v, slowest %v\n", s.Connect, s.Read, s.Write, s.Slowest)
	}
	if s := h.Session; s != nil {
		fmt.Fprintf(&b, "session timeout: %v granted, %v asked", s.Granted, s.Asked)
		if s.Least > 0 && s.Most > 0 {
			fmt.Fprintf(&b, "; the servers grant %v to %v", s.Least, s.Most)
		}
		b.WriteString("\n")
	}
	if r := h.Recommended; r != nil {
		fmt.Fprintf(&b, "recommended: %v or more, by the slowest round trip of %v\n  rule: %s\n", r.SessionTimeout, r.Slowest, r.Rule)
	}
	if r := h.Rights; r != nil {
		says := map[bool]string{true: "yes", false: "no"}
		fmt.Fprintf(&b, "rights at %s: read %s, create %s, delete %s", lockview.Printable(r.Path), says[r.Read], says[r.Create], says[r.Delete])
		if r.At != r.Path {
			fmt.Fprintf(&b, " (it is not there: these are the rights at %s)", lockview.Printable(r.At))
		}
		b.WriteString("\n")
	}
	if c := h.Clock; c != nil {
		way := "ahead of"
		if c.Ahead < 0 {
			way = "behind"
		}
		fmt.Fprintf(&b, "clock of the ensemble's leader: %v %s ours, give or take %v\n", seconds(time.Duration(c.Ahead).Abs()), way, c.Precision)
	}
	for _, p := range h.Problems {
		b.WriteString("problem: " + lockview.Printable(p.Text) + "\n")
	}
	if len(h.Problems) == 0 {
		b.WriteString("no problems\n")
	}
	return b.String()
}

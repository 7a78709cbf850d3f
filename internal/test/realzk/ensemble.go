//go:build unix

package realzk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrClosed reports the use of a closed ensemble.
var ErrClosed = errors.New("ensemble is closed")

// ErrNotRunning reports that a member has no process: it was killed or
// stopped, or died, which the member's log explains.
var ErrNotRunning = errors.New("member is not running")

// Ensemble is a running standalone server or ensemble. Members are counted
// from 0; member i has the server id i+1. A number out of range panics.
//
// Methods may be called from any goroutine; those that change one member wait
// for each other. Make it with Start and end it with Close.
type Ensemble struct {
	opts    Options
	install Install
	dir     *dataDir

	life    context.Context // ends with Close; processes and forwarders end with it
	end     context.CancelCauseFunc
	spawner *spawner
	wg      sync.WaitGroup // forwarders

	// What follows is set by launch and not changed after Start.
	ports   *portBlock
	links   []*link
	members []*member
	// With Options.TLS.
	authority *Authority
	tls       *tls.Config

	mu  sync.Mutex // guards cut; taken before the gates'
	cut []bool     // by member: partitioned from all others

	closing  sync.Once
	closeErr error
}

// member is one server.
type member struct {
	id   int
	addr string // of clients
	asks string // where it answers four-letter words, without TLS
	dir  string
	log  string

	turn chan struct{} // holds one token, taken for as long as the member is being changed

	mu     sync.Mutex // guards the fields below
	proc   *process   // nil before the first start; a dead one stays
	paused bool
}

// Start starts servers and returns once they serve: for an ensemble, once it
// has a leader and all others follow. ctx bounds the call only; the servers
// run until Close. Without Java or ZooKeeper the error wraps ErrNotInstalled;
// if a server fails or is too slow it holds the end of its log.
func Start(ctx context.Context, opts Options) (*Ensemble, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	install, err := Find(opts.Suite)
	if err != nil {
		return nil, err
	}
	const tries = 5 // somebody else may take a port before the server does
	for try := 1; ; try++ {
		e, err := start(ctx, opts, install)
		if err == nil || try == tries || !errors.Is(err, errBindClash) {
			return e, err
		}
	}
}

var errBindClash = errors.New("port is taken")

func start(ctx context.Context, opts Options, install Install) (*Ensemble, error) {
	dir, err := newDataDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	e := &Ensemble{opts: opts, install: install, dir: dir, spawner: newSpawner(), cut: make([]bool, opts.Servers)}
	e.life, e.end = context.WithCancelCause(context.WithoutCancel(ctx))
	if err = e.launch(); err == nil {
		err = e.awaitServing(ctx, e.all(), e.bindClash)
	}
	if err == nil {
		return e, nil
	}
	var logs strings.Builder
	e.WriteLogs(&logs)
	return nil, errors.Join(fmt.Errorf("%w\n%s", err, logs.String()), e.Close())
}

// bindClash returns errBindClash if a member found one of its ports taken.
func (e *Ensemble) bindClash() error {
	for _, m := range e.members {
		if strings.Contains(m.logTail(100), "Address already in use") {
			return fmt.Errorf("member %d: %w", m.id, errBindClash)
		}
	}
	return nil
}

func (e *Ensemble) all() []int {
	var all []int
	for i := range e.members {
		all = append(all, i)
	}
	return all
}

// launch prepares and starts all members.
func (e *Ensemble) launch() error {
	if err := e.secure(); err != nil {
		return err
	}
	var err error
	if e.ports, err = e.opts.findPorts(e.opts.Servers); err != nil {
		return err
	}
	if e.opts.Partitions {
		if err := e.startLinks(); err != nil {
			return err
		}
	}
	for i, own := range e.ports.members {
		m := &member{
			id:   i,
			addr: hostPort(own.client),
			asks: hostPort(own.client),
			dir:  filepath.Join(e.dir.path, strconv.Itoa(i+1)),
			turn: make(chan struct{}, 1),
		}
		if e.opts.hasSecurePort() {
			m.addr = hostPort(own.secure)
		}
		m.log = filepath.Join(m.dir, "log")
		m.turn <- struct{}{}
		e.members = append(e.members, m)
		if err := e.writeFiles(m); err != nil {
			return err
		}
	}
	for _, m := range e.members {
		if err := e.spawn(m); err != nil {
			return err
		}
	}
	return nil
}

func (e *Ensemble) startLinks() error {
	between := make(map[[2]int]*link)
	for from := range e.opts.Servers {
		for to, ports := range e.ports.members {
			if from == to {
				continue
			}
			l, err := newLink(from, to, ports)
			if err != nil {
				for _, l := range e.links {
					err = errors.Join(err, l.close())
				}
				e.links = nil
				return err
			}
			between[[2]int{from, to}] = l
			e.links = append(e.links, l)
		}
	}
	for _, l := range e.links {
		l.run(e.life, &e.wg, between[[2]int{l.to, l.from}])
	}
	return nil
}

// jaasFile is in the directory of a member, in which its process runs.
const jaasFile = "jaas.conf"

// writeFiles writes what a server reads when it starts.
func (e *Ensemble) writeFiles(m *member) error {
	data := filepath.Join(m.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	config := e.opts.config(data, e.ports.members[m.id], e.peersOf(m.id))
	id := strconv.Itoa(m.id + 1)
	var jaas error
	if e.opts.JAAS != "" {
		jaas = os.WriteFile(filepath.Join(m.dir, jaasFile), []byte(strings.ReplaceAll(e.opts.JAAS, "{id}", id)), 0o600)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(data, "myid"), []byte(id), 0o600),
		jaas,
		os.WriteFile(m.config(), []byte(config), 0o600),
	)
}

// peersOf returns the addresses by which member i knows all members.
func (e *Ensemble) peersOf(i int) []endpoints {
	var all []endpoints
	for _, p := range e.ports.members {
		all = append(all, endpoints{hostPort(p.quorum), hostPort(p.election), p.client})
	}
	for _, l := range e.links {
		if l.from == i {
			all[l.to] = l.endpoints()
			all[l.to].client = e.ports.members[l.to].client
		}
	}
	return all
}

func (m *member) config() string {
	return filepath.Join(m.dir, "zoo.cfg")
}

// spawn starts a member's process. Its turn is the caller's, or nobody else
// knows the member yet.
func (e *Ensemble) spawn(m *member) error {
	args := e.opts.javaArgs(e.install.ClassPath, m.config())
	p, err := e.spawner.start(e.life, m.dir, m.log, e.install.Java, args)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.proc, m.paused = p, false
	m.mu.Unlock()
	return nil
}

// Close kills all servers, waits until they are gone, and removes their data.
// Closing again returns what the first Close did.
func (e *Ensemble) Close() error {
	e.closing.Do(func() {
		e.end(ErrClosed)
		for _, m := range e.members {
			<-m.turn // whoever has it gives up, as the ensemble's life is over
		}
		e.spawner.close()
		e.wg.Wait()
		if e.ports != nil {
			e.closeErr = e.ports.close()
		}
		e.closeErr = errors.Join(e.closeErr, e.dir.remove())
	})
	return e.closeErr
}

// Size returns the number of members.
func (e *Ensemble) Size() int { return len(e.members) }

// Addr returns the host:port at which member i serves clients. It stays the
// same when the member is restarted.
func (e *Ensemble) Addr(i int) string { return e.members[i].addr }

// PlainAddr returns the host:port at which member i answers four-letter words, and clients
// without TLS. It is Addr without Options.TLS.
func (e *Ensemble) PlainAddr(i int) string { return e.members[i].asks }

// Addrs returns the addresses of all members, by member.
func (e *Ensemble) Addrs() []string {
	var all []string
	for _, m := range e.members {
		all = append(all, m.addr)
	}
	return all
}

// ConnectString returns all addresses as clients take them, joined by commas.
func (e *Ensemble) ConnectString() string { return strings.Join(e.Addrs(), ",") }

// Dir returns the folder with the members' data and logs, which Close removes.
func (e *Ensemble) Dir() string { return e.dir.path }

// Kill ends member i with SIGKILL and returns when it is gone and its ports
// are free. The error wraps ErrNotRunning if it was not running.
func (e *Ensemble) Kill(i int) error {
	return e.change(e.life, i, func(ctx context.Context, _ *member, p *process) error {
		return p.kill(ctx)
	})
}

// Stop ends member i with SIGTERM, which is how an operator stops a server,
// and returns when it is gone, or ctx ends. ZooKeeper says no good-bye to
// clients or leader then either; its sessions live on.
func (e *Ensemble) Stop(ctx context.Context, i int) error {
	return e.change(ctx, i, func(ctx context.Context, m *member, p *process) error {
		if err := p.signal(syscall.SIGTERM); err != nil {
			return err
		}
		if err := m.resume(p); err != nil {
			return err
		}
		return p.wait(ctx)
	})
}

// Pause stops member i with SIGSTOP: it keeps its connections and answers
// nothing, until Resume. Pausing twice is fine.
func (e *Ensemble) Pause(i int) error {
	return e.change(e.life, i, func(_ context.Context, m *member, p *process) error {
		m.mu.Lock()
		m.paused = true // before it is so, for those who would wait for its answer
		m.mu.Unlock()
		return p.signal(syscall.SIGSTOP)
	})
}

// Resume lets a paused member go on. Resuming a member that runs is fine.
func (e *Ensemble) Resume(i int) error {
	return e.change(e.life, i, func(_ context.Context, m *member, p *process) error {
		return m.resume(p)
	})
}

func (m *member) resume(p *process) error {
	if err := p.signal(syscall.SIGCONT); err != nil {
		return err
	}
	m.mu.Lock()
	m.paused = false
	m.mu.Unlock()
	return nil
}

// Restart starts member i again on the same ports and data, after killing it
// if it runs. It returns once the process answers, which is before it serves:
// that may need other members, see AwaitServing.
func (e *Ensemble) Restart(ctx context.Context, i int) error {
	return e.exclusive(ctx, i, func(ctx context.Context, m *member) error {
		if m.failure() == nil {
			if err := m.process().kill(ctx); err != nil {
				return err
			}
		}
		if err := e.spawn(m); err != nil {
			return err
		}
		return poll(ctx, func() (bool, error) {
			if err := m.failure(); err != nil {
				return false, fmt.Errorf("%w\n%s", err, m.logTail(40))
			}
			answer, err := e.FourLetter(ctx, i, "ruok")
			return err == nil && answer == "imok", nil
		})
	})
}

// Partition cuts member i off from all other members, as a network would: no
// connection breaks, but nothing arrives. Its clients still reach it, and it
// goes on answering them until it misses its leader, which takes a follower
// SyncLimit ticks. It needs Options.Partitions.
func (e *Ensemble) Partition(i int) error { return e.setCut(i, true) }

// Heal ends what Partition began. What was sent meanwhile on connections that
// are still open arrives now.
func (e *Ensemble) Heal(i int) error { return e.setCut(i, false) }

func (e *Ensemble) setCut(i int, cut bool) error {
	if !e.opts.Partitions {
		return errors.New("realzk: the ensemble was started without Options.Partitions")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cut[i] = cut
	for _, l := range e.links {
		l.gate.set(!e.cut[l.from] && !e.cut[l.to])
	}
	return nil
}

// exclusive runs fn while nobody else changes member i. fn's ctx ends with the
// ensemble as well.
func (e *Ensemble) exclusive(ctx context.Context, i int, fn func(context.Context, *member) error) error {
	m := e.members[i]
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.life, func() { cancel(ErrClosed) })() //nolint:contextcheck // both the call's end and the ensemble's count
	select {
	case <-m.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { m.turn <- struct{}{} }()
	if e.life.Err() != nil {
		return ErrClosed
	}
	return fn(ctx, m)
}

// change is exclusive for a member that runs.
func (e *Ensemble) change(ctx context.Context, i int, fn func(context.Context, *member, *process) error) error {
	return e.exclusive(ctx, i, func(ctx context.Context, m *member) error {
		if err := m.failure(); err != nil {
			return err
		}
		return fn(ctx, m, m.process())
	})
}

func (m *member) process() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc
}

// answers tells whether a question to the member can be expected to be
// answered: it has a process that is not paused.
func (m *member) answers() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc != nil && m.proc.alive() && !m.paused
}

// failure returns nil while the member has a process, and else how it ended.
func (m *member) failure() error {
	p := m.process()
	switch {
	case p == nil:
		return fmt.Errorf("member %d: %w", m.id, ErrNotRunning)
	case p.alive():
		return nil
	case p.err != nil:
		return fmt.Errorf("member %d: %w: %w", m.id, ErrNotRunning, p.err)
	}
	return fmt.Errorf("member %d: %w: exit status 0", m.id, ErrNotRunning)
}

// AwaitServing returns once the given members serve clients, each as leader or
// as follower of one, or once all do if none is given. It fails at once if one
// of them has no process.
func (e *Ensemble) AwaitServing(ctx context.Context, members ...int) error {
	if len(members) == 0 {
		members = e.all()
	}
	return e.awaitServing(ctx, members, func() error { return nil })
}

// awaitServing also gives up when check, which is asked now and then and once
// a member has died, returns an error.
func (e *Ensemble) awaitServing(ctx context.Context, members []int, check func() error) error {
	const checkEvery = 25 // polls
	for _, i := range members {
		m, polls := e.members[i], 0
		err := poll(ctx, func() (bool, error) {
			died := m.failure()
			if polls++; died != nil || polls%checkEvery == 0 {
				if err := check(); err != nil {
					return false, err
				}
			}
			if died != nil {
				return false, died
			}
			s, err := e.serverState(ctx, i)
			return err == nil && s.serving(), nil
		})
		if err != nil {
			return fmt.Errorf("member %d does not serve: %w", i, err)
		}
	}
	return nil
}

// pollInterval is how often what cannot be waited for is looked at.
const pollInterval = 20 * time.Millisecond

// poll calls done until it returns true or an error, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// WriteLogs writes the end of each member's log to w.
func (e *Ensemble) WriteLogs(w io.Writer) {
	for _, m := range e.members {
		_, _ = fmt.Fprintf(w, "--- log of member %d (%s), its end:\n%s\n", m.id, m.addr, m.logTail(20))
	}
}

// logTail returns at most so many lines of a member's log, the last, without
// those about what tests ask it all the time.
func (m *member) logTail(most int) string {
	text, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
		return strings.Contains(line, "NIOServerCnxn - Processing ")
	})
	return strings.Join(lines[max(0, len(lines)-most):], "")
}

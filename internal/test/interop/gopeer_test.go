//go:build interop

package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// goPeer is Peer.java in Go.
type goPeer struct {
	ctx     context.Context
	referee string
	out     sync.Mutex // one line at a time

	mu      sync.Mutex // guards the fields below
	clients map[string]*framework.Client
	actors  map[string]*actor
	loads   map[string]*load
	revoked map[string]bool // paths whose mutexes are made revocable
	stands  map[string]*standing
}

// actor is an owner of locks. Its commands run one after another, each under the
// holds that it has.
type actor struct {
	turn  chan func()
	holds []owned
}

type owned struct {
	lock string
	hold *locks.Hold
}

func runGoPeer(witness string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := &goPeer{ctx: ctx, referee: witness, clients: make(map[string]*framework.Client), actors: make(map[string]*actor),
		loads: make(map[string]*load), revoked: make(map[string]bool), stands: make(map[string]*standing)}
	p.say("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		p.command(strings.Fields(in.Text()))
	}
}

func (p *goPeer) say(format string, args ...any) {
	p.out.Lock()
	defer p.out.Unlock()
	fmt.Printf(format+"\n", args...)
}

func (p *goPeer) command(c []string) {
	run := func() {
		text, err := p.step(c[1], c[2:])
		if err != nil {
			p.say("%s error %s", c[0], strings.ReplaceAll(err.Error(), "\n", " "))
			return
		}
		p.say("%s ok %s", c[0], text)
	}
	if c[1] == "take" || c[1] == "give" {
		p.mu.Lock()
		a := p.actors[c[2]]
		if a == nil {
			a = &actor{turn: make(chan func(), 100)}
			p.actors[c[2]] = a
			go func() {
				for step := range a.turn {
					step()
				}
			}()
		}
		p.mu.Unlock()
		a.turn <- run
		return
	}
	go run()
}

func (p *goPeer) step(verb string, c []string) (string, error) {
	switch verb {
	case "client":
		return p.connect(c)
	case "session":
		return fmt.Sprint(p.client(c[0]).SessionID()), nil
	case "close":
		return "", p.client(c[0]).Close()
	case "take":
		return p.take(c)
	case "give":
		return p.give(c)
	case "held":
		return p.held(c)
	case "participants":
		all, err := p.lock(c[0], c[1], c[2]).(interface {
			Participants(ctx context.Context) ([]locks.Participant, error)
		}).Participants(p.ctx)
		paths := make([]string, len(all))
		for i, participant := range all {
			paths[i] = participant.Path
		}
		return strings.Join(paths, ","), err
	case "revocable":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.revoked[c[0]+c[2]] = true
		return "", nil
	case "revoke":
		return "", locks.AttemptRevoke(p.ctx, p.client(c[0]), c[1])
	case "stand":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stands[c[0]] = begin(p.ctx, newCandidate(p.clients[c[1]], c[2], c[3], c[0]))
		return "", nil
	case "led":
		return "", p.standing(c[0]).led()
	case "ids":
		return p.standing(c[0]).ids(p.ctx)
	case "write":
		return "", p.standing(c[0]).write(p.ctx, c[2], c[0])
	case "leave":
		return "", p.standing(c[0]).leave()
	case "put":
		_, err := p.client(c[0]).Create(p.ctx, c[1], []byte(c[2]), framework.Persistent, framework.OrSet(), framework.Compressed())
		return "", err
	case "read":
		data, _, err := p.client(c[0]).Get(p.ctx, c[1], framework.Compressed())
		return string(data), err
	case "load":
		workers, err := strconv.Atoi(c[4])
		if err != nil {
			return "", err
		}
		l := p.newLoad(c[1], c[2], c[3], workers)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.loads[c[0]] = l
		return "", nil
	case "stop":
		p.mu.Lock()
		l := p.loads[c[0]]
		p.mu.Unlock()
		return l.stop()
	}
	return "", errors.New("no command " + verb)
}

func (p *goPeer) connect(c []string) (string, error) {
	ms, err := strconv.Atoi(c[2])
	if err != nil {
		return "", err
	}
	cfg := framework.Config{ConnectString: c[1], SessionTimeout: time.Duration(ms) * time.Millisecond}
	if c[3] != "-" {
		cfg.Namespace = c[3]
	}
	if c[4] != "-" {
		cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte(c[4])}}
		cfg.ACL = func(string) []framework.ACL { return zk.AuthACL(zk.PermAll) }
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	client, err := framework.Connect(ctx, cfg)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[c[0]] = client
	return fmt.Sprint(client.SessionID()), nil
}

// client is one that was made, or a zero one, which answers with an error.
func (p *goPeer) client(name string) *framework.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients[name]
}

func (p *goPeer) lock(client, recipe, path string) locks.Lock {
	c := p.client(client)
	p.mu.Lock()
	revocable := p.revoked[client+path]
	p.mu.Unlock()
	wait := locks.ReleaseWait(patient)
	switch recipe {
	case "read":
		return locks.NewInterProcessReadWriteLock(c, path, wait).ReadLock()
	case "write":
		return locks.NewInterProcessReadWriteLock(c, path, wait).WriteLock()
	case "semaphore-mutex":
		return locks.NewInterProcessSemaphoreMutex(c, path, wait)
	case "semaphore":
		return locks.NewInterProcessSemaphore(c, path, 3, wait)
	case "multi":
		var members []locks.Lock
		for _, part := range strings.Split(path, ",") {
			members = append(members, locks.NewInterProcessMutex(c, part, wait))
		}
		return locks.NewInterProcessMultiLock(members...)
	}
	if revocable {
		return locks.NewInterProcessMutex(c, path, wait, locks.Revocable())
	}
	return locks.NewInterProcessMutex(c, path, wait)
}

func (p *goPeer) actor(name string) *actor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.actors[name]
}

func (p *goPeer) take(c []string) (string, error) {
	ms, err := strconv.Atoi(c[4])
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(c[5])
	if err != nil {
		return "", err
	}
	a := p.actor(c[0])
	ctx := p.ctx
	if len(a.holds) > 0 {
		ctx = a.holds[len(a.holds)-1].hold.Context()
	}
	lock := p.lock(c[1], c[2], c[3])
	acquire, wait := lock.Acquire, time.Duration(ms)*time.Millisecond
	try := lock.TryAcquire
	if s, ok := lock.(*locks.InterProcessSemaphore); ok && n > 1 {
		acquire = func(ctx context.Context) (*locks.Hold, error) { return s.AcquireN(ctx, n) }
		try = func(ctx context.Context, wait time.Duration) (*locks.Hold, error) {
			return s.TryAcquireN(ctx, n, wait)
		}
	}
	var hold *locks.Hold
	if ms < 0 {
		hold, err = acquire(ctx)
	} else {
		hold, err = try(ctx, wait)
	}
	switch {
	case errors.Is(err, locks.ErrNotAcquired):
		return "false", nil
	case err != nil:
		return "", err
	}
	a.holds = append(a.holds, owned{lockName(c[1], c[2], c[3]), hold})
	if c[2] == "mutex" {
		go func() {
			select {
			case <-hold.Revoked():
				p.say("asked %s", c[3])
			case <-hold.Context().Done():
			}
		}()
	}
	return "true", nil
}

func lockName(client, recipe, path string) string { return client + " " + recipe + " " + path }

func (p *goPeer) give(c []string) (string, error) {
	a := p.actor(c[0])
	for i, o := range slices.Backward(a.holds) {
		if o.lock == lockName(c[1], c[2], c[3]) {
			a.holds = slices.Delete(a.holds, i, i+1)
			return "", o.hold.Release()
		}
	}
	return "", locks.ErrReleased
}

func (p *goPeer) held(c []string) (string, error) {
	for _, o := range slices.Backward(p.actor(c[0]).holds) {
		if o.lock == lockName(c[1], c[2], c[3]) {
			return fmt.Sprint(o.hold.Err() == nil), nil
		}
	}
	return "false", nil
}

// load is workers that take a lock again and again.
type load struct {
	wg     sync.WaitGroup
	rounds atomic.Int64
	over   chan struct{}

	mu     sync.Mutex // guards failed
	failed error
}

func (p *goPeer) newLoad(client, recipe, path string, workers int) *load {
	l := &load{over: make(chan struct{})}
	for i := range workers {
		l.wg.Go(func() {
			if err := l.run(p, client, recipe, path, i%2 == 1); err != nil {
				l.mu.Lock()
				l.failed = errors.Join(l.failed, err)
				l.mu.Unlock()
			}
		})
	}
	return l
}

func (l *load) run(p *goPeer, client, recipe, path string, odd bool) error {
	w, err := callWitness(p.ctx, p.referee)
	if err != nil {
		return err
	}
	defer w.close()
	for {
		select {
		case <-l.over:
			return nil
		default:
		}
		if err := p.round(client, recipe, path, odd, w); err != nil {
			return err
		}
		l.rounds.Add(1)
	}
}

func (l *load) stop() (string, error) {
	close(l.over)
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.rounds.Load()), l.failed
}

// visit tells the witness of a visit that takes as long as telling.
func visit(w *refereeConn, kind string, resources ...string) work {
	return func(ctx context.Context) error {
		for _, r := range resources {
			if err := w.tell("enter %s %s go", r, kind); err != nil {
				return err
			}
		}
		if kind == "3" { // so that several leases are out at a time
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		for _, r := range resources {
			if err := w.tell("leave %s %s go", r, kind); err != nil {
				return err
			}
		}
		return nil
	}
}

func (p *goPeer) round(client, recipe, path string, odd bool, w *refereeConn) error {
	c := p.client(client)
	paths := strings.Split(path, ",")
	alone := visit(w, "1", paths...)
	switch recipe {
	case "mutex":
		return mutex(p.ctx, c, path, alone)
	case "locker":
		return locker(p.ctx, c, path, alone)
	case "reentrant":
		return reentrant(p.ctx, c, path, alone)
	case "semaphore-mutex":
		return semaphoreMutex(p.ctx, c, path, alone)
	case "semaphore":
		if odd {
			return leases(p.ctx, c, path, visit(w, "3", path, path))
		}
		return semaphore(p.ctx, c, path, visit(w, "3", path))
	case "read-write":
		if odd {
			return write(p.ctx, c, path, alone)
		}
		return read(p.ctx, c, path, visit(w, "shared", path))
	case "multi":
		return multi(p.ctx, c, paths[0], paths[1], alone)
	case "latch", "selector":
		term, err := newCandidate(c, recipe, path, "go").Await(p.ctx)
		if err != nil {
			return err
		}
		return errors.Join(alone(term.Context()), term.Release())
	case "go-zookeeper":
		return older(p.ctx, c, path, alone)
	}
	return errors.New("no recipe " + recipe)
}

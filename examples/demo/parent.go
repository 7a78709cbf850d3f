package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

const (
	// glance is how often the view is drawn.
	glance = 500 * time.Millisecond
	// setUp bounds the time until all workers are connected.
	setUp = 20 * time.Second
	// slack is what is granted, beyond session timeouts, to what should take no
	// time at all.
	slack = 10 * time.Second
)

// demo is the parent of the workers. One goroutine, in serve, owns all of it;
// the others send it functions to call.
type demo struct {
	config
	where         string // which ZooKeeper, in words
	connectString string
	timeout       time.Duration // of sessions, as granted
	bank          *bank
	view          *view
	rng           *rand.Rand

	inbox chan func()
	life  context.Context // ends when nobody reads the inbox any more
	crew  []*process      // in the order of their numbers
	wg    sync.WaitGroup  // whoever sends to the inbox

	began    time.Time     // of the moving
	lasted   time.Duration // once over
	moved    int           // transfers
	expected []int         // what each account should hold, by the workers' word
	unsure   bool          // a transfer may have been made and not reported
	victim   *process
	passed   time.Duration // from the kill until the locks had passed on
	seen     snapshot      // the latest
	drawn    mark          // when and at what count the view was drawn last
	problems []string
}

// mark is a count at a time.
type mark struct {
	at    time.Time
	moved int
}

// run plays the demo and says whether all was well.
func run(ctx context.Context, cfg config) (good bool, err error) {
	p, err := playground.Open(ctx, "demo", cfg.servers, zktest.Tick(cfg.sessionTimeout/4))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, p.Close()) }() //nolint:contextcheck // also after ctx has ended
	client, err := framework.Connect(ctx, framework.Config{ConnectString: p.ConnectString, SessionTimeout: cfg.sessionTimeout})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	life, end := context.WithCancel(context.WithoutCancel(ctx))
	d := &demo{
		config:        cfg,
		where:         p.Where(),
		connectString: p.ConnectString,
		timeout:       client.SessionTimeout(),
		bank:          &bank{client: client, accounts: cfg.accounts},
		view:          newView(os.Stdout),
		rng:           rand.New(rand.NewPCG(cfg.seed, 0)),
		inbox:         make(chan func()),
		life:          life,
		expected:      slices.Repeat([]int{opening}, cfg.accounts),
	}
	defer d.wg.Wait()
	defer end() // kills who is left
	return d.play(ctx)
}

// play is the story.
func (d *demo) play(ctx context.Context) (good bool, err error) {
	if err := d.bank.open(ctx); err != nil {
		return false, err
	}
	d.introduce()
	for range d.workers {
		if err := d.hire(); err != nil {
			return false, err
		}
	}
	d.serve(ctx, setUp, func() bool { return !slices.ContainsFunc(d.crew, (*process).absent) })
	for _, p := range d.crew {
		if p.absent() && ctx.Err() == nil {
			d.fail("%s did not connect", p.name())
		}
	}
	d.began = time.Now()
	d.drawn = mark{d.began, d.moved}
	d.watch()
	end := d.began.Add(d.length)

	d.serve(ctx, d.length/4, never)
	if !d.unlocked && ctx.Err() == nil {
		d.tragedy(ctx)
	}
	d.serve(ctx, time.Until(end), never)

	if ctx.Err() != nil {
		d.event("interrupted")
	}
	ctx = context.WithoutCancel(ctx)
	d.disband(ctx)
	return d.verdict(ctx)
}

func never() bool { return false }

// introduce says what is going to happen.
func (d *demo) introduce() {
	d.view.line("%s move money between %d accounts of %d each,", count(d.workers, "worker process", "es"), d.accounts, opening)
	d.view.line("on %s.", d.where)
	if d.unlocked {
		d.view.line("There are NO locks (-unlocked): transfers overwrite each other, and the total does not stay %d.", opening*d.accounts)
	} else {
		d.view.line("Each transfer is made under the locks of both accounts, so the total stays %d.", opening*d.accounts)
		d.view.line("One process will be killed while it holds its locks. They pass on when its")
		d.view.line("session ends, that is after %v of silence.", d.timeout)
	}
	d.view.line("")
}

// hire starts a worker.
func (d *demo) hire() error {
	d.wg.Add(1)
	p, err := launch(d.life, assignment{
		Number: len(d.crew) + 1, ConnectString: d.connectString, SessionTimeout: d.sessionTimeout,
		Accounts: d.accounts, Unlocked: d.unlocked, Seed: d.seed,
	}, func(p *process, r report) {
		d.send(func() { d.note(p, r) })
	}, func(p *process, status error) {
		d.send(func() { d.bury(p, status) })
		d.wg.Done()
	})
	if err != nil {
		d.wg.Done()
		return fmt.Errorf("start a worker: %w", err)
	}
	d.crew = append(d.crew, p)
	return nil
}

// tragedy kills a worker that holds two locks, waits until these have passed
// on, and starts another worker.
func (d *demo) tragedy(ctx context.Context) {
	alive := slices.DeleteFunc(slices.Clone(d.crew), func(p *process) bool { return p.ended })
	if len(alive) == 0 {
		return
	}
	d.victim = alive[d.rng.IntN(len(alive))]
	d.victim.order(orderPause)
	d.serve(ctx, d.timeout+slack, func() bool { return d.victim.paused != nil || d.victim.ended })
	if d.victim.paused == nil {
		if ctx.Err() == nil {
			d.fail("%s did not come to hold its locks", d.victim.name())
		}
		return
	}
	killed := time.Now()
	if err := d.victim.kill(); err != nil {
		d.fail("kill %s: %v", d.victim.name(), err)
		return
	}
	d.event("KILLED %s (SIGKILL) while it held accounts %s", d.victim.name(), and(d.victim.paused))

	over := false
	limit := 3*d.timeout + slack
	d.wg.Go(func() { //nolint:contextcheck // for as long as we live
		successors, err := d.successors(limit)
		took := time.Since(killed)
		d.send(func() {
			over = true
			d.tellSuccessors(took, successors, err)
		})
	})
	d.serve(ctx, limit+slack, func() bool { return over })
	if ctx.Err() != nil || d.passed == 0 {
		return
	}
	if err := d.hire(); err != nil {
		d.fail("%v", err)
		return
	}
	d.event("%s starts in its place", d.crew[len(d.crew)-1].name())
}

// successors waits until the victim's locks have passed on, and returns to whom.
func (d *demo) successors(limit time.Duration) (names []string, err error) {
	ctx, cancel := context.WithTimeout(d.life, limit)
	defer cancel()
	names = make([]string, len(d.victim.paused))
	err = inParallel(len(names), func(i int) (err error) {
		names[i], err = retry.DoValue(ctx, retry.Forever(glance).WithClassifier(framework.Classify), func(ctx context.Context) (string, error) {
			return d.bank.passOn(ctx, d.victim.paused[i], d.victim.name())
		}, retry.Idempotent())
		return err
	})
	return names, err
}

// tellSuccessors notes that the victim's locks have passed on.
func (d *demo) tellSuccessors(took time.Duration, successors []string, err error) {
	if err != nil {
		d.fail("the locks of %s did not pass on: %v", d.victim.name(), err)
		return
	}
	d.passed = took
	texts := make([]string, len(successors))
	for i, name := range successors {
		if name == "" {
			name = "nobody yet"
		}
		texts[i] = fmt.Sprintf("account %d to %s", d.victim.paused[i], name)
	}
	d.event("the session of %s has ended: its locks passed on after %.1f s, %s", d.victim.name(), took.Seconds(), strings.Join(texts, ", "))
}

// disband lets every worker end what it is at.
func (d *demo) disband(ctx context.Context) {
	d.lasted = time.Since(d.began)
	for _, p := range d.crew {
		p.order(orderStop)
	}
	d.serve(ctx, 2*d.timeout+slack, func() bool { return !slices.ContainsFunc(d.crew, (*process).runs) })
	for _, p := range d.crew {
		if p.runs() {
			d.fail("%s did not end when it was told to", p.name())
		}
	}
}

// serve does what others have sent, until done, or until limit has passed or
// ctx has ended.
func (d *demo) serve(ctx context.Context, limit time.Duration, done func() bool) {
	over := time.NewTimer(limit)
	defer over.Stop()
	for !done() {
		select {
		case fn := <-d.inbox:
			fn()
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// send has fn called by the goroutine that owns the demo.
func (d *demo) send(fn func()) {
	select {
	case d.inbox <- fn:
	case <-d.life.Done():
	}
}

// watch looks at the bank and draws, every now and then.
func (d *demo) watch() {
	d.wg.Go(func() {
		for {
			seen := look(d.life, d.bank)
			d.send(func() { d.draw(seen) })
			select {
			case <-time.After(glance):
			case <-d.life.Done():
				return
			}
		}
	})
}

// note takes in a worker's report.
func (d *demo) note(p *process, r report) {
	switch {
	case r.State != "":
		if p.state != "" {
			d.event("%s is %s", p.name(), r.State)
		}
		p.state = r.State
	case r.Moved != nil:
		d.moved++
		p.moved++
		d.expected[r.Moved.From-1] -= r.Moved.Amount
		d.expected[r.Moved.To-1] += r.Moved.Amount
	case r.Doubtful != nil:
		d.unsure = true
		d.event("%s does not know whether its transfer was made: the reply was lost", p.name())
	case r.Paused != nil:
		p.paused = slices.Sorted(slices.Values(r.Paused))
	}
}

// bury takes in that a worker has ended.
func (d *demo) bury(p *process, status error) {
	p.ended, p.status = true, status
	switch {
	case p.killed:
	case slain(status):
		// Somebody tries it out. What it did last it may not have told.
		d.unsure = true
		d.event("%s was killed by somebody else (%v)", p.name(), status)
	case status != nil:
		d.fail("%s: %v", p.name(), status)
	}
}

func (d *demo) event(format string, args ...any) {
	d.view.event(d.elapsed(), fmt.Sprintf(format, args...))
}

// fail notes what must not be. All of it is told at the end.
func (d *demo) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.problems = append(d.problems, text)
	first, _, _ := strings.Cut(text, "\n")
	d.event("FAILED: %s", first)
}

func (d *demo) elapsed() time.Duration {
	if d.began.IsZero() {
		return 0
	}
	return time.Since(d.began)
}

func (p *process) name() string { return workerName(p.number) }

// absent is whether a worker has not connected yet and may still do so.
func (p *process) absent() bool { return p.state == "" && !p.ended }

func (p *process) runs() bool { return !p.ended }

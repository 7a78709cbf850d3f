// Command bench measures the locks next to go-zookeeper's own, and to the create and
// delete without which there is no lock. They take turns in one run. So ratios mean
// something on a machine that does other things as well. It does so on a real ZooKeeper,
// which it starts, and on the in-process server. It prints Go's benchmark format, a line
// for each candidate and round, for benchstat.
//
// `make bench` runs it. Allocations are for `go test -bench . ./internal/test/bench`,
// and so are comparisons with an older commit: `make bench OLD=commit`.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"time"

	zktest "github.com/paddock-zk/paddock/testing"
)

// plan is how much is measured.
type plan struct {
	rounds      int
	turns       int           // of each candidate in a round
	turn        time.Duration // the length of one
	contend     time.Duration // the length of a contended round
	ownSessions int           // rounds of clients with sessions of their own, which vary most
	clients     []int
	locks       int // whose memory is measured
	goroutines  int // goroutines that want one lock
	warm        time.Duration
	only        *regexp.Regexp // what is measured, by server and group; nil for all
}

// wants is whether a group is to be measured on a server.
func (p plan) wants(server, group string) bool {
	return p.only == nil || p.only.MatchString(server+": "+group)
}

var (
	full  = plan{rounds: 11, turns: 30, turn: 10 * time.Millisecond, contend: 500 * time.Millisecond, ownSessions: 41, clients: []int{2, 8, 32, 128}, locks: 2000, goroutines: 10_000, warm: 15 * time.Second}
	brief = plan{rounds: 6, turns: 20, turn: 10 * time.Millisecond, contend: 500 * time.Millisecond, ownSessions: 6, clients: []int{2, 8}, locks: 500, goroutines: 10_000, warm: 3 * time.Second}
)

func main() {
	quick := flag.Bool("quick", false, "measure less, in a few minutes")
	only := flag.String("only", "", "only groups whose title matches this `expression`, such as 'in process: uncontended'")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := full
	if *quick {
		p = brief
	}
	var err error
	if *only != "" {
		p.only, err = regexp.Compile(*only)
	}
	if err == nil {
		err = run(ctx, p, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan, w io.Writer) error {
	all, err := measure(ctx, p)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no group whose title matches %q", p.only)
	}
	return write(w, all)
}

func measure(ctx context.Context, p plan) (_ []result, err error) {
	onReal, closeReal, err := startReal(ctx)
	if err != nil {
		return nil, err
	}
	ends := closers{closeReal}
	defer func() { err = ends.close(err) }()
	srv, err := zktest.New() //nolint:contextcheck // it runs until closed
	if err != nil {
		return nil, err
	}
	ends = append(ends, srv.Close)
	var all []result
	for _, s := range []server{onReal, {name: "in process", addr: srv.ConnectString()}} {
		results, err := measureServer(ctx, p, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, results...)
	}
	if p.wants("no server", "re-entry") {
		entry, err := reentry(ctx, p, server{name: "in process", addr: srv.ConnectString()})
		if err != nil {
			return nil, err
		}
		all = append(all, entry)
	}
	if p.wants(onReal.name, "memory") {
		for _, measure := range []func(context.Context, plan, server) ([]result, error){memory, waiterMemory} {
			taken, err := measure(ctx, p, onReal)
			if err != nil {
				return nil, err
			}
			all = append(all, taken...)
		}
	}
	return all, nil
}

// step is what measures one group, or two of the same runs.
type step struct {
	group   string
	measure func() ([]result, error)
}

func measureServer(ctx context.Context, p plan, s server) (all []result, err error) {
	steps := []step{
		{"uncontended", func() ([]result, error) {
			return uncontended(ctx, p, s, "uncontended", []candidate{raw, zkLock, mutex, readSide, writeSide, semaphore, semaphoreMutex})
		}},
		{"MultiLock", func() ([]result, error) {
			return uncontended(ctx, p, s, "MultiLock", []candidate{raw, multiLock(1), multiLock(2), multiLock(3), multiLock(5), multiLock(10)})
		}},
	}
	steps = append(steps, manySteps(ctx, p, s)...)
	steps = append(steps, overDelays(ctx, p, s)...)
	steps = append(steps, contendedAll(ctx, p, s)...)
	steps = append(steps, step{"hand-offs in a local queue", func() ([]result, error) { return inLocalQueue(ctx, p, s) }})
	steps = slices.DeleteFunc(steps, func(st step) bool { return !p.wants(s.name, st.group) })
	if len(steps) == 0 {
		return nil, nil
	}
	if err := warm(ctx, p, s); err != nil {
		return nil, err
	}
	for _, st := range steps {
		results, err := st.measure()
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

// warm keeps the server busy until its compiler has seen what comes.
func warm(ctx context.Context, p plan, s server) error {
	p.rounds, p.turn = 1, p.warm/time.Duration(4*p.turns)
	_, err := uncontended(ctx, p, s, "warm", []candidate{raw, mutex})
	return err
}

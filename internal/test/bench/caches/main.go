//go:build unix

// Command caches compares our cache with Curator's CuratorCache and TreeCache and with
// kazoo's TreeCache, on a ZooKeeper that it starts. All take turns in one run. So ratios
// mean something on a machine that does other things as well. It prints rows of tables.
//
// `make compare-caches` runs it at the root of the repository.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/realzk"
)

// comparison is one run.
type comparison struct {
	server    *realzk.Ensemble
	processes []int // of the server
	writer    *framework.Client
	proxy     *proxy
	peers     []*peer

	nodes, rounds int
	shape         string
	delay         time.Duration
}

func main() {
	var c comparison
	asPeer := flag.Bool("peer", false, "be our cache, under the command of the comparison")
	do := flag.String("do", "load,reconnect,burst,beside,wrong", "what to compare; crowd too")
	who := flag.String("who", ".", "only caches whose name matches this `expression`, such as 'ours|CuratorCache'")
	flag.IntVar(&c.nodes, "nodes", 10_000, "the number of nodes; 0 is enough for what the caches get wrong")
	flag.StringVar(&c.shape, "shape", "flat", "flat: all below one node; deep: each has ten children")
	flag.DurationVar(&c.delay, "delay", 0, "how long each way takes")
	flag.IntVar(&c.rounds, "rounds", 3, "of which the median is shown")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *asPeer {
		err = beOurs(ctx, os.Stdin)
	} else {
		err = c.run(ctx, strings.Split(*do, ","), *who)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "caches:", err)
		os.Exit(1)
	}
}

func (c *comparison) run(ctx context.Context, do []string, who string) (err error) {
	only, err := regexp.Compile(who)
	if err != nil {
		return err
	}
	c.server, err = realzk.Start(ctx, realzk.Options{JVMArgs: []string{"-Xmx2g", "-XX:TieredStopAtLevel=4"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.server.Close()) }()
	c.processes = children()
	c.writer, err = framework.Connect(ctx, framework.Config{ConnectString: c.server.Addr(0), SessionTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.writer.Close()) }()
	if c.proxy, err = startProxy(ctx, c.server.Addr(0), c.delay); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.proxy.close()) }()
	dir, err := os.MkdirTemp("", "paddock-caches-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c.peers, err = startPeers(ctx, dir, only.MatchString)
	defer func() {
		for _, p := range c.peers {
			err = errors.Join(err, p.close())
		}
	}()
	if err != nil {
		return err
	}
	version, err := c.server.Version(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("ZooKeeper %s, %d nodes, %s, %v each way, medians of %d\n", version, c.nodes, c.shape, c.delay, c.rounds)
	if err := c.prepare(ctx); err != nil {
		return err
	}
	for _, what := range do {
		measure := map[string]func(context.Context) error{
			"load": c.load, "reconnect": c.reconnect, "burst": c.burst, "beside": c.beside, "wrong": c.wrong, "crowd": c.crowd,
		}[what]
		if measure == nil {
			return fmt.Errorf("%q is nothing to compare", what)
		}
		if err := measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

const (
	top  = "/load"
	size = 100 // bytes of data
)

// path is that of a node below top.
func (c *comparison) path(i int) string {
	if c.shape == "flat" {
		return fmt.Sprintf("%s/node-%08d", top, i)
	}
	if i < 10 {
		return fmt.Sprintf("%s/node-%d", top, i)
	}
	return fmt.Sprintf("%s/node-%d", c.path(i/10-1), i%10)
}

// prepare makes the nodes, and lets the compilers of Java see what comes.
func (c *comparison) prepare(ctx context.Context) error {
	for _, path := range []string{top, "/warm", "/lock", "/other"} {
		if err := c.writer.EnsurePath(ctx, path); err != nil {
			return err
		}
	}
	if c.nodes == 0 { // for what has nodes of its own
		return nil
	}
	data := make([]byte, size)
	err := c.transactions(ctx, c.nodes, func(tx *framework.Transaction, i int) { tx.Create(c.path(i), data, framework.Persistent) })
	if err != nil {
		return err
	}
	err = c.transactions(ctx, 1000, func(tx *framework.Transaction, i int) {
		tx.Create(fmt.Sprint("/warm/", i), data, framework.Persistent)
	})
	if err != nil {
		return err
	}
	for _, p := range c.peers {
		for range 10 {
			if _, err := c.start(p, "/warm"); err != nil {
				return err
			}
			if _, err := p.ask("close"); err != nil {
				return err
			}
		}
	}
	return nil
}

// transactions writes n times, 500 times in a transaction.
func (c *comparison) transactions(ctx context.Context, n int, add func(tx *framework.Transaction, i int)) error {
	for i := 0; i < n; {
		tx := c.writer.Transaction()
		for range min(500, n-i) {
			add(tx, i)
			i++
		}
		if _, err := tx.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start starts a peer's cache with a new client, and returns how long it took to load and
// how many nodes there were.
func (c *comparison) start(p *peer, path string) ([]int, error) {
	if _, err := p.ask("connect %s", c.proxy.l.Addr()); err != nil {
		return nil, err
	}
	return p.numbers("start %s %s", p.kind, path)
}

// result is what one round has measured. What is not measured is 0.
type result struct {
	took, since  time.Duration
	requests, up int
	down, nodes  int
	processor    time.Duration
	heap         int
}

// each lets all peers take turns, and prints the median of each.
func (c *comparison) each(title string, round func(p *peer, i int) (result, error)) error {
	all := make(map[*peer][]result)
	for i := range c.rounds {
		for _, p := range c.peers {
			r, err := round(p, i)
			if err != nil {
				return err
			}
			all[p] = append(all[p], r)
		}
	}
	fmt.Printf("\n%s\n| | ms | ratio | requests | KB up | KB down | server's processor ms | bytes of heap a node | nodes |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: |\n", title)
	var first time.Duration
	for _, p := range c.peers {
		m := func(of func(result) int) int {
			var values []int
			for _, r := range all[p] {
				values = append(values, of(r))
			}
			slices.Sort(values)
			return values[len(values)/2]
		}
		took := time.Duration(m(func(r result) int { return int(r.took) }))
		if first == 0 {
			first = took
		}
		ms := fmt.Sprintf("%.1f", took.Seconds()*1000)
		if since := m(func(r result) int { return int(r.since) }); since > 0 {
			ms += fmt.Sprintf(" (%.0f)", time.Duration(since).Seconds()*1000)
		}
		nodes := m(func(r result) int { return r.nodes })
		heap := 0
		if nodes > 0 {
			heap = all[p][0].heap / nodes // measured once
		}
		fmt.Printf("| %s | %s | %.1f | %d | %d | %d | %d | %d | %d |\n", p.name, ms, float64(took)/float64(first), m(func(r result) int { return r.requests }),
			m(func(r result) int { return r.up })/1000, m(func(r result) int { return r.down })/1000,
			m(func(r result) int { return int(r.processor) })/int(time.Millisecond), heap, nodes)
	}
	return nil
}

func (r *result) passed(t traffic) { r.requests, r.up, r.down = t.requests, t.up, t.down }

// load measures from the start of a cache until it says that it has loaded.
func (c *comparison) load(ctx context.Context) error {
	return c.each("load", func(p *peer, i int) (r result, err error) {
		c.proxy.traffic()
		if _, err := p.ask("connect %s", c.proxy.l.Addr()); err != nil {
			return r, err
		}
		before := []int{0}
		if i == 0 {
			if before, err = p.numbers("heap"); err != nil {
				return r, err
			}
		}
		began := processorTime(c.processes)
		started, err := p.numbers("start %s %s", p.kind, top)
		if err != nil {
			return r, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return r, err
		}
		r = result{took: time.Duration(started[0]) * time.Microsecond, nodes: started[1], processor: processorTime(c.processes) - began}
		r.passed(c.proxy.traffic())
		if i == 0 {
			after, err := p.numbers("heap")
			if err != nil {
				return r, err
			}
			r.heap = after[0] - before[0]
		}
		_, err = p.ask("close")
		return r, err
	})
}

// reconnect measures from the first to the last byte of a connection that resumes the
// session.
func (c *comparison) reconnect(ctx context.Context) error {
	for _, changed := range []int{0, c.nodes / 100} {
		err := c.each(fmt.Sprintf("reconnect, %d nodes have changed", changed), func(p *peer, i int) (r result, err error) {
			if _, err := c.start(p, top); err != nil {
				return r, err
			}
			if err := c.proxy.quiet(ctx, 300*time.Millisecond); err != nil {
				return r, err
			}
			if _, err := p.ask("forget"); err != nil {
				return r, err
			}
			c.proxy.cut()
			err = c.transactions(ctx, changed, func(tx *framework.Transaction, j int) {
				tx.Set(c.path(j*100), fmt.Appendf(nil, "%*d", size, i), framework.AnyVersion)
			})
			if err != nil {
				return r, err
			}
			if err := pause(ctx, 200*time.Millisecond); err != nil {
				return r, err
			}
			began := processorTime(c.processes)
			c.proxy.mend()
			if err := c.proxy.quiet(ctx, time.Second); err != nil {
				return r, err
			}
			t := c.proxy.traffic()
			r.took, r.processor = t.took(), processorTime(c.processes)-began
			r.passed(t)
			if _, err := p.ask("await %d", changed); err != nil {
				return r, err
			}
			_, err = p.ask("close")
			return r, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// burst measures from the last reply of 10,000 writes in transactions until all was told, and
// from the first write.
func (c *comparison) burst(ctx context.Context) error {
	n := min(10_000, c.nodes)
	return c.each(fmt.Sprintf("burst of %d changes in transactions: from the last write (from the first)", n), func(p *peer, i int) (r result, err error) {
		if _, err := c.start(p, top); err != nil {
			return r, err
		}
		if err := c.proxy.quiet(ctx, 300*time.Millisecond); err != nil {
			return r, err
		}
		if _, err := p.ask("forget"); err != nil {
			return r, err
		}
		c.proxy.traffic()
		began, first := processorTime(c.processes), time.Now()
		err = c.transactions(ctx, n, func(tx *framework.Transaction, j int) {
			tx.Set(c.path(j), fmt.Appendf(nil, "%*d", size, i), framework.AnyVersion)
		})
		if err != nil {
			return r, err
		}
		last := time.Now()
		if _, err := p.ask("await %d", n); err != nil {
			return r, err
		}
		r = result{took: time.Since(last), since: time.Since(first), processor: processorTime(c.processes) - began}
		r.passed(c.proxy.traffic())
		_, err = p.ask("close")
		return r, err
	})
}

// beside measures cycles of a lock of the same client while its cache loads, and writes of
// another client.
func (c *comparison) beside(ctx context.Context) error {
	fmt.Print("\nbeside a load: number of cycles of a lock of the same client, or of another client's writes, median, 99 % and longest, in microseconds\n")
	fmt.Print("| | lock alone | lock beside its load | others' writes alone | beside the load |\n| --- | --- | --- | --- | --- |\n")
	write := func(life context.Context) (took []time.Duration) {
		for life.Err() == nil {
			began := time.Now()
			if _, err := c.writer.Set(ctx, "/other", nil, framework.AnyVersion); err != nil {
				break
			}
			took = append(took, time.Since(began))
		}
		return took
	}
	for _, p := range c.peers {
		if !p.cycles {
			continue
		}
		var columns []string
		// Alone.
		if _, err := c.start(p, "/warm"); err != nil {
			return err
		}
		commands := func(all ...string) error {
			for _, command := range all {
				answer, err := p.ask("%s", command)
				if err != nil {
					return err
				}
				if command == "cycles" {
					columns = append(columns, answer)
				}
			}
			return nil
		}
		if err := commands("cycle"); err != nil {
			return err
		}
		if err := pause(ctx, 3*time.Second); err != nil { // the compilers see it
			return err
		}
		if err := commands("rest", "cycles", "cycle"); err != nil {
			return err
		}
		columns = nil
		alone, end := context.WithTimeout(ctx, 2*time.Second)
		writesAlone := percentiles(write(alone))
		end()
		if err := commands("rest", "cycles", "close"); err != nil {
			return err
		}
		// Beside the load.
		var took []time.Duration
		loads := time.Duration(0)
		for i := 0; i < c.rounds || loads < 3*time.Second; i++ {
			if _, err := p.ask("connect %s", c.proxy.l.Addr()); err != nil {
				return err
			}
			if _, err := p.ask("cycle"); err != nil {
				return err
			}
			loading, loaded := context.WithCancel(ctx)
			written := make(chan []time.Duration, 1)
			go func() { written <- write(loading) }()
			began := time.Now()
			_, err := p.ask("start %s %s", p.kind, top)
			loaded()
			loads += time.Since(began)
			took = append(took, <-written...)
			if err != nil {
				return err
			}
			if err := commands("rest", "close"); err != nil {
				return err
			}
		}
		if err := commands("cycles"); err != nil {
			return err
		}
		fmt.Printf("| %s | %s | %s | %s | %s |\n", p.name, columns[0], columns[1], writesAlone, percentiles(took))
	}
	return nil
}

// wrong shows what the caches make of some situations.
func (c *comparison) wrong(ctx context.Context) error {
	fmt.Print("\nwhat is in the cache, and what its listeners were told, after\n")
	for n, p := range c.peers {
		root := fmt.Sprint("/wrong", n)
		create := func(path, data string, opts ...framework.CreateOption) error {
			_, err := c.writer.Create(ctx, root+path, []byte(data), framework.Persistent, append(opts, framework.Parents())...)
			return err
		}
		outage := func(do func() error, path, has string) (string, error) {
			before, err := p.numbers("events")
			if err != nil {
				return "", err
			}
			c.proxy.cut()
			if err := errors.Join(do(), pause(ctx, 200*time.Millisecond)); err != nil {
				return "", err
			}
			c.proxy.mend()
			if err := c.proxy.quiet(ctx, time.Second); err != nil {
				return "", err
			}
			data, err := p.ask("get %s", root+path)
			if err != nil {
				return "", err
			}
			after, err := p.numbers("events")
			if err != nil {
				return "", err
			}
			var told []string // an error is of the node that may not be read
			for i, name := range []string{"created", "changed", "deleted", "replaced"} {
				if d := after[i] - before[i]; d > 0 {
					told = append(told, fmt.Sprintf("%d %s", d, name))
				}
			}
			verdict := "right"
			if data != has || told == nil {
				verdict = "WRONG"
			}
			return fmt.Sprintf("%s: has %s, told %s", verdict, data, cmp.Or(strings.Join(told, ", "), "nothing")), nil
		}
		secret := framework.ACLs(framework.DigestACL(framework.PermAll, framework.Digest("nobody", "here")))
		err := errors.Join(create("/again", "old"), create("/parent/c0", ""), create("/parent/c1", ""), create("/hidden", "", secret))
		if err != nil {
			return err
		}
		started, err := c.start(p, root)
		if err != nil {
			return err
		}
		// It says that it has loaded. Does it know that something is missing?
		hidden, err := p.ask("get %s", root+"/hidden")
		if err != nil {
			return err
		}
		verdict := "right"
		if hidden == "nothing" {
			verdict = "WRONG"
		}
		fmt.Printf("| %s | a node that may not be read | %s: loaded with %d nodes, has %s at its path |\n", p.name, verdict, started[1], hidden)
		told, err := outage(func() error {
			return errors.Join(c.writer.Delete(ctx, root+"/again", framework.AnyVersion), create("/again", "new"))
		}, "/again", "new")
		if err != nil {
			return err
		}
		fmt.Printf("| %s | a node was deleted and made again in an outage | %s |\n", p.name, told)
		told, err = outage(func() error {
			return errors.Join(c.writer.Delete(ctx, root+"/parent", framework.AnyVersion, framework.Recursive()), create("/parent/d0", "d"), create("/parent/d1", ""))
		}, "/parent/d0", "d")
		if err != nil {
			return err
		}
		fmt.Printf("| %s | a parent was, with as many other children | %s |\n", p.name, told)
		if _, err := p.ask("close"); err != nil {
			return err
		}
	}
	return c.wrongMany(ctx)
}

// wrongMany shows whether the caches load more nodes than Curator 5.4 can ask for at once.
func (c *comparison) wrongMany(ctx context.Context) error {
	const nodes = 70_000
	if err := c.writer.EnsurePath(ctx, "/many"); err != nil {
		return err
	}
	err := c.transactions(ctx, nodes, func(tx *framework.Transaction, i int) { tx.Create(fmt.Sprint("/many/", i), nil, framework.Persistent) })
	if err != nil {
		return err
	}
	for _, p := range c.peers {
		started, err := c.start(p, "/many")
		if err != nil {
			return err
		}
		verdict := "right"
		if started[1] != nodes+1 {
			verdict = "WRONG"
		}
		fmt.Printf("| %s | %d nodes lie below one | %s: loaded with %d nodes |\n", p.name, nodes, verdict, started[1])
		if started[1] != nodes+1 { // do the others come later?
			if err := pause(ctx, 10*time.Second); err != nil {
				return err
			}
			events, err := p.numbers("events")
			if err != nil {
				return err
			}
			fmt.Printf("| %s | the same 10 s later | %d nodes, %d errors for its handler |\n", p.name, events[0], events[4])
		}
		if _, err := p.ask("close"); err != nil {
			return err
		}
	}
	return nil
}

// children are the processes that this one has started.
func children() (all []int) {
	files, _ := filepath.Glob("/proc/self/task/*/children") // without Linux there are none, and no processor times
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// processorTime is what processes have used.
func processorTime(processes []int) (sum time.Duration) {
	const tick = 10 * time.Millisecond // of the kernel's interface
	for _, pid := range processes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		for _, field := range fields[11:13] { // user and system
			n, _ := strconv.Atoi(field)
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

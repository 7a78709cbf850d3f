//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/realzk"
	"github.com/paddock-zk/paddock/recipes/cache"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// peer is a process with a cache. A line on its input is a command, and a line on its
// output the answer:
//
//	connect ADDR     connects
//	start KIND PATH  starts a cache and waits until it has loaded: microseconds, nodes
//	crowd N ADDR KIND PATH  starts N clients with a cache each, and waits until all have loaded
//	forget           begins to count changed nodes anew
//	await N          waits until so many were told
//	events           the numbers of nodes created, changed, deleted, replaced, and of errors
//	get PATH         the data in the cache, or "nothing"
//	heap             bytes in use after a collection
//	cycle, rest      takes and releases a lock of the same client over and over, until rest
//	cycles           of these: number, median, 99 %, longest in microseconds. Forgets them
//	close            closes cache and client
type peer struct {
	name, kind string
	cycles     bool // knows locks
	in         io.WriteCloser
	out        *bufio.Reader
	cmd        *exec.Cmd
}

func (p *peer) ask(format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		return "", fmt.Errorf("%s: %w", p.name, err)
	}
	answer, err := p.out.ReadString('\n')
	answer = strings.TrimSpace(answer)
	if err == nil && strings.HasPrefix(answer, "failed") {
		err = errors.New(answer)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", p.name, fmt.Sprintf(format, args...), err)
	}
	return answer, nil
}

// numbers are those of an answer.
func (p *peer) numbers(format string, args ...any) ([]int, error) {
	answer, err := p.ask(format, args...)
	if err != nil {
		return nil, err
	}
	var all []int
	for word := range strings.FieldsSeq(answer) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, n)
	}
	return all, nil
}

func startPeer(ctx context.Context, name, kind string, program string, args ...string) (*peer, error) {
	p := &peer{name: name, kind: kind, cmd: exec.CommandContext(ctx, program, args...)}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// close ends the process, which goes when its input ends.
func (p *peer) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// startPeers starts those that are wanted: ours, and others that are installed.
func startPeers(ctx context.Context, dir string, wanted func(name string) bool) (all []*peer, err error) {
	add := func(p *peer, err error) error {
		if err == nil {
			all = append(all, p)
		}
		return err
	}
	if wanted("ours") {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		if err := add(startPeer(ctx, "ours", "cache", self, "-peer")); err != nil {
			return nil, err
		}
		all[len(all)-1].cycles = true
	}
	for _, suite := range []string{"", "trixie"} {
		install, err := realzk.Find(suite)
		if err != nil {
			fmt.Fprintln(os.Stderr, "without Curator of", suite, err)
			continue
		}
		path, err := install.With("slf4j-simple.jar", "curator-recipes.jar")
		if err != nil {
			return all, err
		}
		version := install.VersionOf("curator-recipes.jar")
		for _, kind := range []string{"CuratorCache", "TreeCache"} {
			name := kind + " " + version
			if !wanted(name) {
				continue
			}
			classes := filepath.Join(dir, version)
			javac := exec.CommandContext(ctx, "javac", "-nowarn", "-d", classes, "-cp", path, "internal/test/bench/caches/Caches.java")
			if said, err := javac.CombinedOutput(); err != nil {
				return all, fmt.Errorf("javac: %w\n%s", err, said)
			}
			err := add(startPeer(ctx, name, kind, install.Java, "-Xmx1g", "-XX:-UsePerfData", "-Djute.maxbuffer=67108864",
				"-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
				"-cp", classes+string(filepath.ListSeparator)+path, "Caches"))
			if err != nil {
				return all, err
			}
			all[len(all)-1].cycles = true
		}
	}
	if wanted("kazoo") {
		err = add(startPeer(ctx, "kazoo", "TreeCache", "/usr/bin/python3", "internal/test/bench/caches/caches.py"))
	}
	return all, err
}

// ours is our cache as a peer.
type ours struct {
	client *framework.Client
	cache  *cache.Cache[[]byte]
	crowd  []*ours
	ends   sync.WaitGroup

	mu                                  sync.Mutex // guards the fields below
	created, changed, deleted, replaced int
	resting                             bool
	took                                []time.Duration
	rested                              chan struct{}
}

func beOurs(ctx context.Context, in io.Reader) error {
	o := new(ours)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		answer, err := o.command(ctx, strings.Fields(lines.Text()))
		if err != nil {
			answer = "failed: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
	return lines.Err()
}

func (o *ours) command(ctx context.Context, c []string) (string, error) {
	switch c[0] {
	case "connect":
		var err error
		o.client, err = framework.Connect(ctx, framework.Config{ConnectString: c[1], SessionTimeout: 30 * time.Second})
		return "ok", err
	case "start":
		return o.start(ctx, c[2])
	case "crowd":
		n, err := strconv.Atoi(c[1])
		for ; err == nil && n > 0; n-- {
			one := new(ours)
			o.crowd = append(o.crowd, one)
			if _, err = one.command(ctx, []string{"connect", c[2]}); err == nil {
				_, err = one.start(ctx, c[4])
			}
		}
		return "ok", err
	case "forget":
		for _, one := range append(o.crowd, o) {
			one.mu.Lock()
			one.changed = 0
			one.mu.Unlock()
		}
	case "await":
		n, err := strconv.Atoi(c[1])
		for err == nil && o.have() < n {
			err = pause(ctx, 200*time.Microsecond)
		}
		return "ok", err
	case "events":
		o.mu.Lock()
		defer o.mu.Unlock()
		return fmt.Sprint(o.created, o.changed, o.deleted, o.replaced, o.cache.Status().Holes), nil
	case "get":
		e, ok := o.cache.Get(c[1])
		switch {
		case !ok:
			return "nothing", nil
		case e.Err != nil:
			return "hole: " + e.Err.Error(), nil
		}
		return string(e.Value), nil
	case "heap":
		var stats runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&stats)
		return strconv.FormatUint(stats.HeapAlloc, 10), nil
	case "cycle":
		o.cycle(ctx)
	case "rest":
		o.mu.Lock()
		o.resting = true
		o.mu.Unlock()
		<-o.rested
	case "cycles":
		answer := percentiles(o.took)
		o.took = nil
		return answer, nil
	case "close":
		if crowd := o.crowd; crowd != nil {
			var err error
			for o.crowd = nil; len(crowd) > 0; crowd = crowd[1:] {
				_, closed := crowd[0].command(ctx, c)
				err = errors.Join(err, closed)
			}
			return "ok", err
		}
		o.cache.Close()
		o.ends.Wait()
		return "ok", o.client.Close()
	}
	return "ok", nil
}

func (o *ours) have() (changed int) {
	for _, one := range append(o.crowd, o) {
		one.mu.Lock()
		changed += one.changed
		one.mu.Unlock()
	}
	return changed
}

func (o *ours) start(ctx context.Context, path string) (string, error) {
	o.created, o.changed, o.deleted, o.replaced = 0, 0, 0, 0
	began := time.Now()
	var err error
	if o.cache, err = cache.Start(o.client, path, cache.Bytes); err != nil {
		return "", err
	}
	snapshot, err := o.cache.Ready(ctx)
	took := time.Since(began)
	if err != nil {
		return "", err
	}
	o.ends.Go(func() {
		for step, err := range o.cache.Steps(ctx) {
			if err != nil {
				return // it was closed
			}
			o.mu.Lock()
			for _, change := range step.Changes {
				switch {
				case change.Replaced():
					o.replaced++
				case change.Old == nil:
					o.created++
				case change.New == nil:
					o.deleted++
				default:
					o.changed++
				}
			}
			o.mu.Unlock()
		}
	})
	return fmt.Sprint(took.Microseconds(), snapshot.Len()), nil
}

func (o *ours) cycle(ctx context.Context) {
	o.resting, o.rested = false, make(chan struct{})
	go func() {
		defer close(o.rested)
		for mutex := locks.NewInterProcessMutex(o.client, "/lock"); ; {
			o.mu.Lock()
			resting := o.resting
			o.mu.Unlock()
			if resting {
				return
			}
			began := time.Now()
			hold, err := mutex.Acquire(ctx)
			if err == nil {
				err = hold.Release()
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			o.took = append(o.took, time.Since(began))
		}
	}()
}

// percentiles are the number, the median, 99 % and the longest, in microseconds.
func percentiles(took []time.Duration) string {
	n := len(took)
	if n == 0 {
		return "0 0 0 0"
	}
	slices.Sort(took)
	return fmt.Sprint(n, took[n/2].Microseconds(), took[n*99/100].Microseconds(), took[n-1].Microseconds())
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

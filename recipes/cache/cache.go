// Package cache keeps a copy of a node, of its children or of a subtree in memory, and says
// how far it can be trusted.
//
// Each Snapshot equals the subtree as it was after one transaction, whose zxid it has. A
// transaction is never split. Steps lead from snapshot to snapshot. During an outage the last
// snapshot stays readable, and Status says that it is old.
//
// A cache needs ZooKeeper 3.6 or newer. It has one persistent watch on the servers, and reads
// many nodes in few requests.
package cache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
)

// Decoder makes a value of a node's data, which it may keep. It is called in the goroutine of
// the cache and must not block.
type Decoder[T any] func(path string, data []byte) (T, error)

// Bytes is the Decoder that returns the data.
func Bytes(_ string, data []byte) ([]byte, error) { return data, nil }

// ErrLimit reports a subtree that is larger than the cache may be. The last snapshot stays.
// The cache looks again after a minute.
var ErrLimit = errors.New("subtree is larger than the limits of the cache")

// errClosed is framework.ErrClosed of a cache that was closed before its client.
var errClosed error = closedError{}

type closedError struct{}

// Error implements error.
func (closedError) Error() string { return "cache is closed" }

// Unwrap gives what callers look for.
func (closedError) Unwrap() error { return framework.ErrClosed }

// Option changes a cache.
type Option interface{ apply(*options) }

type options struct {
	depth        int
	keep         func(path string) bool
	nodes, bytes int
	holes        time.Duration
	check        time.Duration // 0 for never
	ring         int
	buffer       int // of events that wait for the cache
}

// all is deeper than any path.
const all = framework.MaxPathLength

type option func(*options)

func (f option) apply(o *options) { f(o) }

// Depth keeps nodes down to n levels below the path: 0 for the node alone, 1 for its children
// too. Defaults to all.
func Depth(n int) Option { return option(func(o *options) { o.depth = n }) }

// Select leaves out nodes below the path for which keep is false, with everything below them.
// They are not read. For one path keep must always say the same. It is called in the goroutine
// of the cache and must not block. A nil keep keeps all.
func Select(keep func(path string) bool) Option {
	return option(func(o *options) { o.keep = keep })
}

// MaxNodes and MaxBytes bound the cache. A larger subtree is ErrLimit. MaxNodes defaults to
// 1,000,000.
func MaxNodes(n int) Option { return option(func(o *options) { o.nodes = n }) }

// MaxBytes bounds the bytes of paths and data. Defaults to 1 GiB.
func MaxBytes(n int) Option { return option(func(o *options) { o.bytes = n }) }

// RetryHoles sets how often nodes that cannot be read are tried again, since servers do not
// tell when that changes. Defaults to 30 seconds.
func RetryHoles(d time.Duration) Option { return option(func(o *options) { o.holes = d }) }

// Recheck reads and lists all nodes once more, each time that d has passed. No server tells
// that the right to read a node was taken away, or given: a node that has lost it is an entry
// with ErrNoAuth then, and one that could not be read when it was made is found. It costs what
// a load costs, and snapshots go on meanwhile. Defaults to never.
func Recheck(d time.Duration) Option {
	return option(func(o *options) {
		if o.check = d; d <= 0 {
			o.check = -1
		}
	})
}

// History sets how many changes are kept for readers of Steps. A reader that is further behind
// begins anew. Defaults to 16,384.
func History(changes int) Option { return option(func(o *options) { o.ring = changes }) }

// Cache is the copy. Its methods are safe for use by many goroutines.
type Cache[T any] struct {
	client  *framework.Client
	path    string
	options options
	stop    func() // ends and joins run
	shown   *framework.Shown

	mu      sync.Mutex // guards the fields below
	now     *Snapshot[T]
	status  Status
	sub     *framework.Subscription // nil without one
	steps   []Step[T]
	first   int           // the number of steps[0]
	kept    int           // changes in steps
	changed chan struct{} // closed and replaced when any of the above changes
	closed  bool
	readers map[*int]struct{} // the numbers of the steps that they read next
}

// Status is how far a cache can be trusted.
type Status struct {
	// Complete is whether the subtree was loaded once.
	Complete bool
	// Current is whether the servers tell each change, and all that was missed before was
	// read. The latest changes may be on their way.
	Current bool
	// Since is since when Current is as it is.
	Since time.Time
	// Err is why the cache is not current, nil if it is or begins.
	Err error
	// Gaps is how often it was current and was not any more, and LastGap when that was last;
	// zero for never.
	Gaps    int
	LastGap time.Time
	// Zxid and Nodes are those of the present snapshot, Bytes about those of its paths and
	// data, and Holes its nodes with an Err.
	Zxid  int64
	Nodes int
	Bytes int
	Holes int
}

// Start makes a cache of path and what is below it. It returns at once, and loads in the
// background, for as long as it takes. The node need not exist, and there need not be a
// connection. The cache ends with its client, whose Close waits for the decoder.
//
// A cache of "/" leaves out "/zookeeper".
//
// The errors are framework.ErrInvalidPath, ErrInvalidArgument, and ErrClosed if the client is.
func Start[T any](client *framework.Client, path string, decode Decoder[T], opts ...Option) (*Cache[T], error) {
	o := options{depth: all, nodes: 1_000_000, bytes: 1 << 30, holes: 30 * time.Second, ring: 16_384, buffer: 1 << 16}
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("cache %s: %w: option is nil", path, framework.ErrInvalidArgument)
		}
		opt.apply(&o)
	}
	if err := framework.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	wrong := ""
	switch {
	case client == nil:
		wrong = "no client"
	case decode == nil:
		wrong = "no decoder"
	case o.depth < 0:
		wrong = "a Depth that is negative"
	case o.nodes < 1:
		wrong = "MaxNodes is not positive"
	case o.bytes < 1:
		wrong = "MaxBytes is not positive"
	case o.holes <= 0:
		wrong = "RetryHoles is not positive"
	case o.holes < time.Millisecond:
		wrong = fmt.Sprintf("RetryHoles is %v: it must be a millisecond at least (a number alone counts nanoseconds)", o.holes)
	case o.check < 0:
		wrong = "Recheck is not positive"
	case 0 < o.check && o.check < time.Millisecond: // it would load without a pause
		wrong = fmt.Sprintf("Recheck is %v: it must be a millisecond at least (a number alone counts nanoseconds)", o.check)
	case o.ring < 1:
		wrong = "History is not positive"
	}
	if wrong != "" {
		return nil, fmt.Errorf("cache %s: %w: %s", path, framework.ErrInvalidArgument, wrong)
	}
	c := &Cache[T]{
		client: client, path: path, options: o,
		now: &Snapshot[T]{top: path}, status: Status{Since: time.Now()}, changed: make(chan struct{}), readers: make(map[*int]struct{}),
	}
	var err error
	if c.shown, err = client.Show(path, c.entry); err != nil {
		return nil, c.fail(err)
	}
	c.stop, err = client.Go(func(ctx context.Context) {
		defer c.shown.Remove()
		core := newCore(path, o.depth, decode)
		core.keep = o.keep
		c.run(ctx, core)
	})
	if err != nil {
		c.shown.Remove()
		return nil, c.fail(err)
	}
	return c, nil
}

// Close ends the cache, takes its watch off the servers, and waits until that was sent. The last
// snapshot stays readable. A second call does nothing.
func (c *Cache[T]) Close() { c.stop() }

// Snapshot is the present state. It is empty, with Zxid 0, until the cache has loaded.
func (c *Cache[T]) Snapshot() *Snapshot[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Get returns the entry of a node, as Snapshot().Get does.
func (c *Cache[T]) Get(path string) (Entry[T], bool) { return c.Snapshot().Get(path) }

// Status says how far the cache can be trusted.
func (c *Cache[T]) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// String says for people which cache it is, and how far it can be trusted.
func (c *Cache[T]) String() string { return "cache " + c.path + ": " + c.Status().String() }

// String says for people how far the cache can be trusted.
func (s Status) String() string {
	shows := fmt.Sprintf("at zxid 0x%x, %d nodes", s.Zxid, s.Nodes)
	if s.Holes > 0 {
		shows += fmt.Sprintf(", %d of them cannot be read", s.Holes)
	}
	switch {
	case s.Current:
		return "current " + shows
	case !s.Complete && s.Err == nil:
		return "loads"
	case !s.Complete:
		return fmt.Sprintf("not loaded: %v", s.Err)
	default:
		return fmt.Sprintf("not current since %s: %v; %s", s.Since.Format(time.RFC3339), s.Err, shows)
	}
}

// entry is what the client shows.
func (c *Cache[T]) entry() monitor.Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, behind := c.status, 0
	for at := range c.readers {
		if s.Complete && *at < c.first+len(c.steps) {
			behind++
		}
	}
	e := monitor.Entry{Kind: "cache", State: "not loaded", Since: s.Since, Err: s.Err, Numbers: map[string]int64{
		"nodes": int64(s.Nodes), "bytes": int64(s.Bytes), "holes": int64(s.Holes), "gaps": int64(s.Gaps),
		"readers": int64(len(c.readers)), "readers behind": int64(behind),
	}}
	switch {
	case s.Current:
		e.State = "current"
	case s.Complete:
		e.State = "old"
	}
	if s.Complete {
		e.Note = fmt.Sprintf("zxid %#x", s.Zxid)
		if s.Gaps > 0 {
			e.Note += ", last gap " + s.LastGap.UTC().Format(time.RFC3339)
		}
	}
	return e
}

// Ready waits until the cache has loaded, and returns its snapshot.
//
// Errors: those of Await.
func (c *Cache[T]) Ready(ctx context.Context) (*Snapshot[T], error) { return c.Await(ctx, 1) }

// Await waits for a snapshot that shows at least the state after a transaction: that of a
// write of yours, say, which its Stat names. After the servers have lost what they had shown, it
// may return the last snapshot for a write made since, until the cache has begun anew.
//
// Errors: ctx.Err() together with the reason why there is none, and framework.ErrClosed if the
// cache or its client was closed before there was one.
func (c *Cache[T]) Await(ctx context.Context, zxid int64) (*Snapshot[T], error) {
	if ctx == nil {
		return nil, c.fail(framework.ErrNilContext)
	}
	const patience = 50 * time.Millisecond
	ask := time.NewTimer(time.Nanosecond) // of 0 it would break the race detector in a bubble (golang/go#78156)
	defer ask.Stop()
	for {
		c.mu.Lock()
		now, changed, sub, status, closed := c.now, c.changed, c.sub, c.status, c.closed
		c.mu.Unlock()
		switch {
		case now.zxid >= zxid && (status.Complete || closed):
			return now, nil
		case closed:
			return nil, c.fail(status.Err)
		}
		select {
		case <-changed:
		case <-ask.C:
			if sub != nil && status.Current {
				// If nothing has changed below path, an answer says so.
				_ = sub.Read(framework.Read{Path: c.path}) // the path is valid
			}
			ask.Reset(patience)
		case <-ctx.Done():
			switch {
			case status.Err != nil:
				return nil, c.fail(fmt.Errorf("%w: %w", ctx.Err(), status.Err))
			case !status.Complete:
				return nil, c.fail(fmt.Errorf("%w: it is still loading", ctx.Err()))
			}
			return nil, c.fail(fmt.Errorf("%w: transaction %#x has not come: the snapshot is at %#x", ctx.Err(), zxid, now.zxid))
		}
	}
}

// Fresh waits for a snapshot that shows every write that was finished before the call, as far
// as Client.Sync promises it. It takes three round trips. If the servers have lost what the
// snapshot shows, it waits until the cache has begun anew, for two minutes.
//
// Errors: those of Client.Sync and Await.
func (c *Cache[T]) Fresh(ctx context.Context) (*Snapshot[T], error) {
	for {
		now := c.Snapshot() // before the servers are asked, as it may go on past their answer
		if err := c.client.Sync(ctx, c.path); err != nil {
			return nil, c.fail(err)
		}
		results, err := c.client.ReadAll(ctx, framework.Read{Path: c.path})
		if err != nil {
			return nil, c.fail(err)
		}
		if zxid := results[0].Zxid; zxid >= now.zxid {
			return c.Await(ctx, zxid)
		}
		if err := c.awaitOther(ctx, now); err != nil {
			return nil, c.fail(err)
		}
	}
}

// awaitOther waits for another snapshot than one that is ahead of the servers, and for readPause
// at most, in which they may get that far.
func (c *Cache[T]) awaitOther(ctx context.Context, ahead *Snapshot[T]) error {
	pause := time.NewTimer(readPause)
	defer pause.Stop()
	for {
		c.mu.Lock()
		now, changed, closed, why := c.now, c.changed, c.closed, c.status.Err
		c.mu.Unlock()
		switch {
		case closed:
			return why
		case now != ahead:
			return nil
		}
		select {
		case <-changed:
		case <-pause.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Cache[T]) fail(err error) error { return fmt.Errorf("cache %s: %w", c.path, err) }

// Steps are the changes from snapshot to snapshot, in order. The first step has Restart set,
// and so has the next one of a reader that has fallen out of the History. The last result is an
// error: that of ctx, or framework.ErrClosed once the cache or its client is closed.
func (c *Cache[T]) Steps(ctx context.Context) iter.Seq2[Step[T], error] {
	return func(yield func(Step[T], error) bool) {
		at := c.join()
		defer c.leave(at)
		for {
			steps, next, err := c.await(ctx, *at, 256)
			if err != nil {
				yield(Step[T]{}, err)
				return
			}
			for _, step := range steps {
				if !yield(step, nil) {
					return
				}
			}
			c.moved(at, next)
		}
	}
}

// Latest is Steps for readers that want to know the latest state only. All steps that they have
// not read come as one, with one change for each path.
func (c *Cache[T]) Latest(ctx context.Context) iter.Seq2[Step[T], error] {
	return func(yield func(Step[T], error) bool) {
		at := c.join()
		defer c.leave(at)
		for {
			steps, next, err := c.await(ctx, *at, math.MaxInt)
			if err != nil {
				yield(Step[T]{}, err)
				return
			}
			if !yield(merged(steps), nil) {
				return
			}
			c.moved(at, next)
		}
	}
}

// join begins with the reader that it returns, which has read nothing.
func (c *Cache[T]) join() *int {
	at := -1
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers[&at] = struct{}{}
	return &at
}

func (c *Cache[T]) leave(at *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.readers, at)
}

// moved says that a reader has read all steps before a number.
func (c *Cache[T]) moved(at *int, next int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*at = next
}

// await waits for steps from a number on, and returns some and the number of the next one. It
// returns one that restarts if there are none from there any more.
func (c *Cache[T]) await(ctx context.Context, at, most int) ([]Step[T], int, error) {
	if ctx == nil {
		return nil, 0, c.fail(framework.ErrNilContext)
	}
	for {
		c.mu.Lock()
		changed, closed, why, end := c.changed, c.closed, c.status.Err, c.first+len(c.steps)
		var steps []Step[T]
		switch {
		case !c.status.Complete:
		case at < c.first:
			steps = []Step[T]{{Zxid: c.now.zxid, Restart: c.now}}
		case at < end:
			steps = c.steps[at-c.first:]
			steps = slices.Clone(steps[:min(len(steps), most)])
			end = at + len(steps)
		}
		c.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil, 0, c.fail(ctx.Err())
		case steps != nil:
			return steps, end, nil
		case closed:
			return nil, 0, c.fail(why)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// merged is one step in the place of several.
func merged[T any](steps []Step[T]) Step[T] {
	last := steps[len(steps)-1]
	if len(steps) == 1 {
		return last
	}
	var before, after tree[T]
	seen := make(map[string]bool)
	for _, step := range steps {
		for _, change := range step.Changes {
			if !seen[change.Path] && change.Old != nil {
				before = before.put(change.Old)
			}
			seen[change.Path] = true
			if change.New != nil {
				after = after.put(change.New)
			} else {
				after = after.without(change.Path)
			}
		}
	}
	return Step[T]{Zxid: last.Zxid, Changes: changes(before, after)}
}

// publish makes snapshots public, and steps of the ways between them.
func (c *Cache[T]) publish(snapshots []*Snapshot[T], bytes int) {
	for _, next := range snapshots {
		var list []Change[T]
		holes := 0
		if c.Status().Complete { // nobody else writes now
			list = changes(c.now.tree, next.tree)
		} else {
			for e := range next.tree.under(next.top) {
				if e.Err != nil {
					holes++
				}
			}
		}
		c.mu.Lock()
		if c.status.Complete && len(list) > 0 {
			c.steps, c.kept = append(c.steps, Step[T]{Zxid: next.zxid, Changes: list}), c.kept+len(list)
			for c.kept > c.options.ring && len(c.steps) > 0 {
				c.kept -= len(c.steps[0].Changes)
				c.steps[0] = Step[T]{}
				c.steps, c.first = c.steps[1:], c.first+1
			}
		}
		holes += c.status.Holes
		for _, change := range list {
			if change.Old != nil && change.Old.Err != nil {
				holes--
			}
			if change.New != nil && change.New.Err != nil {
				holes++
			}
		}
		c.now = next
		c.status.Complete, c.status.Zxid, c.status.Nodes, c.status.Bytes, c.status.Holes = true, next.zxid, next.Len(), bytes, holes
		c.tellLocked()
		c.mu.Unlock()
	}
}

// set says whether the cache is current, and why it is not.
func (c *Cache[T]) set(current bool, err error) {
	if c.setStatus(current, err) {
		c.shown.Changed()
	}
}

// setStatus is set, and whether that was new.
func (c *Cache[T]) setStatus(current bool, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.Current == current && (current || errors.Is(c.status.Err, err)) {
		return false
	}
	if c.status.Current != current {
		c.status.Current, c.status.Since = current, time.Now()
		if !current {
			c.status.Gaps, c.status.LastGap = c.status.Gaps+1, c.status.Since
		}
	}
	c.status.Err = err
	c.tellLocked()
	return true
}

func (c *Cache[T]) tellLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Pauses between attempts to subscribe, and before what failed is read again.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
	readPause  = 200 * time.Millisecond
	limitPause = time.Minute

	subscribeLimit = 5 * time.Second // after which Status says why
)

// mostBehind is how often the servers show an older state than the snapshot before they are
// synced, and again before they count as restored: a minute each where nothing changes.
const mostBehind = int(time.Minute / readPause)

// errRestored is why a cache begins anew whose servers have lost what they had shown. Nothing
// that it knows helps to tell what they have now.
var errRestored = errors.New("the servers have lost what they had shown, as if restored from an older state")

// anew makes a core that knows nothing, and has readers begin with its first snapshot.
func (c *Cache[T]) anew(was *core[T]) *core[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first, c.steps, c.kept = c.first+len(c.steps)+1, nil, 0
	c.status.Complete, c.status.Holes = false, 0
	return was.anew()
}

// run keeps the copy until ctx ends or the client is closed.
func (c *Cache[T]) run(ctx context.Context, core *core[T]) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.closed, c.sub = true, nil
		if c.status.Current {
			c.status.Current, c.status.Since = false, time.Now()
		}
		if c.status.Err = framework.ErrClosed; errors.Is(context.Cause(ctx), context.Canceled) {
			c.status.Err = errClosed
		}
		c.tellLocked()
	}()
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		began := time.Now()
		err := c.follow(ctx, core)
		if ctx.Err() != nil || errors.Is(err, framework.ErrClosed) {
			return
		}
		core.take(framework.Event{Type: framework.Gap})
		c.set(false, err)
		switch {
		case errors.Is(err, ErrLimit), errors.Is(err, framework.ErrUnsupported):
			pause = limitPause
		case errors.Is(err, errRestored):
			core = c.anew(core)
			pause = firstPause
		case errors.Is(err, framework.ErrNotConnected), time.Since(began) > mostPause:
			pause = firstPause // the next attempt waits for a connection
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// follow keeps the copy by one subscription.
func (c *Cache[T]) follow(ctx context.Context, core *core[T]) error {
	opts := []framework.SubscribeOption{framework.Buffer(c.options.buffer)}
	if c.options.depth != 0 {
		opts = append(opts, framework.Subtree())
	}
	patient, cancel := context.WithTimeout(ctx, subscribeLimit)
	sub, err := c.client.Subscribe(patient, c.path, opts...)
	late := patient.Err() != nil
	cancel()
	switch {
	case err != nil && late && ctx.Err() == nil:
		return fmt.Errorf("%w: %v", framework.ErrNotConnected, err) //nolint:errorlint // the limit is ours, and no caller's
	case err != nil:
		return err
	}
	defer sub.Stop()
	c.mu.Lock()
	c.sub = sub
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sub = nil
	}()
	holes, check := time.Now().Add(c.options.holes), time.Now().Add(c.options.check)
	var again time.Time // of what was turned away, zero while there is nothing
	for {
		limit := time.Until(holes)
		if c.options.check > 0 {
			limit = min(limit, time.Until(check))
		}
		if len(core.later) > 0 {
			if again.IsZero() {
				again = time.Now().Add(readPause)
			}
			limit = min(limit, time.Until(again))
		}
		limited, cancel := context.WithTimeout(ctx, limit)
		ev, err := sub.Next(limited)
		cancel()
		switch {
		case err == nil:
			snapshots := core.take(ev)
			if core.size() > c.options.nodes || core.bytes > c.options.bytes {
				core.reset()
				return ErrLimit
			}
			c.publish(snapshots, core.bytes)
			switch {
			case ev.Type == framework.Gap:
				c.set(false, ev.Err)
			case core.why != nil:
				c.set(false, core.why)
			case core.level:
				c.set(true, nil)
			}
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return err
		}
		// Events may come all the time, so all that is due is looked at after each.
		if !again.IsZero() && !time.Now().Before(again) {
			again = time.Time{}
			core.again()
		}
		if !time.Now().Before(holes) {
			holes = time.Now().Add(c.options.holes)
			core.retryHoles()
		}
		if c.options.check > 0 && !time.Now().Before(check) {
			check = time.Now().Add(c.options.check)
			core.check()
		}
		if core.behind == mostBehind {
			core.behind++
			if c.client.Sync(ctx, c.path) != nil {
				core.behind = 0
			}
		}
		if core.behind > 2*mostBehind {
			return errRestored
		}
		if reads := core.asks(); len(reads) > 0 {
			if err := sub.Read(reads...); err != nil {
				return err
			}
		}
	}
}

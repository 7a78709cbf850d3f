package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
)

// node is what the servers say of a node.
type node struct {
	Path     string             `json:"path"`
	Data     lockview.Text      `json:"data,omitempty"`
	Version  int32              `json:"version"`
	Size     int32              `json:"size"`
	Children int32              `json:"children"`
	Session  lockview.SessionID `json:"session,omitempty"` // of an ephemeral node
	Created  time.Time          `json:"created"`           // by the servers' clock
	Modified time.Time          `json:"modified"`
	Czxid    int64              `json:"czxid"`
}

func nodeOf(path string, data []byte, stat *framework.Stat) node {
	n := node{
		Path: path, Data: data, Version: stat.Version, Size: stat.DataLength, Children: stat.NumChildren,
		Created: time.UnixMilli(stat.Ctime).UTC(), Modified: time.UnixMilli(stat.Mtime).UTC(), Czxid: stat.Czxid,
	}
	const container, ttl = 1 << 63, 0xff // how the servers mark these kinds of node, in place of a session
	if owner := uint64(stat.EphemeralOwner); owner != container && owner>>56 != ttl {
		n.Session = lockview.SessionID(stat.EphemeralOwner)
	}
	return n
}

// line is a node in one line.
func (n node) line() string {
	line := fmt.Sprintf("version %d, %d bytes, %d children, created %s", n.Version, n.Size, n.Children, n.Created.Format(time.RFC3339))
	if n.Session != 0 {
		line += ", ephemeral of session " + n.Session.String()
	}
	return line
}

// ls prints the names below a path.
func ls(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	if err != nil {
		return err
	}
	return inv.withClient(ctx, func(ctx context.Context, client *framework.Client) error {
		names, _, err := client.Children(ctx, path)
		if err != nil {
			return err
		}
		slices.Sort(names)
		if inv.long {
			return inv.listLong(ctx, client, path, names)
		}
		if inv.json {
			return writeJSON(inv.sys.out, append([]string{}, names...))
		}
		var b strings.Builder
		for _, name := range names {
			b.WriteString(lockview.Printable(name) + "\n")
		}
		return inv.print(b.String())
	})
}

// listLong prints names with what the servers say of each. Nodes that have gone
// meanwhile are left out.
func (inv *invocation) listLong(ctx context.Context, client *framework.Client, path string, names []string) error {
	stats, errs := make([]*framework.Stat, len(names)), make([]error, len(names))
	var reads sync.WaitGroup
	for part := range mostAtOnce {
		reads.Go(func() {
			for i := part; i < len(names); i += mostAtOnce {
				_, stats[i], errs[i] = client.Exists(ctx, framework.MakePath(path, names[i]))
			}
		})
	}
	reads.Wait()
	nodes := []node{}
	var b strings.Builder
	for i, name := range names {
		n, says := node{Path: framework.MakePath(path, name)}, "no right to read it"
		switch {
		case errors.Is(errs[i], framework.ErrNoAuth):
		case errs[i] != nil:
			return errs[i]
		case stats[i] == nil:
			continue
		default:
			n = nodeOf(n.Path, nil, stats[i])
			says = n.line()
		}
		nodes = append(nodes, n)
		fmt.Fprintf(&b, "%s  (%s)\n", lockview.Printable(name), says)
	}
	if inv.json {
		return writeJSON(inv.sys.out, nodes)
	}
	return inv.print(b.String())
}

// get prints the data of a node. A terminal gets it escaped, and anything else as it is.
func get(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	if err != nil {
		return err
	}
	return inv.withClient(ctx, func(ctx context.Context, client *framework.Client) error {
		data, stat, err := client.Get(ctx, path)
		if err != nil {
			return err
		}
		n := nodeOf(path, data, stat)
		switch {
		case inv.json:
			err = writeJSON(inv.sys.out, n)
		case isTerminal(inv.sys.out):
			err = inv.print(lockview.Printable(string(data)) + "\n")
		default:
			_, err = inv.sys.out.Write(data)
		}
		if err == nil && inv.long && !inv.json {
			inv.sys.complain(n.line())
		}
		return err
	})
}

// branch is a node of a tree, with what stands in its queue.
type branch struct {
	Path   string        `json:"path"`
	Kind   lockview.Kind `json:"kind,omitempty"`
	Holds  int           `json:"holds,omitempty"`
	Waits  int           `json:"waits,omitempty"`
	Holder lockview.Text `json:"holder,omitempty"`      // data of the one that has it for longest
	Since  time.Time     `json:"since,omitzero"`        // when that one came into the queue, by the servers' clock
	Age    float64       `json:"age_seconds,omitempty"` // since then, by the clock of this machine
	Hidden bool          `json:"hidden,omitempty"`      // we may not read it

	gone  bool
	depth int
	below []*branch
	err   error
	known chan struct{} // closed when all else is
}

func newBranch(path string, depth int) *branch {
	return &branch{Path: path, depth: depth, known: make(chan struct{})}
}

// tree prints a node and those below, one a line.
func tree(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	if err != nil {
		return err
	}
	return inv.withClient(ctx, func(ctx context.Context, client *framework.Client) error {
		return inv.walk(ctx, client, path)
	})
}

// walk prints a path and those below.
func (inv *invocation) walk(ctx context.Context, client *framework.Client, path string) error {
	ctx, cancel := context.WithCancel(ctx)
	w := &walk{inv: inv, client: client, tokens: make(chan struct{}, mostAtOnce)}
	defer w.goroutines.Wait()
	defer cancel()
	first := newBranch(path, 0)
	w.start(ctx, first)
	return w.print(ctx, first)
}

// mostAtOnce is how many nodes are looked at together. Their requests share round trips.
const mostAtOnce = 64

// walk looks at the nodes of a tree, many at once.
type walk struct {
	inv        *invocation
	client     *framework.Client
	tokens     chan struct{}
	goroutines sync.WaitGroup
}

// start looks at a path, and at those below. Goroutines are as many as there are tokens, and
// one for each folder that has more to look at.
func (w *walk) start(ctx context.Context, b *branch) {
	select {
	case w.tokens <- struct{}{}:
	case <-ctx.Done():
		return
	}
	w.goroutines.Go(func() {
		names, err := w.look(ctx, b)
		<-w.tokens
		if b.err = err; err == nil && (w.inv.depth == anyDepth || b.depth < w.inv.depth) {
			for _, name := range names {
				if w.inv.all || !lockview.IsContender(name) && (b.Kind != lockview.Semaphore || b.Holds+b.Waits == 0 || name != lockview.Turns && name != lockview.Leases) {
					b.below = append(b.below, newBranch(framework.MakePath(b.Path, name), b.depth+1))
				}
			}
		}
		close(b.known)
		for _, child := range b.below {
			w.start(ctx, child)
		}
	})
}

// look finds out what stands at a path, and returns the names below.
func (w *walk) look(ctx context.Context, b *branch) ([]string, error) {
	names, _, err := w.client.Children(ctx, b.Path)
	b.Hidden, b.gone = errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrNoNode)
	if err != nil {
		if b.depth > 0 && (b.Hidden || b.gone) {
			return nil, nil
		}
		return nil, err
	}
	slices.Sort(names)
	q, err := lockview.LookAt(ctx, w.client, b.Path, names, 0)
	switch {
	case errors.Is(err, lockview.ErrNoLock): // of two kinds, or a semaphore's folder, which is no lock by itself
		return names, nil
	case err != nil:
		return nil, err
	}
	b.Kind = q.Kind
	for _, p := range q.Participants {
		switch {
		case !p.Holds:
			b.Waits++
			continue
		case b.Holds == 0 || p.Age > b.Age:
			b.Holder, b.Since, b.Age = p.Data, p.Since, p.Age
		}
		b.Holds++
	}
	return names, nil
}

// print prints a branch and those below as they become known. Nodes that went meanwhile
// are passed over, except the first.
func (w *walk) print(ctx context.Context, b *branch) error {
	select {
	case <-b.known:
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", ctx.Err(), context.Cause(ctx))
	}
	if b.err != nil || b.gone {
		return b.err
	}
	if err := w.inv.printBranch(b); err != nil {
		return err
	}
	for _, child := range b.below {
		if err := w.print(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

func (inv *invocation) printBranch(b *branch) error {
	if inv.json {
		return writeJSON(inv.sys.out, b)
	}
	_, name := framework.PathAndNode(b.Path)
	if b.depth == 0 {
		name = b.Path
	}
	line := strings.Repeat("  ", b.depth) + lockview.Printable(name)
	switch {
	case b.Hidden:
		line += "  (no right to read it)"
	case b.Kind != lockview.None:
		line += fmt.Sprintf("  %s: %d %s, %d wait", b.Kind, b.Holds, map[bool]string{true: "leads", false: "hold"}[b.Kind == lockview.Latch], b.Waits)
		if !b.Since.IsZero() {
			line += fmt.Sprintf(", for %s: %s", lockview.Age(time.Duration(b.Age*float64(time.Second))), lockview.Excerpt(b.Holder))
		}
	}
	return inv.print(line + "\n")
}

// version prints what this command was built from.
func version(_ context.Context, inv *invocation) error {
	v := map[string]string{"version": "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		v["version"], v["go"] = info.Main.Version, info.GoVersion
	}
	if inv.json {
		return writeJSON(inv.sys.out, v)
	}
	return inv.print(strings.TrimSpace("paddock "+v["version"]+" "+v["go"]) + "\n")
}

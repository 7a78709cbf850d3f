package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
	"github.com/paddock-zk/paddock/recipes/locks"
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
	nodes := []node{}
	var b strings.Builder
	for _, name := range names {
		n, says := node{Path: framework.MakePath(path, name)}, "no right to read it"
		there, stat, err := client.Exists(ctx, n.Path)
		switch {
		case errors.Is(err, framework.ErrNoAuth):
		case err != nil:
			return err
		case !there:
			continue
		default:
			n = nodeOf(n.Path, nil, stat)
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
	Hidden bool          `json:"hidden,omitempty"` // we may not read it
	depth  int
}

// tree prints a node and those below, one a line.
func tree(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	if err != nil {
		return err
	}
	return inv.withClient(ctx, func(ctx context.Context, client *framework.Client) error {
		return inv.walk(ctx, client, path, 0)
	})
}

// walk prints what is at a path and below. Nodes that go meanwhile are passed over,
// except the first.
func (inv *invocation) walk(ctx context.Context, client *framework.Client, path string, depth int) error {
	names, _, err := client.Children(ctx, path)
	switch {
	case errors.Is(err, framework.ErrNoAuth) && depth > 0:
		return inv.printBranch(branch{Path: path, Hidden: true, depth: depth})
	case errors.Is(err, framework.ErrNoNode) && depth > 0:
		return nil
	case err != nil:
		return err
	}
	b := branch{Path: path, depth: depth}
	if is, err := lockview.KindOf(names); err == nil && is != lockview.None {
		q, err := lockview.Look(ctx, client, path, 0)
		switch {
		case errors.Is(err, framework.ErrNoNode): // the first is asked for again below
		case errors.Is(err, locks.ErrInvalidLock): // as a folder of a semaphore, it is no lock by itself
		case err != nil:
			return err
		default:
			b.Kind = q.Kind
			for _, p := range q.Participants {
				if p.Holds {
					b.Holds++
				} else {
					b.Waits++
				}
			}
		}
	}
	if err := inv.printBranch(b); err != nil {
		return err
	}
	if inv.depth != anyDepth && depth >= inv.depth {
		return nil
	}
	slices.Sort(names)
	for _, name := range names {
		if !inv.all && (lockview.IsContender(name) || b.Kind == lockview.Semaphore && (name == lockview.Turns || name == lockview.Leases)) {
			continue
		}
		if err := inv.walk(ctx, client, framework.MakePath(path, name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (inv *invocation) printBranch(b branch) error {
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

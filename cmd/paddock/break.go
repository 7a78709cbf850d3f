package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
)

// errNotConfirmed reports a break that nobody confirmed.
var errNotConfirmed = errors.New("nothing was deleted")

// broken is a node that was deleted, or was to be.
type broken struct {
	Node    string        `json:"node"`
	Deleted bool          `json:"deleted"` // false: it had gone by itself
	Token   int64         `json:"token"`
	Data    lockview.Text `json:"data"`
}

// breakLock deletes the nodes of those that hold a lock, or the node of one participant.
func breakLock(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	if err != nil {
		return err
	}
	node := ""
	if lockview.IsContender(path) {
		if path, node = framework.PathAndNode(path); inv.all {
			return inv.verb.misuse("--all is for a lock, and %s is one participant's node", node)
		}
	}
	return inv.withClient(ctx, func(ctx context.Context, client *framework.Client) error {
		return inv.breakAt(ctx, client, path, node)
	})
}

// breakAt breaks the lock at a path, or the node of that name in its queue.
func (inv *invocation) breakAt(ctx context.Context, client *framework.Client, path, name string) error {
	at := path
	if parent, queue := framework.PathAndNode(path); name != "" && (queue == lockview.Turns || queue == lockview.Leases) {
		if names, _, err := client.Children(ctx, parent); err == nil {
			if is, _ := lockview.KindOf(names); is == lockview.Semaphore {
				at = parent // the node is of one of a semaphore's queues
			}
		}
	}
	q, err := lockview.Look(ctx, client, at, inv.semaphore)
	if err != nil {
		return err
	}
	if q.Kind == lockview.None {
		return fmt.Errorf("%s: %w: nobody stands in a queue there", path, lockview.ErrNoLock)
	}
	var victims []lockview.Participant
	for _, p := range q.Participants {
		switch {
		case name != "" && p.Node != framework.MakePath(path, name):
		case name == "" && !inv.all && !p.Holds:
		default:
			victims = append(victims, p)
		}
	}
	if len(victims) == 0 {
		return fmt.Errorf("%s: %w", framework.MakePath(path, name), framework.ErrNoNode)
	}
	if err := inv.confirm(q, victims); err != nil {
		return err
	}
	return inv.deleteAll(ctx, client, victims)
}

// confirm says what will be deleted, and asks unless --yes was given.
func (inv *invocation) confirm(q *lockview.Queue, victims []lockview.Participant) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s. These nodes will be deleted:\n", lockview.Printable(q.Path), q.Kind)
	for _, p := range victims {
		fmt.Fprintf(&b, "  %s\n    %s, session %v, token %d: %s\n", lockview.Printable(p.Node), q.Kind.Words(p.Holds), p.Session, p.Token, lockview.Excerpt(p.Data))
	}
	b.WriteString("Whoever holds the lock may go on for as long as it takes to hear of it. The next in the queue gets the lock at once.\n")
	inv.sys.complain(strings.TrimSuffix(b.String(), "\n"))
	if inv.yes {
		return nil
	}
	if !isTerminal(inv.sys.in) {
		return inv.verb.misuse("%v: give --yes to delete without being asked", errNotConfirmed)
	}
	_, _ = fmt.Fprint(inv.sys.err, "Delete? [y/N] ")
	answer, _ := bufio.NewReader(inv.sys.in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errNotConfirmed
	}
	return nil
}

// deleteAll deletes nodes and prints which.
func (inv *invocation) deleteAll(ctx context.Context, client *framework.Client, victims []lockview.Participant) error {
	done := []broken{}
	for _, p := range victims {
		err := client.Delete(ctx, p.Node, framework.AnyVersion, framework.Idempotent())
		if err != nil && !errors.Is(err, framework.ErrNoNode) {
			return err
		}
		done = append(done, broken{Node: p.Node, Deleted: err == nil, Token: p.Token, Data: p.Data})
		if inv.json {
			continue
		}
		says := "deleted "
		if err != nil {
			says = "had gone "
		}
		if err := inv.print(says + lockview.Printable(p.Node) + "\n"); err != nil {
			return err
		}
	}
	if inv.json {
		return writeJSON(inv.sys.out, done)
	}
	return nil
}

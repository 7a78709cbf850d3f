package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
)

// who prints who holds a lock or leads, and who waits.
func who(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	if err != nil {
		return err
	}
	return inv.withClient(ctx, func(ctx context.Context, client *framework.Client) error {
		q, err := lockview.Look(ctx, client, path, inv.semaphore)
		switch {
		case errors.Is(err, framework.ErrNoNode) && inv.inFull(path) == "":
			return fmt.Errorf("%w (nobody has taken this lock, or the servers have removed its empty node)", err)
		case err != nil:
			return err
		case inv.json:
			return writeJSON(inv.sys.out, q)
		}
		if q.Kind == lockview.None {
			return inv.printFolder(ctx, client, path)
		}
		return printQueue(q, inv)
	})
}

// printFolder says that a path is no lock, and what to do if there are some below.
func (inv *invocation) printFolder(ctx context.Context, client *framework.Client, path string) error {
	names, _, err := client.Children(ctx, path)
	if err != nil {
		return err
	}
	line := lockview.Printable(path) + ": no participants, so the kind is not known\n"
	if len(names) > 0 {
		line += fmt.Sprintf("nodes below it: %d; paddock tree shows the locks among them\n", len(names))
	}
	return inv.print(line)
}

// printQueue writes a queue for people.
func printQueue(q *lockview.Queue, inv *invocation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", lockview.Printable(q.Path), q.Kind)
	for i, p := range q.Participants {
		does := q.Kind.Words(p.Holds)
		if p.Side != "" {
			does += " (" + p.Side + ")"
		}
		if p.Behind != "" {
			does += fmt.Sprintf(" behind %d", q.Place(p.Behind))
		}
		fmt.Fprintf(&b, "%d. %s  %s\n", i+1, does, lockview.Excerpt(p.Data))
		if p.Session == 0 {
			b.WriteString("   (no right to read it)\n")
		} else {
			fmt.Fprintf(&b, "   since %s, for %s\n", p.Since.Format(time.RFC3339), lockview.Age(time.Duration(p.Age*float64(time.Second))))
			fmt.Fprintf(&b, "   session %v, token %d\n", p.Session, p.Token)
		}
		fmt.Fprintf(&b, "   node %s\n", lockview.Printable(p.Node))
		if says := saysOfWay[p.Way]; says != "" {
			fmt.Fprintf(&b, "   %s, of owner %s\n", says, p.Owner)
		}
	}
	if q.Kind == lockview.Semaphore && inv.semaphore == 0 {
		b.WriteString("Every lease that there is counts as held, as no node shows how many there may be: --semaphore N says it.\n")
	}
	if len(q.Participants) > 0 {
		b.WriteString("Times are by the servers' clock, ages by the difference to the clock of this machine.\n")
	}
	return inv.print(b.String())
}

// saysOfWay is what the name of a node says of an owner that takes several locks.
var saysOfWay = map[lockview.Way]string{
	lockview.Joint:    "a MultiLock's member",
	lockview.Ordered:  "a MultiLock's member, taken in the order of the paths",
	lockview.Backward: "a MultiLock's member, taken in the reverse order of the paths",
	lockview.Nesting:  "with other locks",
	lockview.Unknown:  "perhaps with other locks",
	lockview.Reverse:  "with a lock at a later path",
}

package main

import (
	"fmt"
	"slices"
	"strings"
)

// groupOf is what stands in one table: one situation on one server.
type groupOf struct{ server, name string }

// groups returns the results by group, in order of appearance.
func groups(all []result) (order []groupOf, by map[groupOf][]result) {
	by = make(map[groupOf][]result)
	for _, r := range all {
		g := groupOf{r.Server, r.Group}
		if by[g] == nil {
			order = append(order, g)
		}
		by[g] = append(by[g], r)
	}
	return order, by
}

// tables shows all results in Markdown.
func tables(all []result) string {
	var b strings.Builder
	order, by := groups(all)
	for _, g := range order {
		rows := by[g]
		fmt.Fprintf(&b, "\n### %s: %s\n\n", g.server, g.name)
		ratios := len(rows[0].Ratios) > 0
		head, line := "| | median | lowest to highest round |", "|---|--:|--:|"
		if ratios {
			head, line = head+" ratio | lowest to highest |", line+"--:|--:|"
		}
		tails := len(rows[0].Tail) > 0
		if tails {
			head, line = head+" 99 % |", line+"--:|"
		}
		fmt.Fprintf(&b, "%s\n%s\n", head, line)
		for _, r := range rows {
			fmt.Fprintf(&b, "| %s | %.4g %s | %s |", r.Name, median(r.Values), r.Unit, spread(r.Values, "%.4g"))
			if ratios {
				fmt.Fprintf(&b, " %.2f | %s |", median(r.Ratios), spread(r.Ratios, "%.2f"))
			}
			if tails {
				fmt.Fprintf(&b, " %.4g %s |", median(r.Tail), r.Unit)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func spread(v []float64, format string) string {
	return fmt.Sprintf(format+" to "+format, slices.Min(v), slices.Max(v))
}

// page is the text around the tables.
func page(text string) string {
	return `# Measured

Written by ` + "`make bench`" + `, which measures all of it in one run. Compare ratios only: they are taken in each round between candidates that
took turns in it, to the first line of the table or, for hand-offs, to zk.Lock with as many clients; the median of the rounds is
shown. The servers, the clients and whatever else the machine did shared its processors. ZooKeeper is a standalone server on
loopback, its data in memory and without fsync. Raw is go-zookeeper's Create and Delete of one node, which excludes nobody; zk.Lock is
go-zookeeper's own lock. Memory is heap and stacks in use after a collection, one session, each lock or waiter on a path of its own;
a goroutine in line is one of 10,000 of one client that want the same lock.

![Ratios](bench.svg)
` + text
}

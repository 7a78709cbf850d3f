// Command plots makes the tables and pictures of docs/bench.md from the samples of `make
// bench`, and prints nothing.
//
//	go run ./plots -page ../docs/bench.md ../bin/bench.txt
//
// It replaces what stands in the page below a line that says so. The pictures get into
// the folder pictures beside the page, each for a light and for a dark ground.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

func main() {
	page := flag.String("page", "../docs/bench.md", "the `file` whose tables to replace")
	flag.Parse()
	if err := run(*page, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

// marker is the line of the page below which everything is replaced.
const marker = "<!-- What follows is made by `make bench`. -->\n"

func run(page string, samples []string) error {
	groups, err := read(samples)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, _, found := strings.Cut(string(old), marker)
	if !found {
		return fmt.Errorf("%s has no line %q", page, marker)
	}
	var b strings.Builder
	b.WriteString(head + marker)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n", g.title)
		if g.drawn() {
			name := "bench-" + strings.Trim(notInNames.ReplaceAllString(strings.ToLower(g.title), "-"), "-")
			if err := g.draw(filepath.Join(filepath.Dir(page), "pictures", name)); err != nil {
				return err
			}
			fmt.Fprintf(&b, "<picture>\n  <source media=\"(prefers-color-scheme: dark)\" srcset=\"pictures/%[1]s-dark.svg\">\n"+
				"  <img alt=\"%[2]s: the table below as bars\" src=\"pictures/%[1]s-light.svg\">\n</picture>\n\n", name, g.title)
		}
		g.table(&b)
	}
	return os.WriteFile(page, []byte(b.String()), 0o644)
}

// group is what is compared in one table.
type group struct {
	title string
	unit  string
	rows  []*row
}

// row is one candidate in one situation, with a value for each round.
type row struct {
	name    string // the candidate
	clients string // how many contend, or ""
	values  []float64
	tail    []float64 // the 99th percentile of each round, if there is one
	first   *row      // that of the first candidate with as many clients, in the same rounds
}

func (g *group) label(r *row) string {
	switch {
	case r.clients == "":
		return r.name
	case strings.Contains(g.title, "own sessions") || strings.Contains(g.title, "each way, held"):
		return r.name + ", " + r.clients + " clients"
	case r.clients == "1":
		return r.name + ", 1 goroutine"
	default:
		return r.name + ", " + r.clients + " goroutines"
	}
}

// read returns the groups in the order of the samples.
func read(files []string) (groups []*group, err error) {
	in := benchfmt.Files{Paths: files}
	for in.Scan() {
		r, ok := in.Result().(*benchfmt.Result)
		if !ok {
			if bad, is := in.Result().(*benchfmt.SyntaxError); is {
				return nil, bad
			}
			continue
		}
		title := r.GetConfig("server") + ": " + r.GetConfig("group")
		at := slices.IndexFunc(groups, func(g *group) bool { return g.title == title })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{title: title, unit: r.Values[0].Unit})
		}
		groups[at].add(r)
	}
	return groups, in.Err()
}

func (g *group) add(r *benchfmt.Result) {
	var name, clients string
	_, parts := r.Name.Parts()
	for _, part := range parts {
		switch key, value, _ := strings.Cut(strings.TrimPrefix(string(part), "/"), "="); key {
		case "of":
			name = strings.ReplaceAll(value, "_", " ")
		case "clients":
			clients = value
		}
	}
	at := slices.IndexFunc(g.rows, func(r *row) bool { return r.name == name && r.clients == clients })
	if at < 0 {
		at = len(g.rows)
		added := &row{name: name, clients: clients}
		if i := slices.IndexFunc(g.rows, func(r *row) bool { return r.clients == clients }); i >= 0 && g.unit != "B" {
			added.first = g.rows[i]
		}
		g.rows = append(g.rows, added)
	}
	to := g.rows[at]
	to.values = append(to.values, r.Values[0].Value)
	for _, v := range r.Values[1:] {
		if strings.HasPrefix(v.Unit, "p99-") {
			to.tail = append(to.tail, v.Value)
		}
	}
}

// ratios are how the rounds of r compare with the same rounds of the first candidate.
func (r *row) ratios() (ratios []float64) {
	if r.first == nil || len(r.first.values) != len(r.values) {
		return nil
	}
	for i, v := range r.values {
		ratios = append(ratios, v/r.first.values[i])
	}
	return ratios
}

// spread is the median of values, the lowest and the highest.
func spread(values []float64) (mid, low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]
}

func (g *group) table(b *strings.Builder) {
	ratios := slices.ContainsFunc(g.rows, func(r *row) bool { return r.first != nil })
	tails := slices.ContainsFunc(g.rows, func(r *row) bool { return r.tail != nil })
	head, rule := "| | median | lowest to highest round |", "|---|--:|--:|"
	if ratios {
		head, rule = head+" ratio | lowest to highest |", rule+"--:|--:|"
	}
	if tails {
		head, rule = head+" 99 % |", rule+"--:|"
	}
	fmt.Fprintf(b, "%s\n%s\n", head, rule)
	for _, r := range g.rows {
		mid, low, high := spread(r.values)
		highest := show(high, g.unit)
		_, unit, _ := strings.Cut(highest, " ")
		fmt.Fprintf(b, "| %s | %s | %s to %s |", g.label(r), show(mid, g.unit), strings.TrimSuffix(show(low, g.unit), " "+unit), highest)
		if compared := r.ratios(); compared != nil {
			mid, low, high = spread(compared)
			fmt.Fprintf(b, " %s | %s to %s |", ratio(mid), ratio(low), ratio(high))
		} else if ratios {
			b.WriteString(" | |")
		}
		if tails {
			mid, _, _ = spread(r.tail)
			fmt.Fprintf(b, " %s |", show(mid, "sec/op"))
		}
		b.WriteString("\n")
	}
}

// show writes a value with three digits and its unit.
func show(v float64, unit string) string {
	switch unit {
	case "sec/op":
		d := time.Duration(v * 1e9)
		for _, u := range []struct {
			of   time.Duration
			name string
		}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}} {
			if d >= u.of {
				return digits(v*1e9/float64(u.of), 3) + " " + u.name
			}
		}
		return digits(v*1e9, 3) + " ns"
	case "B":
		return digits(v, 4) + " bytes"
	default:
		return digits(v, 3) + " /s"
	}
}

// ratio writes a ratio with two decimals, or with as many digits as count.
func ratio(v float64) string {
	if v < 0.1 || v >= 10 {
		return digits(v, 2)
	}
	return fmt.Sprintf("%.2f", v)
}

// digits writes n digits that count, and commas between thousands.
func digits(v float64, n int) string {
	if v == 0 {
		return "0"
	}
	_, exp, _ := strings.Cut(strconv.FormatFloat(v, 'e', n-1, 64), "e")
	tens, err := strconv.Atoi(exp)
	if err != nil {
		return fmt.Sprint(v) // infinite
	}
	scale := math.Pow10(n - 1 - tens)
	text := fmt.Sprintf("%.*f", max(0, n-1-tens), math.Round(v*scale)/scale)
	whole, part, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if part == "" {
		return whole
	}
	return whole + "." + part
}

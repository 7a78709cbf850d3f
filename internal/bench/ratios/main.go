// Command ratios reads the output of the benchmarks and shows for each what it
// is as a multiple of "raw" in the same group of the same run.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

// group has the benchmarks that are compared with each other.
type group struct {
	name  string
	order []string
	nanos map[string][]float64
}

func run(in io.Reader, out io.Writer) error {
	groups, failed, err := read(in, out)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, g := range groups {
		base := median(g.nanos["raw"])
		if base == 0 {
			continue
		}
		_, _ = fmt.Fprintf(w, "\n%s\tmedian µs\tx raw\truns\t\n", g.name)
		for _, name := range g.order {
			m := median(g.nanos[name])
			_, _ = fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%d\t\n", name, m/1000, m/base, len(g.nanos[name]))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if failed {
		return fmt.Errorf("a benchmark failed")
	}
	return nil
}

// read copies the output and collects the benchmarks of the form
// Benchmark<server>/<situation>/<candidate>.
func read(in io.Reader, out io.Writer) (groups []*group, failed bool, err error) {
	byName := make(map[string]*group)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if _, err := fmt.Fprintln(out, line); err != nil {
			return nil, false, err
		}
		failed = failed || strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL")
		name, nanos, ok := parse(line)
		parts := strings.Split(name, "/")
		if !ok || len(parts) != 3 {
			continue
		}
		key := strings.TrimPrefix(parts[0], "Benchmark") + ", " + parts[1]
		g := byName[key]
		if g == nil {
			g = &group{name: key, nanos: make(map[string][]float64)}
			byName[key] = g
			groups = append(groups, g)
		}
		if g.nanos[parts[2]] == nil {
			g.order = append(g.order, parts[2])
		}
		g.nanos[parts[2]] = append(g.nanos[parts[2]], nanos)
	}
	return groups, failed, lines.Err()
}

// parse reads one line of a benchmark: name-procs, count, nanoseconds, "ns/op".
func parse(line string) (name string, nanos float64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[3] != "ns/op" || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", 0, false
	}
	nanos, err := strconv.ParseFloat(fields[2], 64)
	if err != nil {
		return "", 0, false
	}
	name = fields[0]
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			name = name[:i]
		}
	}
	return name, nanos, true
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Clone(v)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

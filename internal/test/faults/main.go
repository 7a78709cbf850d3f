// Command faults plants bugs, one at a time, and looks whether the tests find
// them:
//
//	faults              all of them
//	faults -only 23     those of row 23, or whose name contains this
//	faults -part 1/3    the first, fourth, seventh ... of them
//	faults -list        the table without running anything
//
// Each is one of the failures that locks on ZooKeeper are known for: a patch file
// beside this one, whose header names the tests that must find it. It is planted
// into copies of files that the compiler is given in place of the true ones, so
// that the tree is never touched. Only the tests named are run, first once on the
// true code, where all must pass. A bug that no test finds in three runs fails the
// run: a test is missing.
//
// `git apply` takes the same files, to look at a planted bug in the tree.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "plant only what has this in its row or name")
	part := flag.String("part", "1/1", "plant only `k/n`: each n-th, from the k-th on")
	list := flag.Bool("list", false, "show the table and run nothing")
	jobs := flag.Int("jobs", runtime.NumCPU(), "how many to try at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *part, *list, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, part string, list bool, jobs int) error {
	root, err := findRoot(".")
	if err != nil {
		return err
	}
	all, err := corpus(root)
	if err != nil {
		return err
	}
	var planted []planting
	for _, m := range all {
		if only == "" || strings.TrimLeft(m.row(), "0") == strings.TrimLeft(only, "0") || m.id == only || strings.Contains(m.name, only) {
			planted = append(planted, planting{fault: m})
		}
	}
	if len(planted) == 0 {
		return fmt.Errorf("nothing planted has %q in its row or name; see -list", only)
	}
	if planted, err = share(planted, part); err != nil {
		return err
	}
	if list {
		head(os.Stdout)
		for i := range planted {
			planted[i].show(os.Stdout)
		}
		return nil
	}
	began := time.Now()
	work, err := os.MkdirTemp("", "faults-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	t := &trial{root: root, work: work, jobs: jobs}
	if err := t.control(ctx, planted); err != nil {
		return fmt.Errorf("without a planted bug: %w", err)
	}
	fmt.Printf("%-58s %s\n", "without a planted bug all tests named pass", seconds(time.Since(began)))
	head(os.Stdout)
	t.all(ctx, planted, func(p *planting) { p.show(os.Stdout) })
	return verdict(os.Stdout, planted, time.Since(began))
}

// share picks each n-th, from the k-th on, where part is "k/n".
func share(planted []planting, part string) ([]planting, error) {
	var k, n int
	if _, err := fmt.Sscanf(part, "%d/%d", &k, &n); err != nil || k < 1 || k > n || fmt.Sprintf("%d/%d", k, n) != part {
		return nil, fmt.Errorf("-part is %q and not as 1/3", part)
	}
	var picked []planting
	for i, p := range planted {
		if i%n == k-1 {
			picked = append(picked, p)
		}
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("there is no part %s of %d", part, len(planted))
	}
	return picked, nil
}

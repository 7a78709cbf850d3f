package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// planting is a fault, and what came of it.
type planting struct {
	fault
	foundBy string
	took    time.Duration
	err     error // it could not be tried
}

// trial runs tests on planted bugs.
type trial struct {
	root string
	work string // for what is built
	jobs int
}

// mostTime bounds the tests of one planted bug: many make something wait for ever.
const mostTime = time.Minute

// mostRuns is how often the tests may pass before a bug counts as not found: some bugs
// show in most schedules of goroutines, not in all. The table says if it took several.
const mostRuns = 3

// each calls fn for 0 to n-1, some at a time.
func (t *trial) each(n int, fn func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range max(1, t.jobs) {
		wg.Go(func() {
			for i := range next {
				fn(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// control runs all tests named on the true code, which must pass.
func (t *trial) control(ctx context.Context, planted []planting) error {
	tests := make(map[string][]string)
	for _, p := range planted {
		if !slices.Contains(tests[p.pkg], p.tests) {
			tests[p.pkg] = append(tests[p.pkg], p.tests)
		}
	}
	var pkgs []string
	for pkg := range tests {
		pkgs = append(pkgs, pkg)
	}
	slices.Sort(pkgs)
	errs := make([]error, len(pkgs))
	t.each(len(pkgs), func(i int) { errs[i] = t.controlOne(ctx, pkgs[i], tests[pkgs[i]]) })
	return errors.Join(errs...)
}

func (t *trial) controlOne(ctx context.Context, pkg string, tests []string) error {
	binary := filepath.Join(t.work, "control-"+strings.ReplaceAll(pkg, "/", "-"))
	if err := t.build(ctx, pkg, binary, nil); err != nil {
		return err
	}
	for _, pattern := range tests {
		out, err := t.test(ctx, pkg, binary, pattern, "-test.v")
		if err != nil {
			return fmt.Errorf("%s %s: %w\n%s", pkg, pattern, err, out)
		}
		for name := range strings.SplitSeq(pattern, "|") {
			if !runs(out, name) {
				return fmt.Errorf("%s: there is no test %s", pkg, name)
			}
		}
	}
	return nil
}

// runs is whether the output of go test -v has a test begin.
func runs(out []byte, name string) bool {
	pattern := regexp.QuoteMeta(name)
	return regexp.MustCompile(`(?m)^=== RUN +` + pattern + `$`).Match(out)
}

// all plants every bug, and passes each to done in the order of the table.
func (t *trial) all(ctx context.Context, planted []planting, done func(*planting)) {
	var mu sync.Mutex // guards the fields below, and calls of done
	tried := make([]bool, len(planted))
	next := 0
	t.each(len(planted), func(i int) {
		p := &planted[i]
		began := time.Now()
		p.foundBy, p.err = t.try(ctx, i, &p.fault)
		p.took = time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		for tried[i] = true; next < len(planted) && tried[next]; next++ {
			done(&planted[next])
		}
	})
}

// try plants one bug and returns which test found it, "" if none did.
func (t *trial) try(ctx context.Context, n int, m *fault) (string, error) {
	files, err := m.mutate(t.root)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for name, text := range files {
		copied := filepath.Join(t.work, fmt.Sprintf("%d-%s", n, filepath.Base(name)))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(t.root, name)] = copied
	}
	binary := filepath.Join(t.work, fmt.Sprintf("%d.test", n))
	defer func() { _ = os.Remove(binary) }()
	if err := t.build(ctx, m.pkg, binary, replace); err != nil {
		return "", err
	}
	for run := range mostRuns {
		out, err := t.test(ctx, m.pkg, binary, m.tests, "-test.failfast")
		if err == nil {
			continue
		}
		found := finder(out, m.tests)
		if run > 0 {
			found += fmt.Sprintf(" (run %d)", run+1)
		}
		return found, nil
	}
	return "", nil
}

// build makes a package's test binary, with files replaced.
func (t *trial) build(ctx context.Context, pkg, binary string, replace map[string]string) error {
	module, err := findRoot(filepath.Join(t.root, pkg)) // its own, or that of the sources
	if err != nil {
		return err
	}
	dir, err := filepath.Rel(module, filepath.Join(t.root, pkg))
	if err != nil {
		return err
	}
	args := []string{"test", "-c", "-vet=off", "-o", binary}
	if replace != nil {
		overlay := binary + ".json"
		b, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			return err
		}
		if err := os.WriteFile(overlay, b, 0o600); err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+dir)...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	return nil
}

// test runs tests of a binary where go test would.
func (t *trial) test(ctx context.Context, pkg, binary, tests, flag string) ([]byte, error) {
	// The second limit is for a binary that does not heed its own.
	ctx, cancel := context.WithTimeout(ctx, mostTime+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", anchored(tests), "-test.timeout", mostTime.String(), flag)
	cmd.Dir = filepath.Join(t.root, pkg)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.Bytes(), err
}

// anchored makes names of tests match nothing but themselves.
func anchored(tests string) string {
	var all []string
	for name := range strings.SplitSeq(tests, "|") {
		var parts []string
		for part := range strings.SplitSeq(name, "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
		all = append(all, strings.Join(parts, "/"))
	}
	return strings.Join(all, "|")
}

var (
	failed  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	running = regexp.MustCompile(`running tests:\s+(\S+)`)
)

// finder is the test that failed, by what go test printed.
func finder(out []byte, tests string) string {
	if m := running.FindSubmatch(out); m != nil {
		return string(m[1]) + " (never ends)"
	}
	deepest := ""
	for _, m := range failed.FindAllSubmatch(out, -1) {
		if name := string(m[1]); deepest == "" || strings.HasPrefix(name, deepest+"/") {
			deepest = name
		}
	}
	if deepest != "" {
		return deepest
	}
	if bytes.Contains(out, []byte("goleak: ")) {
		return "leak check after " + tests
	}
	return tests + " (panic)"
}

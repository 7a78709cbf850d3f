// Command weigh counts how large the code is and how much of it a call runs. It prints
// three tables:
//
//   - lines with code of each package, of all modules and for all build tags, and of its tests;
//   - the structs with most fields;
//   - functions and files of the client that one call runs, by coverage counters.
//
// Run it in the root of the repository with `make weigh`.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func main() {
	call := flag.String("call", "", "run this `call` and write its counters to -to; for the program itself")
	to := flag.String("to", "", "the `folder` for the counters")
	flag.Parse()
	var err error
	if *call != "" {
		err = count(context.Background(), *call, *to)
	} else {
		err = weigh(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "weigh:", err)
		os.Exit(1)
	}
}

func weigh(ctx context.Context) error {
	code, tests, fields := make(map[string]int), make(map[string]int), make(map[string]int)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if strings.HasSuffix(path, "_test.go") {
			tests[dir] += lines(source)
			return nil
		}
		code[dir] += lines(source)
		return countFields(path, source, fields)
	})
	if err != nil {
		return err
	}
	all := [2]int{}
	fmt.Println("lines  tests  package")
	for _, dir := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(code)), maps.Keys(tests))))) {
		fmt.Printf("%5d  %5d  %s\n", code[dir], tests[dir], dir)
		all[0], all[1] = all[0]+code[dir], all[1]+tests[dir]
	}
	fmt.Printf("%5d  %5d  all\n", all[0], all[1])
	fmt.Println("\nfields  struct")
	largest := slices.SortedFunc(maps.Keys(fields), func(a, b string) int {
		return cmp.Or(cmp.Compare(fields[b], fields[a]), cmp.Compare(a, b))
	})
	for _, name := range largest[:10] {
		fmt.Printf("%6d  %s\n", fields[name], name)
	}
	return calls(ctx)
}

// lines is how many lines of a file have a token other than a comment.
func lines(source []byte) (n int) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, 0)
	for last := 0; ; {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // is not in the source
		}
		first := file.Line(pos)
		end := first + strings.Count(text, "\n") // of a raw string
		n += end - max(last, first-1)
		last = end
	}
}

// countFields notes how many fields each struct type of a file has.
func countFields(path string, source []byte, fields map[string]int) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.TypeSpec); is {
			if of, is := spec.Type.(*ast.StructType); is {
				for _, field := range of.Fields.List {
					fields[filepath.Dir(path)+"."+spec.Name.Name] += max(1, len(field.Names))
				}
			}
		}
		return true
	})
	return nil
}

// calls builds this program with counters in all packages of the client, and prints what
// each call has run. Goroutines in the background add some functions, so the least of five
// runs counts.
func calls(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "weigh")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary one
	const module = "github.com/paddock-zk/paddock/"
	client := module + "framework/...," + module + "recipes/...," + module + "internal/session/...," + module + "internal/transport/...," +
		module + "internal/wire," + module + "internal/contextend," + module + "listeners," + module + "retry," + module + "internal/test/weigh"
	program := filepath.Join(dir, "weigh")
	if _, err := output(ctx, "", "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+client, "-o", program, "./internal/test/weigh"); err != nil {
		return err
	}
	fmt.Println("\nfunctions  files  a call, nobody else there")
	for _, call := range []string{"Acquire", "Release", "Create"} {
		functions, files := 0, 0
		for i := range 5 {
			to := filepath.Join(dir, fmt.Sprint(call, i))
			if err := os.Mkdir(to, 0o700); err != nil {
				return err
			}
			if _, err := output(ctx, dir, program, "-call", call, "-to", to); err != nil {
				return err
			}
			out, err := output(ctx, dir, "go", "tool", "covdata", "func", "-i", to)
			if err != nil {
				return err
			}
			if f, in := ran(out); functions == 0 || f < functions {
				functions, files = f, in
			}
		}
		fmt.Printf("%9d  %5d  %s\n", functions, files, call)
	}
	return nil
}

// ran is how many functions have run, in how many files, by what covdata says: a line has
// a file with the number of a line, a function and a percentage.
func ran(report string) (functions, files int) {
	seen := make(map[string]bool)
	for line := range strings.Lines(report) {
		words := strings.Fields(line)
		if len(words) != 3 || words[2] == "0.0%" || strings.Contains(words[0], "/test/weigh/") || words[0] == "total" {
			continue
		}
		file, _, _ := strings.Cut(words[0], ":")
		seen[file] = true
		functions++
	}
	return functions, len(seen)
}

func output(ctx context.Context, counters, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+counters) // for what is written at its end
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", name, err, exit.Stderr)
	}
	return string(out), err
}

// count makes a call once to warm up, and once with counters that begin at zero.
func count(ctx context.Context, call, to string) error {
	srv, err := zktest.New() //nolint:contextcheck // a server lives until it is closed
	if err != nil {
		return err
	}
	defer func() { _ = srv.Close() }()
	client, err := framework.Connect(ctx, framework.Config{ConnectString: srv.ConnectString()})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	lock := locks.NewInterProcessMutex(client, "/lock")
	var hold *locks.Hold
	acquire := func() (err error) { hold, err = lock.Acquire(ctx); return err }
	release := func() error { return hold.Release() }
	create := func() error {
		_, err := client.Create(ctx, "/node", nil, framework.Persistent)
		return err
	}
	remove := func() error { return client.Delete(ctx, "/node", framework.AnyVersion) }
	steps := map[string][]func() error{ // to warm up, before, and the call
		"Acquire": {acquire, release, acquire},
		"Release": {acquire, release, acquire, release},
		"Create":  {create, remove, create},
	}[call]
	for i, step := range steps {
		if i == len(steps)-1 {
			if err := coverage.ClearCounters(); err != nil {
				return err
			}
		}
		if err := step(); err != nil {
			return err
		}
	}
	return errors.Join(coverage.WriteCountersDir(to), coverage.WriteMetaDir(to))
}

//go:build unix

package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	zktest "github.com/paddock-zk/paddock/testing"
)

// root is the repository.
const root = "../../.."

// patience is how long a script waits for what has to come.
const patience = time.Minute

// TestScripts runs each file in testdata with paddock and a server of its own.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/paddock")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// hold says in the file held that it runs, to whoever reads that, and goes on.
	if err := os.WriteFile(filepath.Join(bin, "hold"), []byte("#!/bin/sh\necho >\"$WORK/held\"\nexec sleep 600\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	deadline, _ := t.Deadline()
	testscript.Run(t, testscript.Params{
		Dir:      "testdata",
		Deadline: deadline,
		Setup: func(e *testscript.Env) error {
			srv, err := zktest.New()
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = srv.Close() }) // when the processes of all scripts have ended
			e.Values[server{}] = srv
			e.Setenv("PADDOCK_SERVERS", srv.ConnectString())
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			return syscall.Mkfifo(filepath.Join(e.WorkDir, "held"), 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"children": children,
			"clock":    clock,
			"exits":    exits,
		},
	})
}

// server is the key of a script's server.
type server struct{}

// children waits until a node has so many children: children PATH N.
func children(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(ts.Value(server{}).(*zktest.Server).WaitChildren(ctx, args[0], n))
}

// clock moves the server's clock: clock -20m.
func clock(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	ts.Value(server{}).(*zktest.Server).MoveClock(d)
}

// exits runs a command that has to end with a code: exits CODE COMMAND ARGUMENT...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var ended *exec.ExitError
		if !errors.As(err, &ended) {
			ts.Fatalf("%v", err)
		}
		code = ended.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s exits with %d, and not %s", args[1], code, args[0])
	}
}

// TestScriptsHaveWhatThePageShows compares the commands of the page with the scripts.
func TestScriptsHaveWhatThePageShows(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "command.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var scripts strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(text)
	}
	commands := shown(string(page))
	if len(commands) < 5 {
		t.Errorf("the page shows %q and nothing else", commands)
	}
	for _, command := range commands {
		if !strings.Contains(scripts.String(), command) {
			t.Errorf("no script has %q", command)
		}
	}
}

// shown are the commands that a page shows, without comments.
func shown(page string) (commands []string) {
	for i, block := range strings.Split(page, "\n```") {
		if code, isShell := strings.CutPrefix(block, "sh\n"); i%2 == 1 && isShell {
			for line := range strings.Lines(code) {
				if line, _, _ = strings.Cut(line, " #"); strings.HasPrefix(line, "paddock ") {
					commands = append(commands, strings.TrimSpace(line))
				}
			}
		}
	}
	return commands
}

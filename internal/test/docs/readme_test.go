package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

// blocks are the complete Go files that a page shows, in order.
func blocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var found []string
	for i, part := range strings.Split(string(text), "\n```") {
		if code, isGo := strings.CutPrefix(part, "go\n"); i%2 == 1 && isGo && strings.HasPrefix(code, "package ") {
			found = append(found, code+"\n")
		}
	}
	return found
}

// TestReadme vets and runs the programs of the README, on the in-process server and
// the first one without any, and its test.
func TestReadme(t *testing.T) {
	files := blocks(t, filepath.Join(root, "README.md"))
	require.Len(t, files, 3, "two programs, and a test between them")

	const servers, patience = "localhost:2181", "10*time.Second"
	srv := zktest.Start(t)
	for i, says := range map[int]string{0: "we have the lock", 2: "we lead"} {
		require.Equal(t, 1, strings.Count(files[i], servers))
		out, err := goTool(t, "main.go", strings.Replace(files[i], servers, srv.ConnectString(), 1), "run")
		require.NoError(t, err, out)
		assert.Contains(t, out, says)
		assert.Empty(t, srv.Sessions(), "the program has closed its client")
		require.Equal(t, 1, strings.Count(files[i], patience))
	}
	out, err := goTool(t, "main.go", strings.NewReplacer(servers, "127.0.0.1:1", patience, "200*time.Millisecond").Replace(files[0]), "run")
	require.Error(t, err, "where no server runs it ends, and says why")
	assert.Contains(t, out, "context deadline exceeded")
	assert.Contains(t, out, "connection refused")

	out, err = goTool(t, "orders_test.go", files[1], "test", "-count=1")
	require.NoError(t, err, out)
	assert.Contains(t, out, "ok")
}

// goTool vets one file as a module of its own, which uses this one, and then runs
// another command of the go tool on it.
func goTool(t *testing.T, name, text string, command ...string) (out string, err error) {
	t.Helper()
	const ours = "github.com/paddock-zk/paddock"
	module, err := filepath.Abs(root)
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	_, requirements, _ := strings.Cut(string(mod), "\n")
	dir := t.TempDir()
	for name, text := range map[string]string{
		name:     text,
		"go.mod": "module shown\n" + requirements + "require " + ours + " v0.0.0\nreplace " + ours + " => " + strconv.Quote(module) + "\n",
		"go.sum": string(sum),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", append(args, "-mod=mod", ".")...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err = run("vet")
	require.NoError(t, err, out)
	return run(command...)
}

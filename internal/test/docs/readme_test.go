package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

// The first program of the README is looked through by vet, and run, in a module of
// its own.
func TestFirstProgram(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		return string(text)
	}
	_, program, found := strings.Cut(read("README.md"), "```go\n")
	require.True(t, found)
	program, _, _ = strings.Cut(program, "```")
	require.True(t, strings.HasPrefix(program, "package main\n"), "a complete program")
	const servers = "zk1:2181,zk2:2181,zk3:2181"
	require.Contains(t, program, servers)

	srv := zktest.Start(t)
	module, err := filepath.Abs(root)
	require.NoError(t, err)
	const ours = "github.com/paddock-zk/paddock"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": strings.Replace(program, servers, srv.ConnectString(), 1),
		"go.sum":  read("go.sum"),
		"go.mod":  strings.Replace(read("go.mod"), "module "+ours, "module first", 1) + "\nrequire " + ours + " v0.1.0\nreplace " + ours + " => " + module + "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	tool := func(command string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", command, "-mod=mod", ".")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	tool("vet")
	assert.Contains(t, tool("run"), "nobody else has the orders")
}

//go:build unix

package docs

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

// TestKubernetes runs the program of the page as a pod does, until SIGTERM.
func TestKubernetes(t *testing.T) {
	files := blocks(t, filepath.Join(root, "docs", "kubernetes.md"))
	require.Len(t, files, 1)
	const port = `":8080"`
	require.Equal(t, 1, strings.Count(files[0], port))
	pod := filepath.Join(t.TempDir(), "pod")
	out, err := goTool(t, "main.go", strings.Replace(files[0], port, `"127.0.0.1:0"`, 1), "build", "-o", pod)
	require.NoError(t, err, out)

	srv := zktest.Start(t)
	cmd := exec.CommandContext(t.Context(), pod)
	cmd.Env = []string{"POD_NAME=shop-0", "ZK_CONNECT_STRING=" + srv.ConnectString()}
	logged, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(logged)
	require.True(t, lines.Scan())
	assert.Contains(t, lines.Text(), "leading, in term ")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.False(t, lines.Scan(), lines.Text())
	require.NoError(t, cmd.Wait(), "a pod that was told to end has not failed")
	assert.Empty(t, srv.Sessions(), "the next leader need not wait for its session")
}

//go:build unix

package framework

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever reads a pipe that nobody writes waits without end, and so did Start and Close.
func TestFilesThatAreNone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(pipe, link))
	for _, name := range []string{os.DevNull, t.TempDir(), pipe, link} {
		_, err := ServersInFile(name)(t.Context())
		require.ErrorContains(t, err, name+" is no regular file")
		for _, files := range []TLSFiles{{CA: name}, {Certificate: name, Key: name}} {
			_, err = Start(Config{ConnectString: "a", TLSFiles: files})
			require.ErrorContains(t, err, name+" is no regular file")
		}
	}
}

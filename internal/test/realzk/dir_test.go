//go:build unix

package realzk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDataDirIsSwept(t *testing.T) {
	parent := t.TempDir()
	used, err := newDataDir(parent)
	require.NoError(t, err)
	left, err := newDataDir(parent)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(left.path, "data"), nil, 0o600))
	require.NoError(t, left.lock.Close()) // as the death of its process does
	unlocked := filepath.Join(parent, dirPrefix+"new")
	require.NoError(t, os.Mkdir(unlocked, 0o700))

	next, err := newDataDir(parent)
	require.NoError(t, err)
	assert.DirExists(t, used.path)
	assert.NoDirExists(t, left.path)
	assert.DirExists(t, unlocked, "it may be about to get its lock")

	require.NoError(t, next.remove())
	require.NoError(t, used.remove())
	assert.NoDirExists(t, used.path)
}

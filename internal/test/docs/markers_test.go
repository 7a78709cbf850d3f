package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var conflict = regexp.MustCompile(`(?m)^(<<<<<<<|>>>>>>>) .*$`)

// No page has what git leaves where two changes met. The compiler finds it in code.
func TestNoConflictMarkers(t *testing.T) {
	require.True(t, conflict.MatchString("a\n<<<<<<< HEAD\n"))
	const root = "../../.."
	pages := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".md" {
			return err
		}
		pages++
		text, err := os.ReadFile(name)
		assert.Empty(t, conflict.FindString(string(text)), name)
		return err
	})
	require.NoError(t, err)
	require.Greater(t, pages, 30)
}

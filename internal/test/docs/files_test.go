package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folders are what the glossary and the picture of the layers call folders by.
var folders = []string{"", "internal/", "internal/session/", "recipes/", "recipes/internal/"}

var fileName = regexp.MustCompile("`([a-z][a-zA-Z0-9_/]*\\.go)`")

// The glossary and the table of packages name files that are there.
func TestFilesThatPagesNameAreThere(t *testing.T) {
	const root = "../../../"
	for page, folderInLine := range map[string]bool{"docs/glossary.md": false, "docs/architecture.md": true} {
		text, err := os.ReadFile(root + page)
		require.NoError(t, err)
		found := 0
		for line := range strings.Lines(string(text)) {
			where := folders
			if folderInLine {
				cells := strings.Split(line, "|")
				if len(cells) < 4 {
					continue
				}
				where = nil
				for _, name := range regexp.MustCompile("`([a-z/]+)`").FindAllStringSubmatch(cells[1], -1) {
					where = append(where, name[1]+"/")
				}
			}
			for _, name := range fileName.FindAllStringSubmatch(line, -1) {
				if name[1] == "doc.go" { // that of each folder
					continue
				}
				found++
				assert.True(t, existsIn(root, where, name[1]), "%s: there is no %s", page, name[1])
			}
		}
		assert.Greater(t, found, 20, "%s", page)
	}
}

func existsIn(root string, folders []string, name string) bool {
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(root, folder, name)); err == nil {
			return true
		}
	}
	return false
}

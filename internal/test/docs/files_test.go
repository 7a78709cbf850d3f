package docs

import (
	"io/fs"
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
				for _, name := range regexp.MustCompile("`([a-z0-9/]+)`").FindAllStringSubmatch(cells[1], -1) {
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

var link = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)

// What a page links to is there, and so is each file of ours that a decision names.
func TestPagesLinkToWhatIsThere(t *testing.T) {
	const root = "../../.."
	ends := make(map[string]bool) // of the paths of all files
	var pages []string
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if filepath.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		rest, more := filepath.ToSlash(name), true
		for more {
			ends[rest] = true
			_, rest, more = strings.Cut(rest, "/")
		}
		return nil
	}))
	links, names := 0, 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, to := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(to[1], ":") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(page), to[1]))
			assert.NoError(t, err, page)
		}
		if filepath.Base(filepath.Dir(page)) != "decisions" {
			continue
		}
		for _, name := range fileName.FindAllStringSubmatch(string(text), -1) {
			names++
			assert.True(t, ends[name[1]], "%s: there is no %s", page, name[1])
		}
	}
	assert.Greater(t, links, 100)
	assert.Greater(t, names, 10)
}

func existsIn(root string, folders []string, name string) bool {
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(root, folder, name)); err == nil {
			return true
		}
	}
	return false
}

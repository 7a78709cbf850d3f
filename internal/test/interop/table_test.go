//go:build interop

package interop

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every public class of curator-client, curator-framework and the recipes for locks and
// leaders, and every option of the builder, has its place in docs/curator.md.
func TestTableIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../../docs/curator.md")
	require.NoError(t, err)
	javap, err := tool("javap")
	require.NoError(t, err)
	var classes []string
	for _, jar := range filepath.SplitList(shared.java.classPath) {
		switch filepath.Base(jar) {
		case "curator-client.jar", "curator-framework.jar", "curator-recipes.jar":
			classes = append(classes, classesOf(t, jar)...)
		}
	}
	require.Greater(t, len(classes), 150)
	args := append([]string{"-public", "-cp", shared.java.classPath}, classes...)
	out, err := exec.CommandContext(t.Context(), javap, args...).Output()
	require.NoError(t, err)

	declared := regexp.MustCompile(`(?m)^public .*?\b(?:class|interface) ([\w.$]+)`)
	found := declared.FindAllStringSubmatch(string(out), -1)
	require.Greater(t, len(found), 150)
	for _, m := range found {
		assert.True(t, strings.Contains(string(text), "`"+simple(m[1])+"`"), "%s is not on the page", m[1])
	}

	_, builder, ok := strings.Cut(string(out), "class org.apache.curator.framework.CuratorFrameworkFactory$Builder {")
	require.True(t, ok)
	builder, _, _ = strings.Cut(builder, "}")
	options := regexp.MustCompile(`(\w+)\([^)]*\);`).FindAllStringSubmatch(builder, -1)
	require.Greater(t, len(options), 20)
	for _, m := range options {
		if strings.HasPrefix(m[1], "get") || m[1] == "useContainerParentsIfAvailable" {
			continue // reads what another one has set
		}
		assert.True(t, strings.Contains(string(text), "`"+m[1]+"`"), "option %s is not on the page", m[1])
	}
}

// classesOf lists the classes of a jar that users are meant to see.
func classesOf(t *testing.T, jar string) []string {
	t.Helper()
	r, err := zip.OpenReader(jar)
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	anonymous := regexp.MustCompile(`\$\d`)
	var names []string
	for _, f := range r.File {
		name, ok := strings.CutSuffix(f.Name, ".class")
		switch {
		case !ok, anonymous.MatchString(name), strings.Contains(name, "/imps/"):
		case filepath.Base(jar) == "curator-recipes.jar" && !strings.Contains(name, "/recipes/locks/") && !strings.Contains(name, "/recipes/leader/"):
		default:
			names = append(names, strings.ReplaceAll(name, "/", "."))
		}
	}
	return names
}

// simple is a class's own name.
func simple(class string) string {
	return class[strings.LastIndexAny(class, ".$")+1:]
}

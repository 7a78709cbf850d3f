package imports

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program that uses one of our packages gets no test code by it, and a program
// that uses no lock gets no go-zookeeper.
func TestNothingIsBroughtAlong(t *testing.T) {
	for _, file := range []string{"go.mod", ".golangci.yml"} { // or go test takes a success from its cache
		_, err := os.Stat("../../../" + file)
		require.NoError(t, err)
	}
	const module, zk = "github.com/paddock-zk/paddock/", "github.com/go-zookeeper/zk"
	unwanted := []string{
		"testing", "github.com/stretchr/testify", "go.uber.org/goleak", "github.com/anishathalye/porcupine", module + "internal/test",
	}
	for pattern, alsoUnwanted := range map[string][]string{
		"retry/...":     {zk, "go.uber.org/zap"},
		"retry":         {"net/http"},
		"listeners/...": {zk, "go.uber.org/zap"},
		"testing/...":   {zk},
		"framework/...": {"html/template"},
		"recipes/...":   {module + "testing"},
		"recipes/cache": {module + "recipes/locks", module + "recipes/leader", "html/template"},
		"recipes/locks": {module + "recipes/leader", "html/template"},
		"examples/...":  nil,
		"cmd/...":       {module + "testing"},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+pattern).Output()
		require.NoError(t, err)
		for path := range strings.FieldsSeq(string(out)) {
			for _, tree := range append(alsoUnwanted, unwanted...) {
				assert.False(t, path == tree || strings.HasPrefix(path, tree+"/"), "%s brings %s", pattern, path)
			}
		}
	}
}

// What users of Paddock have in their go.sum is asked for by name: Kerberos, metrics and the like
// are modules of their own, whose dependencies stay out of it.
func TestModulesOfUsers(t *testing.T) {
	sums, err := os.ReadFile("../../../go.sum")
	require.NoError(t, err)
	modules := make(map[string]bool)
	for line := range strings.Lines(string(sums)) {
		name, _, _ := strings.Cut(line, " ")
		modules[name] = true
	}
	assert.ElementsMatch(t, []string{
		"github.com/cenkalti/backoff/v4",
		"github.com/go-zookeeper/zk",
		"github.com/stretchr/testify",
		"go.uber.org/goleak",
		"go.uber.org/multierr",
		"go.uber.org/zap",
		"go.yaml.in/yaml/v3",
	}, slices.Collect(maps.Keys(modules)))
}

// Elections bring locks, and no other recipe.
func TestElectionsBringOnlyLocks(t *testing.T) {
	const recipes = "github.com/paddock-zk/paddock/recipes/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", recipes+"leader").Output()
	require.NoError(t, err)
	var brought []string
	for path := range strings.FieldsSeq(string(out)) {
		if name, ok := strings.CutPrefix(path, recipes); ok && !strings.HasPrefix(name, "internal/") {
			brought = append(brought, name)
		}
	}
	assert.ElementsMatch(t, []string{"leader", "locks"}, brought)
}

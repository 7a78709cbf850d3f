package imports

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	goLine = regexp.MustCompile(`(?m)^go (\S+)$`)
	ofOurs = regexp.MustCompile(`(?m)^\s*(?:require )?github\.com/paddock-zk/paddock (v\S+)`)
)

// A user has modules of their own from a proxy, where replace directives count for nothing. So each requires a
// release of ours, the same one, and works with the Go that README names.
func TestModulesCanBeHad(t *testing.T) {
	const root = "../../../"
	mod, err := os.ReadFile(root + "go.mod")
	require.NoError(t, err)
	least := goLine.FindSubmatch(mod)
	require.NotNil(t, least)
	readme, err := os.ReadFile(root + "README.md")
	require.NoError(t, err)
	assert.Contains(t, string(readme), "Go "+regexp.MustCompile(`^1\.\d+`).FindString(string(least[1]))+" or newer")
	versions := make(map[string]bool)
	for _, name := range []string{"framework/monitor/monitorprom", "framework/monitor/monitorotel", "framework/sasl/kerberos"} {
		mod, err := os.ReadFile(root + name + "/go.mod")
		require.NoError(t, err)
		needs, version := goLine.FindSubmatch(mod), ofOurs.FindSubmatch(mod)
		require.NotNil(t, needs, name)
		require.NotNil(t, version, name)
		assert.Equal(t, string(least[1]), string(needs[1]), "%s: the Go that it needs", name)
		assert.Regexp(t, `^v(0\.[1-9]|[1-9]\d*\.)[\w.+-]*$`, string(version[1]), "%s: nobody can tag v0.0.0", name)
		assert.FileExists(t, root+name+"/README.md")
		versions[string(version[1])] = true
	}
	assert.Len(t, versions, 1, "one version of ours for all: %v", versions)
}

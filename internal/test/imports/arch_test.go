package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImportsRunDownwards(t *testing.T) {
	noteSources(t)
	for _, tags := range []string{"", "realzk", "interop"} {
		pkgs := list(t, tags)
		require.NotEmpty(t, pkgs)
		for _, breach := range check(pkgs, rules, testOnly) {
			t.Errorf("%s (see rules_test.go; tags %q)", breach, tags)
		}
	}
}

// noteSources looks at each source file of the module. `go test` caches a
// success until a file changes that the test looked at, and does not know what
// `go list` reads.
func noteSources(t *testing.T) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("../../..", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".go" {
			_, err = os.Stat(name)
		}
		return err
	}))
}

// list returns all packages of the module, as built with the given tags.
func list(t *testing.T, tags string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", tags, "-json=ImportPath,Imports,Deps", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		require.NoError(t, err)
		pkgs = append(pkgs, p)
	}
}

func TestCheckFindsBreaches(t *testing.T) {
	const p = module + "/"
	for _, tc := range []struct {
		name string
		pkg  pkg
		want []string
	}{
		{"nothing imported", pkg{ImportPath: p + "retry"}, nil},
		{"what is allowed", pkg{p + "recipes", []string{"context", "net/http", zk, zap + "/zapcore", p + "framework", p + "internal/wire"}, []string{backoff, zk, p + "retry"}}, nil},
		{"one's own tree", pkg{p + "testing/cmd/zktest", []string{p + "testing", p + "testing/internal/tree"}, nil}, nil},
		{"somebody else's package", pkg{ImportPath: "github.com/other/retry", Imports: []string{"github.com/stretchr/testify"}}, nil},

		{"upwards", pkg{p + "framework", []string{p + "recipes"}, []string{p + "recipes"}}, []string{"framework imports " + p + "recipes", "framework reaches " + p + "recipes"}},
		{"retry knows ZooKeeper", pkg{p + "retry", []string{zk}, []string{zk}}, []string{"retry imports " + zk, "retry reaches " + zk}},
		{"through somebody else", pkg{p + "retry/retryzap", []string{zap}, []string{zap, zk}}, []string{"retry/retryzap reaches " + zk}},
		{"listeners use one of ours", pkg{p + "listeners", []string{p + "retry"}, nil}, []string{"listeners imports " + p + "retry"}},
		{"the server uses the client", pkg{p + "testing", []string{p + "internal/wire"}, []string{p + "framework/path"}}, []string{"testing reaches " + p + "framework/path"}},
		{"the library uses the server", pkg{p + "recipes", []string{p + "testing"}, nil}, []string{"recipes imports " + p + "testing"}},
		{"the library links the test library", pkg{p + "framework", []string{"testing"}, []string{"testing"}}, []string{"framework reaches testing"}},
		{"or what belongs to it", pkg{p + "framework", []string{"testing/fstest"}, []string{"testing/fstest"}}, []string{"framework reaches testing/fstest"}},
		{"testify outside tests", pkg{p + "examples/demo", nil, []string{"github.com/stretchr/testify/require"}}, []string{"examples/demo reaches github.com/stretchr/testify/require"}},
		{"a new dependency", pkg{p + "retry", []string{"golang.org/x/sync/errgroup"}, nil}, []string{"retry imports golang.org/x/sync/errgroup"}},
		{"a name that only begins alike", pkg{p + "framework", []string{p + "retryhttp", zk + "x"}, nil}, []string{"framework imports " + zk + "x", "framework imports " + p + "retryhttp"}},
		{"the inner rule wins", pkg{p + "internal/wire", []string{p + "internal/other"}, nil}, []string{"internal/wire imports " + p + "internal/other"}},
		{"a folder without a place", pkg{ImportPath: p + "util"}, []string{"util has no rule"}},
		{"the root", pkg{ImportPath: module}, []string{". has no rule"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, check([]pkg{tc.pkg}, rules, testOnly))
		})
	}
}

//go:build unix

package realzk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// archive stands in for apt and dpkg-deb.
type archive struct {
	mu       sync.Mutex
	version  string         // of ZooKeeper's package
	calls    map[string]int // by what the programs are asked to do
	fails    map[string]int // how often they fail first
	args     []string       // of the update
	moves    string         // the version that a failed download brings about
	unpacked []string
}

func newArchive(version string) *archive {
	return &archive{version: version, calls: make(map[string]int), fails: make(map[string]int)}
}

var errArchive = errors.New("404 Not Found")

func (a *archive) run(_ context.Context, dir, _ string, args ...string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	what := args[0]
	if slices.Contains(args, "--print-uris") {
		what = "list"
	}
	a.calls[what]++
	if a.fails[what] > 0 {
		a.fails[what]--
		if a.moves != "" {
			a.version = a.moves
		}
		return nil, errArchive
	}
	switch what {
	case "update":
		a.args = args
	case "depends":
		return []byte("libzookeeper-java\n  Depends: junit4\n |Depends: libnetty-java\n  Depends: libnetty-common-java\n" +
			"  Depends: <libservlet-java>\nlibcurator-recipes-java\n  Depends: libnetty-java\n  Depends: default-jre-headless\n"), nil
	case "list":
		var b strings.Builder
		for _, name := range args {
			if strings.HasPrefix(name, "lib") {
				version := "1.0-1"
				if name == "libzookeeper-java" {
					version = a.version
				}
				b.WriteString("'http://mirror/" + name + "' " + name + "_" + version + "_all.deb 17 SHA256:12ab\n")
			}
		}
		return []byte("Get:1 something else\n" + b.String()), nil
	case "download":
		for _, name := range args {
			if strings.HasPrefix(name, "lib") {
				if err := os.WriteFile(filepath.Join(dir, name+".deb"), nil, 0o644); err != nil {
					return nil, err
				}
			}
		}
	case "--extract":
		jars := filepath.Join(args[2], debianJars)
		a.unpacked = append(a.unpacked, filepath.Base(args[1]))
		return nil, errors.Join(os.MkdirAll(jars, 0o755), os.WriteFile(filepath.Join(jars, a.version), nil, 0o644))
	}
	return nil, nil
}

// fetcher is one that fetches from the archive.
func (a *archive) fetcher(t *testing.T, cache string) fetcher {
	t.Helper()
	keyring := filepath.Join(t.TempDir(), "keyring")
	require.NoError(t, os.WriteFile(keyring, nil, 0o644))
	return fetcher{
		suite: "trixie", keyrings: []string{keyring + ".other", keyring}, run: a.run,
		getenv: func(key string) string { return map[string]string{cacheVar: cache, mirrorVar: "http://mirror"}[key] },
		look:   func(program string) (string, error) { return program, nil },
	}
}

func TestFetch(t *testing.T) {
	cache := t.TempDir()
	env := func(key string) string { return map[string]string{cacheVar: cache}[key] }
	a := newArchive("3.9.3-1")
	_, err := fetched(env, "trixie")
	require.ErrorContains(t, err, "trixie has not been fetched")

	f := a.fetcher(t, cache)
	got, err := f.fetch(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "3.9.3-1", got.ZooKeeper)
	assert.Equal(t, "1.0-1", got.Curator)
	assert.Contains(t, got.String(), "trixie: ZooKeeper 3.9.3-1, Curator 1.0-1, in "+cache)
	all := append([]string{"libnetty-common-java", "libnetty-java"}, wanted...)
	slices.Sort(all)
	assert.Equal(t, all, strings.Split(strings.TrimSuffix(strings.Join(a.unpacked, ","), ".deb"), ".deb,"), "direct dependencies that are of Java")
	assert.Contains(t, strings.Join(a.args, " "), "-o Dir::State::status="+filepath.Join(cache, "trixie", "apt", "status"))
	sources, err := os.ReadFile(filepath.Join(cache, "trixie", "apt", "sources.list"))
	require.NoError(t, err)
	assert.Equal(t, "deb [target=Packages signed-by="+f.keyrings[1]+"] http://mirror trixie main\n", string(sources))
	jars, err := fetched(env, "trixie")
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(jars, "3.9.3-1"))

	again := a.fetcher(t, cache)
	got2, err := again.fetch(t.Context())
	require.NoError(t, err)
	assert.Equal(t, got, got2)
	assert.Equal(t, 1, a.calls["download"], "what is there is not downloaded again")
	assert.Equal(t, 2, a.calls["update"])

	a.version = "3.9.4-1"
	third := a.fetcher(t, cache)
	_, err = third.fetch(t.Context())
	require.NoError(t, err)
	next, err := fetched(env, "trixie")
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(next, "3.9.4-1"))
	assert.DirExists(t, jars, "somebody may be using it")
	left, err := filepath.Glob(filepath.Join(cache, "trixie", "new-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A suite that moves on after its lists were read is asked again, and what
// fails leaves what was there before.
func TestFetchFails(t *testing.T) {
	cache := t.TempDir()
	env := func(key string) string { return map[string]string{cacheVar: cache}[key] }
	a := newArchive("3.9.5-1")
	a.fails["download"], a.moves = 1, "3.9.6-1"
	f := a.fetcher(t, cache)
	got, err := f.fetch(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "3.9.6-1", got.ZooKeeper)
	assert.Equal(t, 2, a.calls["update"])

	for _, what := range []string{"update", "depends", "list", "download", "--extract"} {
		a = newArchive("3.9.7-1")
		a.fails[what] = 1000
		f := a.fetcher(t, cache)
		_, err := f.fetch(t.Context())
		require.ErrorIs(t, err, errArchive, what)
		assert.Equal(t, fetchTries, a.calls["update"], what)
		jars, err := fetched(env, "trixie")
		require.NoError(t, err)
		assert.FileExists(t, filepath.Join(jars, "3.9.6-1"))
	}
	left, err := filepath.Glob(filepath.Join(cache, "trixie", "new-*"))
	require.NoError(t, err)
	assert.Empty(t, left)

	a = newArchive("3.9.7-1")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errArchive)
	a.fails["update"] = 1
	f = a.fetcher(t, cache)
	_, err = f.fetch(ctx)
	require.ErrorIs(t, err, errArchive)
	assert.LessOrEqual(t, a.calls["update"], 1, "a context that has ended")

	for _, tc := range []struct {
		name   string
		change func(*fetcher)
		says   string
	}{
		{"no apt", func(f *fetcher) { f.look = func(string) (string, error) { return "", errArchive } }, "set ZK_CLASSPATH"},
		{"no keys", func(f *fetcher) { f.keyrings = f.keyrings[:1] }, "apt-get install debian-archive-keyring"},
	} {
		f := newArchive("3.9.3-1").fetcher(t, cache)
		tc.change(&f)
		_, err := f.fetch(t.Context())
		require.ErrorIs(t, err, ErrNotInstalled, tc.name)
		require.ErrorContains(t, err, tc.says, tc.name)
	}
	for _, suite := range []string{"..", "a/b", "trixie main", ""} {
		f := newArchive("3.9.3-1").fetcher(t, cache)
		f.suite = suite
		_, err := f.fetch(t.Context())
		require.ErrorContains(t, err, "is not the name of a Debian suite")
	}
}

// Two that fetch the same suite do so one after the other.
func TestFetchTwiceAtOnce(t *testing.T) {
	cache := t.TempDir()
	a := newArchive("3.9.3-1")
	var wg sync.WaitGroup
	for range 3 {
		f := a.fetcher(t, cache)
		wg.Go(func() {
			_, err := f.fetch(t.Context())
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.Equal(t, 1, a.calls["download"])
}

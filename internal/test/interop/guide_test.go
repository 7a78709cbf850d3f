package interop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/listeners"
	"github.com/paddock-zk/paddock/recipes/leader"
	zktest "github.com/paddock-zk/paddock/testing"
)

// guides are the pages whose pieces of code must be those of our sources. A
// piece stands behind a comment with its name: <!-- snippet: NAME -->.
var guides = []string{"../../../docs/from-curator.md", "../../../docs/from-go-zookeeper.md"}

var sources = map[string][]string{
	"go":     {"snippets_test.go", "electionsnippets_test.go", "older_test.go"},
	"java":   {"java/Snippets.java"},
	"python": {"python/peer.py"},
}

// pieces are the marked pieces of a source, by name, without the indentation
// that they have there.
func pieces(text string) (map[string]string, error) {
	found := make(map[string]string)
	name := ""
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		mark := strings.TrimLeft(strings.TrimSpace(line), "/# ")
		switch {
		case strings.HasPrefix(mark, "snippet: "):
			if name != "" {
				return nil, errors.New("no end of " + name)
			}
			name, lines = strings.TrimPrefix(mark, "snippet: "), nil
		case mark == "end" && name != "":
			if _, twice := found[name]; twice {
				return nil, errors.New("twice: " + name)
			}
			found[name] = dedent(lines)
			name = ""
		case name != "":
			lines = append(lines, line)
		}
	}
	if name != "" {
		return nil, errors.New("no end of " + name)
	}
	return found, nil
}

func dedent(lines []string) string {
	indent := ""
	if len(lines) > 0 {
		indent = lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], "\t "))]
	}
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, indent)
	}
	return strings.Join(lines, "\n")
}

var fence = regexp.MustCompile("(?ms)^(?:<!-- snippet: ([a-z-]+) -->|```([a-z]+)\n(.*?)\n```)$")

// shown are the pieces of a page, by language and name. Blocks that follow a
// name's comment are of that name, until the next one.
func shown(page string) map[string]map[string]string {
	all := make(map[string]map[string]string)
	name := ""
	for _, m := range fence.FindAllStringSubmatch(page, -1) {
		switch {
		case m[1] != "":
			name = m[1]
		case sources[m[2]] != nil && name != "":
			if all[m[2]] == nil {
				all[m[2]] = make(map[string]string)
			}
			all[m[2]][name] = m[3]
		}
	}
	return all
}

// What the guide shows is what the tests run, and all of it.
func TestGuideShowsWhatRuns(t *testing.T) {
	have := make(map[string]map[string]string)
	for _, g := range guides {
		page, err := os.ReadFile(filepath.FromSlash(g))
		require.NoError(t, err)
		for language, byName := range shown(string(page)) {
			for name, code := range byName {
				if have[language] == nil {
					have[language] = make(map[string]string)
				}
				_, twice := have[language][name]
				assert.False(t, twice, "%s %s is shown twice", language, name)
				have[language][name] = code
			}
		}
	}
	for language, files := range sources {
		run := make(map[string]string)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			found, err := pieces(string(text))
			require.NoError(t, err, file)
			for name, code := range found {
				run[name] = code
			}
		}
		assert.NotEmpty(t, run, language)
		for name, code := range run {
			assert.Equal(t, code, have[language][name], "%s %s in the guide", language, name)
		}
		for name := range have[language] {
			assert.Contains(t, run, name, "the guide shows %s that nobody runs", language)
		}
	}
}

func TestPieces(t *testing.T) {
	found, err := pieces("x\n\t// snippet: a\n\tone\n\t\ttwo\n\n\t// end\n# snippet: b\n# end\n// end\n")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "one\n\ttwo\n", "b": ""}, found)
	for _, bad := range []string{"// snippet: a\n", "// snippet: a\n// snippet: b\n// end\n", "// snippet: a\n// end\n// snippet: a\n// end"} {
		_, err := pieces(bad)
		require.Error(t, err)
	}
	page := "<!-- snippet: a -->\n```java\none\n```\n```go\ntwo\nthree\n```\ntext\n```sh\nls\n```\n"
	assert.Equal(t, map[string]map[string]string{"java": {"a": "one"}, "go": {"a": "two\nthree"}}, shown(page))
}

// All Go pieces, on the in-process server.
func TestSnippets(t *testing.T) {
	srv := zktest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := connect(ctx, srv.ConnectString())
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	var runs int
	count := func(ctx context.Context) error {
		runs++
		return ctx.Err()
	}
	for i, fn := range []func(context.Context, *framework.Client, string, work) error{
		mutex, timed, locker, reentrant, semaphoreMutex, semaphore, leases, read, write,
	} {
		require.NoError(t, fn(ctx, c, "/snippets/"+string(rune(97+i)), count), i)
	}
	require.NoError(t, downgrade(ctx, c, "/snippets/downgrade", count, count))
	require.NoError(t, multi(ctx, c, "/snippets/from", "/snippets/to", count))
	assert.Equal(t, 12, runs)

	held, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- revocable(ctx, c, "/snippets/revocable", func(context.Context) error {
			close(held)
			return nil
		})
	}()
	<-held
	require.NoError(t, revoke(ctx, c, "/snippets/revocable"))
	require.NoError(t, <-done)

	data, err := lockData(ctx, c, "/snippets/data")
	require.NoError(t, err)
	assert.Equal(t, "worker 7", string(data))
	path, err := nodes(ctx, c)
	require.NoError(t, err)
	assert.Contains(t, path, "/nodes/_c_")
	require.NoError(t, c.EnsurePath(ctx, "/orders"))
	require.NoError(t, c.EnsurePath(ctx, "/stock/apples"))
	require.NoError(t, transaction(ctx, c))
	apples, _, err := c.Get(ctx, "/stock/apples")
	require.NoError(t, err)
	assert.Equal(t, "8", string(apples))

	text, err := compression(ctx, c)
	require.NoError(t, err)
	assert.Equal(t, "a long text", string(text))
	told := make(chan listeners.State, 10)
	defer circuitBreaker(c, func(s listeners.State) { told <- s }).Close()
	assert.Equal(t, listeners.Connected, <-told)

	electionSnippets(ctx, t, c)

	lost := make(chan struct{})
	states(c, func() { close(lost) })
	require.NoError(t, srv.ExpireSession(c.SessionID()))
	<-lost

	shop, err := options(ctx, srv.ConnectString())
	require.NoError(t, err)
	defer func() { assert.NoError(t, shop.Close()) }()
	for path, open := range map[string]bool{"/public/a": true, "/private/a": false} {
		_, err := shop.Create(ctx, path, nil, framework.Persistent, framework.Parents())
		require.NoError(t, err)
		acl, _, err := shop.GetACL(ctx, path)
		require.NoError(t, err)
		assert.Equal(t, open, slices.Equal(acl, zk.WorldACL(zk.PermAll)), path)
	}
	require.NoError(t, older(ctx, c, "/snippets/older", count))
	require.NoError(t, newer(ctx, c, "/snippets/older", count))
}

func electionSnippets(ctx context.Context, t *testing.T, c *framework.Client) {
	t.Helper()
	runs := 0
	count := func(ctx context.Context) error {
		runs++
		return ctx.Err()
	}
	require.NoError(t, leaderLatch(ctx, c, "/snippets/latch", "a", func(context.Context) error {
		all, leads, err := participants(ctx, leader.NewLatch(c, "/snippets/latch"))
		assert.Equal(t, []string{"a"}, all)
		assert.Equal(t, "a", leads)
		return err
	}))
	require.NoError(t, leaderSelector(ctx, c, "/snippets/selector", count))
	require.NoError(t, selectorAdapter(ctx, c, "/snippets/selector", count))
	assert.Equal(t, 2, runs)

	listening, leave := context.WithCancel(ctx)
	var told []string
	require.ErrorIs(t, latchListener(listening, c, "/snippets/listener", func() { told = append(told, "begin"); leave() }, func() { told = append(told, "end") }), context.Canceled)
	assert.Equal(t, []string{"begin", "end"}, told)

	again, leave := context.WithCancel(ctx)
	require.ErrorIs(t, autoRequeue(again, c, "/snippets/selector", func(ctx context.Context) error {
		if runs++; runs == 4 {
			leave()
		}
		return nil
	}), context.Canceled)
	assert.Equal(t, 4, runs, "it has stood again")
}

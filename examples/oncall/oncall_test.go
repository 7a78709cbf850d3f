//go:build realzk

package main

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/internal/test/realzk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the transcript of docs/operate.md anew")

const (
	guide = "../../docs/operate.md"
	begin = "```console\n$ paddock who /locks/orders\n"
)

// What the guide shows is what the script prints on a real ensemble, but for what differs
// each time.
func TestTranscript(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Servers: 3})
	cmd := exec.CommandContext(t.Context(), "./oncall.sh")
	cmd.Env = append(os.Environ(), "PADDOCK_SERVERS="+e.ConnectString())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	got := strings.TrimSuffix(string(out), "\n")

	page, err := os.ReadFile(guide)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found, "%s has no transcript", guide)
	shown, after, found := strings.Cut(rest, "```\n")
	require.True(t, found)
	if *update {
		text := before + "```console\n" + got + "```\n" + after
		require.NoError(t, os.WriteFile(guide, []byte(text), 0o600))
		return
	}
	assert.Equal(t, masked("$ paddock who /locks/orders\n"+shown), masked(got))
	assert.NotEqual(t, got, masked(got), "the masks hide something")
}

// masks are what differs each time.
var masks = []*regexp.Regexp{
	regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`),
	regexp.MustCompile(`\b0x[0-9a-f]+`),
	regexp.MustCompile(`_c_[0-9a-f-]{36}`),
	regexp.MustCompile(`\b\d[\d.hµmns]*s\b`), // how long
	regexp.MustCompile(`pid \d+`),
	regexp.MustCompile(`token"?[ =:]\d+`), // what else the servers have done before
	regexp.MustCompile(`127\.0\.0\.1:\d+`),
	regexp.MustCompile(`node (deleted|gone: deleted, or its session has expired)`), // the second until a server has confirmed the session
	regexp.MustCompile(`(timeout|lease_left)_seconds":[\d.]+`),
}

func masked(text string) string {
	for _, re := range masks {
		text = re.ReplaceAllString(text, "#")
	}
	return text
}

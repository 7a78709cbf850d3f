package differential

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

// testcase is a script by name.
type testcase struct {
	name string
	variant
	pinned []string // the versions of which zktest is known to differ, and has recordings of its own
	script func(*run)
}

// variant is how a server is set up otherwise than for most cases.
type variant struct {
	words    string // the four-letter words that it answers, separated by commas; "" is all
	reconfig bool
	noTTL    bool
	sweeps   bool // five times a second
	defaults bool // only for the real server; zktest has its own defaults
}

func (v variant) options() []zktest.Option {
	opts := []zktest.Option{zktest.Superuser(superDigest)}
	if v.defaults {
		return opts
	}
	if v.words != "" {
		opts = append(opts, zktest.FourLetterWords(strings.Split(v.words, ",")...))
	}
	if v.sweeps {
		opts = append(opts, zktest.SweepInterval(200*time.Millisecond))
	}
	if v.noTTL {
		opts = append(opts, zktest.NoTTL())
	}
	if v.reconfig {
		opts = append(opts, zktest.Reconfig())
	}
	return opts
}

// cases has them all; each file of cases adds its own.
var cases []testcase

func add(name string, script func(*run)) { addWith(name, variant{}, script) }

func addWith(name string, v variant, script func(*run)) {
	cases = append(cases, testcase{name: name, variant: v, script: script})
}

// recorded has the folders in which a version's recording of a case is looked
// for: what a version answers as another one does is recorded once.
var recorded = map[string][]string{
	"3.8.0": {""},
	"3.9.3": {"3.9.3", "3.9", ""},
	"3.9.6": {"3.9", ""},
}

// The kinds of recordings: of the real server, and of zktest where that differs.
const (
	ofReal   = ".txt"
	ofZktest = ".zktest.txt"
)

// golden returns the recording of a case.
func golden(t *testing.T, version, name, kind string) string {
	t.Helper()
	for _, folder := range recorded[version] {
		text, err := os.ReadFile(filepath.Join("testdata", folder, name+kind))
		if err == nil {
			return string(text)
		}
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	require.FailNow(t, "no recording", "%s of %s", name, version)
	return ""
}

// compare shows where the transcripts part, with the request before.
func compare(t *testing.T, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	request, left := "", 5
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			if left--; left < 0 {
				t.Fatal("and so on")
			}
			t.Errorf("line %d\n   after %s\n    real %s\n  zktest %s", i+1, request, w[i], g[i])
		}
		if strings.Contains(w[i], "> ") {
			request = w[i]
		}
	}
	if len(w) != len(g) {
		t.Errorf("%d lines, want %d", len(g), len(w))
	}
}

func TestZktestSpeaksLikeTheRecording(t *testing.T) {
	require.Len(t, recorded, len(zktest.Versions()))
	for _, version := range zktest.Versions() {
		for _, tc := range cases {
			t.Run(version+"/"+tc.name, func(t *testing.T) {
				want := golden(t, version, tc.name, ofReal)
				if slices.Contains(tc.pinned, version) {
					known := golden(t, version, tc.name, ofZktest)
					require.NotEqual(t, want, known, "no difference: the case belongs elsewhere")
					want = known
				}
				compare(t, want, onZktest(t, version, tc.variant, tc.script))
			})
		}
	}
}

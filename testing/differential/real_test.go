//go:build realzk

package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/realzk"
	zktest "github.com/paddock-zk/paddock/testing"
)

var update = flag.Bool("update", false, "write the real server's transcripts to testdata")

// realServer starts a server of the test's own, set up as zktest is.
func realServer(t *testing.T, v variant) *realzk.Ensemble {
	t.Helper()
	sweep := "86400000" // or what earlier scripts left goes during a later one
	if v.sweeps {
		sweep = "200"
	}
	words := v.words
	if words == "" {
		words = "*"
	}
	return realzk.StartT(t, realzk.Options{
		Tick:          2 * time.Second,
		SuperPassword: "secret",
		Properties:    map[string]string{"4lw.commands.whitelist": words, "reconfigEnabled": fmt.Sprint(v.reconfig)},
		JVMProperties: map[string]string{
			"zookeeper.extendedTypesEnabled":  fmt.Sprint(!v.noTTL),
			"znode.container.checkIntervalMs": sweep,
		},
	})
}

// nearest returns which version of zktest a real server is compared with. One
// that zktest does not know is compared with the newest before it, and its
// differences are shown and are no failure: Debian's sid moves on.
func nearest(t *testing.T, e *realzk.Ensemble) (version string, exact bool) {
	t.Helper()
	onReal, err := e.Version(t.Context())
	require.NoError(t, err)
	version = zktest.Versions()[0]
	for _, v := range zktest.Versions() {
		if number(t, v) <= number(t, onReal) {
			version = v
		}
	}
	if version != onReal {
		t.Logf("zktest does not know %s: it is compared with %s, and differences are only shown", onReal, version)
	}
	return version, version == onReal
}

// number makes versions comparable.
func number(t *testing.T, version string) int {
	t.Helper()
	n := 0
	for part := range strings.SplitSeq(version, ".") {
		i, err := strconv.Atoi(part)
		require.NoError(t, err, version)
		n = 1000*n + i
	}
	return n
}

func TestRealSpeaksLikeTheRecording(t *testing.T) {
	servers := make(map[variant]*realzk.Ensemble)
	servers[variant{}] = realServer(t, variant{})
	version, exact := nearest(t, servers[variant{}])
	differ := 0
	for _, tc := range cases {
		if servers[tc.variant] == nil {
			servers[tc.variant] = realServer(t, tc.variant)
		}
		addr := servers[tc.variant].Addr(0)
		t.Run(tc.name, func(t *testing.T) {
			onReal := transcript(t, addr, fmt.Sprintf("/differential-%x", rand.Uint64()), nil, tc.script)
			if *update {
				require.True(t, exact, "zktest has to know a version that is to be recorded")
				write(t, version, tc.name, ofReal, onReal)
				if slices.Contains(tc.pinned, version) {
					write(t, version, tc.name, ofZktest, onZktest(t, version, tc.variant, tc.script))
				}
			}
			want := golden(t, version, tc.name, ofReal)
			if exact {
				compare(t, want, onReal)
			} else if want != onReal {
				differ++
				t.Logf("differs from %s", version)
			}
		})
	}
	t.Logf("%d cases, %d differ from %s", len(cases), differ, version)
}

// write writes a recording, if there is not the same one of an earlier version.
func write(t *testing.T, version, name, kind, text string) {
	t.Helper()
	file := filepath.Join("testdata", recorded[version][0], name+kind)
	if err := os.Remove(file); err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	for _, folder := range recorded[version][1:] {
		earlier, err := os.ReadFile(filepath.Join("testdata", folder, name+kind))
		if err == nil {
			if string(earlier) == text {
				return
			}
			break
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

//go:build realzk

package likeness

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/realzk"
)

var update = flag.Bool("update", false, "write the real server's transcripts to testdata")

// realServer starts a server of the test's own, set up as zktest is.
func realServer(t *testing.T, v variant) string {
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
	}).Addr(0)
}

func TestRealSpeaksLikeZktest(t *testing.T) {
	addrs := make(map[variant]string)
	for _, tc := range cases {
		if addrs[tc.variant] == "" {
			addrs[tc.variant] = realServer(t, tc.variant)
		}
		addr := addrs[tc.variant]
		t.Run(tc.name, func(t *testing.T) {
			real := transcript(t, addr, fmt.Sprintf("/likeness-%x", rand.Uint64()), nil, tc.script)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(golden(tc.name), []byte(real), 0o644))
			}
			if !tc.pinned {
				compare(t, real, onZktest(t, tc.variant, tc.script))
				return
			}
			if *update {
				require.NoError(t, os.WriteFile(ours(tc.name), []byte(onZktest(t, tc.variant, tc.script)), 0o644))
			}
			want, err := os.ReadFile(golden(tc.name))
			require.NoError(t, err)
			compare(t, real, string(want))
		})
	}
}
